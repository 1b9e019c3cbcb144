#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "planner/io/files/digest.h"
#include "planner/io/files/json_fields.h"
#include "planner/io/model/imported_layers.h"

namespace pfeife {
namespace {

using json_fields::field;
using json_fields::Json;
using json_fields::Malformed;

constexpr const char* kDegree = "1";
constexpr const char* kVariant = "vanilla";

/// Degree 1, without recomputation.
const Json& plain_variant(const Json& node) {
  const Json* variants = json_fields::optional_field(field(node, "TMPCs"), kDegree);
  if (variants == nullptr)
    throw Malformed("has no figures for degree 1; only unsharded nodes can be read");
  for (const Json& variant : json_fields::array(*variants))
    if (json_fields::text(field(variant, "id")) == kVariant) return variant;
  throw Malformed(std::string("has no variant '") + kVariant + "' at degree 1");
}

Bytes bytes_in(const Json& object, const char* key) {
  return checked_bytes(json_fields::number(field(object, key)), {}, key);
}

ProfileNode read_node(const Json& json, std::int64_t id, Nanoseconds time_unit) {
  const Json& plain = plain_variant(json);
  ProfileNode node;
  node.name = json_fields::text(field(json, "name")) + "#" + std::to_string(id);
  const double ms = json_fields::number(field(plain, "timePerSample")) * milliseconds(time_unit);
  node.times = split_forward_backward(checked_milliseconds(ms, {}, "timePerSample"));
  node.saved = bytes_in(plain, "memoryUsageA");
  node.parameters = bytes_in(plain, "parameterSize");
  node.gradients = std::max(Bytes{0}, bytes_in(plain, "memoryUsageB") - node.parameters);
  return node;
}

/// Puts what an element of a list is before what is wrong with it.
template <class Read>
void for_each_named(const Json& list, const std::string& what, const Read& read) {
  std::size_t index = 0;
  for (const Json& item : json_fields::array(list)) {
    try {
      read(item);
    } catch (const std::runtime_error& error) {
      throw Malformed(what + " " + std::to_string(index) + ": " + error.what());
    }
    ++index;
  }
}

ProfileGraph graph_of(const TextFile& file, Nanoseconds time_unit) {
  const Json json = json_fields::parse(file.text);
  ProfileGraph graph;
  graph.file = file.name;
  std::map<std::int64_t, std::size_t> index_of;
  for_each_named(field(json, "nodes"), "node", [&](const Json& node) {
    const std::int64_t id = json_fields::integer(field(node, "id"));
    if (!index_of.emplace(id, graph.nodes.size()).second)
      throw Malformed(stream_all("id ", id, " is there twice"));
    graph.nodes.push_back(read_node(node, id, time_unit));
  });
  const auto index = [&](const Json& edge, const char* key) {
    const std::int64_t id = json_fields::integer(field(edge, key));
    const auto found = index_of.find(id);
    if (found == index_of.end()) throw Malformed(stream_all("there is no node of id ", id));
    return found->second;
  };
  for_each_named(field(json, "edges"), "edge", [&](const Json& edge) {
    graph.edges.push_back(
        {index(edge, "sourceId"), index(edge, "destId"), 0, bytes_in(edge, "communicationCost")});
  });
  return graph;
}

}  // namespace

Layers layers_of_piper(const TextFile& file, Nanoseconds time_unit, const ImportOptions& options) {
  require_plain_text(file);
  try {
    Layers layers = layers_of_profile(graph_of(file, time_unit), options);
    layers.digest = sha256(file.text);
    layers.notes = {
        "times and sizes as published (Piper profile, degree 1, without recomputation), on every "
        "device kind alike",
        "the profile has one time per node, counted in units of " + to_string(time_unit) +
            "; it was split: forward 1/3, backward-input 1/3, backward-weight 1/3"};
    return layers;
  } catch (const Malformed& error) {
    throw ConfigError({file.name}, stream_all(error.what(),
                                              "; expected a profile as Piper publishes it: "
                                              "{\"nodes\": [...], \"edges\": [...]}"));
  }
}

Layers read_piper_profile(const std::filesystem::path& path, Nanoseconds time_unit,
                          const ImportOptions& options) {
  return layers_of_piper(read_text_file(path), time_unit, options);
}

}  // namespace pfeife
