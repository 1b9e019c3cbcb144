#include "planner/io/cluster/cluster_reader.h"

#include "planner/io/cluster/cluster_links.h"
#include "planner/io/files/digest.h"

namespace pfeife {
namespace {

Cluster read_document(const YamlDocument& document) {
  const YamlNode root = document.root();
  return resolved(read_cluster_file(root), root);
}

}  // namespace

YamlDocument cluster_document(const std::filesystem::path& file, const Replaced& replaced) {
  YamlDocument document = YamlDocument::read(file);
  for (const auto& [path, value] : replaced) document.set(path, value, to_string(value.where));
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
