#include "planner/io/model/pt2_reader.h"

#include <nlohmann/json.hpp>

#include "planner/io/files/digest.h"
#include "planner/io/files/json_fields.h"
#include "planner/io/model/pt2_archive.h"
#include "planner/io/model/pt2_graph.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

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
