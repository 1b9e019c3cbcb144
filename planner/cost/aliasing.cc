#include "planner/cost/aliasing.h"

#include "planner/cost/operators.h"

namespace pfeife {

bool contiguous(const TensorType& type) {
  std::int64_t expected = 1;
  for (std::size_t d = type.sizes.size(); d-- > 0;) {
    if (type.sizes[d] != 1 && type.strides[d] != expected) return false;
    expected *= type.sizes[d];
  }
  return true;
}

bool viewable(const TensorType& from, const std::vector<std::int64_t>& sizes) {
  if (from.elements() == 0 || from.sizes.empty()) return true;
  // Walk both shapes from the back: each run of dimensions that lie in one another must hold whole
  // new dimensions.
  std::size_t next = sizes.size();
  std::int64_t run = 1, base = from.strides.back();
  for (std::size_t d = from.sizes.size(); d-- > 0;) {
    run *= from.sizes[d];
    const bool ends = d == 0 || (from.sizes[d - 1] != 1 && from.strides[d - 1] != run * base);
    if (!ends) continue;
    std::int64_t covered = 1;
    while (next > 0 && (covered < run || sizes[next - 1] == 1)) covered *= sizes[--next];
    if (covered != run) return false;
    if (d > 0) base = from.strides[d - 1], run = 1;
  }
  return next == 0;
}

ValueId tensor_argument(const Node& node, const std::string& name) {
  const Argument* argument = node.find(name);
  if (argument == nullptr) return ValueId{-1};
  const auto* value = std::get_if<ValueId>(&argument->value);
  return value ? *value : ValueId{-1};
}

ValueId first_tensor(const Node& node) {
  const std::vector<ValueId> inputs = inputs_of(node);
  return inputs.empty() ? ValueId{-1} : inputs.front();
}

double number_argument(const Node& node, const std::string& name, double otherwise) {
  const Argument* argument = node.find(name);
  if (argument == nullptr) return otherwise;
  if (const auto* real = std::get_if<double>(&argument->value)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(&argument->value))
    return static_cast<double>(*whole);
  return otherwise;
}

bool flag_argument(const Node& node, const std::string& name, bool otherwise) {
  const Argument* argument = node.find(name);
  const auto* flag = argument ? std::get_if<bool>(&argument->value) : nullptr;
  return flag ? *flag : otherwise;
}

static bool shares(const Graph& graph, const Node& node, Memory memory, ValueId input) {
  const TensorType& from = graph.value(input).type;
  switch (memory) {
    case Memory::View:
    case Memory::InPlace:
      return true;
    case Memory::ViewIfFits:
      return viewable(from, graph.value(node.outputs.front()).type.sizes);
    case Memory::ViewIfSame: {
      const TensorType& to = graph.value(node.outputs.front()).type;
      if (node.op == "aten::contiguous") return contiguous(from);
      return to.dtype == from.dtype && !flag_argument(node, "copy", false);
    }
    case Memory::ViewIfIdle:
      return number_argument(node, "p", 0.5) == 0 || !flag_argument(node, "train", true);
    case Memory::Fresh:
      return false;
  }
  return false;
}

Aliasing aliasing(const Graph& graph) {
  Aliasing result;
  result.storage.reserve(graph.values.size());
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    result.storage.emplace_back(static_cast<std::int64_t>(v));
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const NodeId id{static_cast<std::int64_t>(n)};
    const OperatorTraits* traits = find_operator(node.op);
    const ValueId input = first_tensor(node);
    Memory memory = traits ? traits->memory : Memory::Fresh;
    if (traits == nullptr && node.op.ends_with('_')) memory = Memory::InPlace;
    if (input.value >= 0 && !node.outputs.empty() && shares(graph, node, memory, input)) {
      const std::vector<ValueId> inputs = inputs_of(node);
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const ValueId source = node.op == "aten::broadcast_tensors" ? inputs.at(i) : input;
        result.storage[node.outputs[i].index()] = result.storage[source.index()];
      }
    }
    if (memory == Memory::InPlace && input.value >= 0)
      result.writes.push_back({id, result.storage[input.index()]});
    if (node.op == "aten::batch_norm" && flag_argument(node, "training", false))
      for (const char* running : {"running_mean", "running_var"})
        if (const ValueId buffer = tensor_argument(node, running); buffer.value >= 0)
          result.writes.push_back({id, result.storage[buffer.index()]});
  }
  return result;
}

}  // namespace pfeife
