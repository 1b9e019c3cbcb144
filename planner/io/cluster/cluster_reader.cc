#include "planner/io/cluster/cluster_reader.h"

#include "planner/io/cluster/cluster_file.h"
#include "planner/io/files/digest.h"

namespace pfeife {
namespace {

Cluster read_document(const YamlDocument& document) {
  const YamlNode root = document.root();
  return resolved(read_cluster_file(root), root);
}

/// Files that kinds name beside `file` get absolute paths, so that the text may be written
/// elsewhere.
void make_paths_absolute(YamlDocument& document, const std::filesystem::path& file) {
  if (!document.root().is_map()) return;
  const auto kinds = document.root().find("device_kinds");
  if (!kinds || !kinds->is_map()) return;
  std::vector<std::pair<std::string, YamlValue>> paths;
  for (const auto& [name, kind] : kinds->entries()) {
    const auto products =
        kind.is_map() ? kind.find("measured_products") : std::optional<YamlNode>{};
    if (!products || !products->is_scalar()) continue;
    const auto absolute = std::filesystem::absolute(file.parent_path() / products->as_string());
    paths.emplace_back("device_kinds.\"" + name + "\".measured_products",
                       yaml_string(absolute.string(), products->where()));
  }
  for (const auto& [path, value] : paths) document.set(path, value, to_string(value.where));
}

}  // namespace

YamlDocument cluster_document(const std::filesystem::path& file, const Replaced& replaced) {
  YamlDocument document = YamlDocument::read(file);
  for (const auto& [path, value] : replaced) document.set(path, value, to_string(value.where));
  make_paths_absolute(document, file);
  return document;
}

Cluster parse_cluster(std::string_view text, const std::string& file) {
  Cluster cluster = read_document(YamlDocument::parse(text, file));
  cluster.digest = sha256(text);
  return cluster;
}

Cluster read_cluster(const std::filesystem::path& file, const Replaced& replaced) {
  const YamlDocument document = cluster_document(file, replaced);
  Cluster cluster = read_document(document);
  if (replaced.empty()) cluster.file = file.string();
  cluster.digest = replaced.empty() ? sha256_file(file) : sha256(document.text());
  return cluster;
}

std::string cluster_text(const std::filesystem::path& file, const Replaced& replaced) {
  return cluster_document(file, replaced).text();
}

}  // namespace pfeife
