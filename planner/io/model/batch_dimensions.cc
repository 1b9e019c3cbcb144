#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "planner/io/files/json_fields.h"
#include "planner/io/model/batch_symbol.h"
#include "planner/io/model/pt2_parts.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

using json_fields::Json;
using json_fields::Malformed;

std::string with_shape(const Value& input) {
  std::string text;
  for (const std::int64_t size : input.type.sizes)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "the input '" + input.name + "' [" + text + "]";
}

/// Every input's batch is `size` samples long.
void take_batch(Graph& graph, Value& input, std::size_t dimension, bool first) {
  const std::int64_t size = input.type.sizes[dimension];
  if (first) graph.microbatch_size = size;
  if (size != graph.microbatch_size)
    throw Malformed(stream_all(with_shape(input), " has ", size, " samples in dimension ",
                               dimension, ", the inputs before it have ", graph.microbatch_size,
                               "; export the model again"));
  input.batch_dimension = dimension;
}

void take_dimensions(Graph& graph, const Json& dimensions) {
  bool first = true;
  for (const auto& [name, dimension] : json_fields::object(dimensions).items()) {
    const auto found = std::ranges::find_if(
        graph.inputs, [&, &name = name](ValueId id) { return graph.value(id).name == name; });
    if (found == graph.inputs.end())
      throw Malformed("extra/pfeife.json: batch_dimensions: the model has no input '" + name + "'");
    Value& input = graph.values[found->index()];
    const std::int64_t at = json_fields::integer(dimension);
    if (at < 0 || at >= static_cast<std::int64_t>(input.type.sizes.size()))
      throw Malformed(stream_all("extra/pfeife.json: batch_dimensions: ", with_shape(input),
                                 " has no dimension ", at));
    take_batch(graph, input, static_cast<std::size_t>(at), std::exchange(first, false));
  }
}

/// The lengths that every input has exactly once.
std::set<std::int64_t> common_lengths(const Graph& graph) {
  std::set<std::int64_t> common;
  bool first = true;
  for (const ValueId id : graph.inputs) {
    const std::vector<std::int64_t>& sizes = graph.value(id).type.sizes;
    if (sizes.empty()) continue;
    if (std::exchange(first, false)) common = {sizes.begin(), sizes.end()};
    std::erase_if(common, [&](std::int64_t size) { return std::ranges::count(sizes, size) != 1; });
  }
  return common;
}

void find_by_length(Graph& graph) {
  std::vector<Value*> inputs;
  for (const ValueId id : graph.inputs)
    if (!graph.value(id).type.sizes.empty()) inputs.push_back(&graph.values[id.index()]);
  if (inputs.empty()) return;
  const auto length = [](const Value* input) { return input->type.sizes[0]; };
  const auto other = std::ranges::find_if(
      inputs, [&](const Value* input) { return length(input) != length(inputs[0]); });
  if (other == inputs.end()) {
    for (Value* input : inputs) take_batch(graph, *input, 0, input == inputs[0]);
    return;
  }
  const std::set<std::int64_t> common = common_lengths(graph);
  if (common.size() != 1)
    throw Malformed("which dimension of the inputs is the batch is not known: " +
                    with_shape(*inputs[0]) + " and " + with_shape(**other) +
                    " differ in their first, and no single length is in every input once; export "
                    "with configs/models/export_models.py --module, which stores it");
  for (Value* input : inputs) {
    const std::vector<std::int64_t>& sizes = input->type.sizes;
    const auto at = std::ranges::find(sizes, *common.begin()) - sizes.begin();
    take_batch(graph, *input, static_cast<std::size_t>(at), input == inputs[0]);
  }
}

}  // namespace

std::optional<std::size_t> open_batch_dimension(const Value& input, const Json& sizes) {
  std::optional<std::size_t> found;
  for (std::size_t d = 0; d < json_fields::array(sizes).size(); ++d) {
    if (!BatchSymbol::is_open(sizes[d])) continue;
    if (!BatchSymbol::is_samples(sizes[d]))
      throw Malformed(stream_all(with_shape(input), ": dimension ", d,
                                 " is not the number of samples ",
                                 "but computed from it; pass an input with one dimension of "
                                 "samples and reshape it in forward"));
    if (found)
      throw Malformed(stream_all(with_shape(input), " has the samples in dimension ", *found,
                                 " and in ", d,
                                 "; a microbatch is cut along one: compute what belongs to "
                                 "pairs of samples in forward"));
    found = d;
  }
  return found;
}

void settle_fixed_batch(Graph& graph, const Json& facts) {
  if (const Json* dimensions = json_fields::optional_field(facts, "batch_dimensions"))
    take_dimensions(graph, *dimensions);
  else
    find_by_length(graph);
}

}  // namespace pfeife
