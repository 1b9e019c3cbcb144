#include "planner/io/model/pt2_reader.h"

#include <nlohmann/json.hpp>

#include "planner/io/files/digest.h"
#include "planner/io/files/json_fields.h"
#include "planner/io/files/zip_archive.h"
#include "planner/io/model/pt2_parts.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

// The parts of a `.pt2` archive (torch.export.save, archive version 0) that describe the graph;
// weights are not read.

/// Texts of the entries that hold the program and where its tensors lie.
struct Pt2Texts {
  std::string program;  ///< models/model.json
  std::string weights;  ///< data/weights/model_weights_config.json
  std::string facts;    ///< extra/pfeife.json, what export_models.py knows besides; "" = none
};

constexpr std::uint64_t kProgramLimit = std::uint64_t{512} << 20;
constexpr std::uint64_t kConfigLimit = std::uint64_t{128} << 20;
constexpr std::uint64_t kFactsLimit = std::uint64_t{1} << 20;
constexpr std::uint64_t kMarkLimit = 64;

// All entries lie in one top folder, whose name is free.
std::string top_folder(const ZipArchive& archive) {
  for (const std::string& entry : archive.entries()) {
    const std::size_t slash = entry.find('/');
    if (slash != std::string::npos &&
        entry.compare(slash, std::string::npos, "/archive_format") == 0)
      return entry.substr(0, slash + 1);
  }
  throw ConfigError(
      {archive.name()},
      "is not an archive of torch.export.save (no entry 'archive_format'); models saved by "
      "torch.save "
      "or torch.jit.save must be exported first, see configs/models/export_models.py");
}

void require_mark(const ZipArchive& archive, const std::string& entry, const std::string& wanted) {
  std::string found = archive.read(entry, kMarkLimit);
  while (!found.empty() && (found.back() == '\n' || found.back() == '\r')) found.pop_back();
  if (found == wanted) return;
  throw ConfigError({archive.name()},
                    "entry '" + entry + "' says '" + found + "', only '" + wanted +
                        "' is understood; export with torch.export.save of torch 2.11");
}

/// Reads them after checking that the archive is one of a kind we know. ConfigError otherwise.
Pt2Texts read_pt2_texts(const ZipArchive& archive) {
  const std::string top = top_folder(archive);
  require_mark(archive, top + "archive_format", "pt2");
  require_mark(archive, top + "archive_version", "0");
  if (archive.contains(top + "byteorder")) require_mark(archive, top + "byteorder", "little");
  return {archive.read(top + "models/model.json", kProgramLimit),
          archive.read(top + "data/weights/model_weights_config.json", kConfigLimit),
          archive.contains(top + "extra/pfeife.json")
              ? archive.read(top + "extra/pfeife.json", kFactsLimit)
              : ""};
}

nlohmann::json parsed(const std::string& text, const char* entry) {
  try {
    return json_fields::parse(text);
  } catch (const json_fields::Malformed& error) {
    throw json_fields::Malformed(std::string(entry) + ": " + error.what() +
                                 "; export the model again");
  }
}

Graph graph_of(const ZipArchive& archive, std::optional<std::int64_t> microbatch_size) {
  if (microbatch_size && *microbatch_size < 1)
    throw ConfigError({archive.name()}, stream_all("microbatch_size is ", *microbatch_size,
                                                   "; it must be at least 1"));
  const Pt2Texts texts = read_pt2_texts(archive);
  try {
    const nlohmann::json weights = parsed(texts.weights, "model_weights_config.json");
    const nlohmann::json facts =
        texts.facts.empty() ? nlohmann::json::object() : parsed(texts.facts, "extra/pfeife.json");
    Graph graph = build_pt2_graph(parsed(texts.program, "models/model.json"), weights, facts,
                                  microbatch_size);
    graph.name = std::filesystem::path(archive.name()).stem().string();
    return graph;
  } catch (const json_fields::Malformed& error) {
    throw ConfigError({archive.name()}, error.what());
  }
}

}  // namespace

Graph read_pt2(const std::filesystem::path& path, std::optional<std::int64_t> microbatch_size) {
  Graph graph = graph_of(ZipArchive(path), microbatch_size);
  graph.digest = sha256_file(path);
  return graph;
}

Graph read_pt2_bytes(std::string_view bytes, const std::string& name,
                     std::optional<std::int64_t> microbatch_size) {
  Graph graph = graph_of(ZipArchive(bytes, name), microbatch_size);
  graph.digest = sha256(bytes);
  return graph;
}

}  // namespace pfeife
