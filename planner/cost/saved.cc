#include "planner/cost/saved.h"

#include <algorithm>
#include <map>
#include <set>

#include "planner/cost/operators.h"

namespace pfeife {
namespace {

constexpr Bytes kStatistics{8};  // mean and reciprocal deviation, fp32

class Keeper {
 public:
  Keeper(const Graph& graph, const Aliasing& aliases, Precision precision, bool cpu)
      : graph_(graph),
        aliases_(aliases),
        cpu_(cpu),
        autocast_(precision == Precision::Bf16Amp || precision == Precision::Fp16Amp) {
    memory_.own.resize(graph.nodes.size());
    memory_.weight_own.resize(graph.nodes.size());
  }

  SavedMemory collect() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      const OperatorTraits* traits = find_operator(node.op);
      if (traits == nullptr || node.outputs.empty()) continue;
      if (!std::ranges::any_of(node.outputs,
                               [&](ValueId v) { return graph_.value(v).requires_grad; }))
        continue;
      node_ = NodeId{static_cast<std::int64_t>(n)};
      keep(node, *traits);
    }
    return std::move(memory_);
  }

 private:
  bool needs(ValueId v) const { return v.value >= 0 && graph_.value(v).requires_grad; }
  bool is_parameter(ValueId v) const {
    return graph_.value(aliases_.storage[v.index()]).role == ValueRole::Parameter;
  }
  bool counts(ValueId v) const {
    const ValueRole role = graph_.value(aliases_.storage[v.index()]).role;
    return role != ValueRole::Parameter && role != ValueRole::Buffer;
  }

  /// Keeps the storage of `v`, for W as well if `weight`.
  void keep_value(ValueId v, bool weight = false) {
    if (v.value < 0 || !counts(v)) return;
    const ValueId root = aliases_.storage[v.index()];
    const auto [at, added] = index_.try_emplace(root, memory_.storages.size());
    if (added) memory_.storages.push_back({root, graph_.value(root).type.bytes(), {}, {}});
    add_once(memory_.storages[at->second].savers);
    if (weight) add_once(memory_.storages[at->second].weight_savers);
  }
  void add_once(std::vector<NodeId>& nodes) const {
    if (nodes.empty() || nodes.back() != node_) nodes.push_back(node_);
  }
  void keep_own(Bytes bytes) { memory_.own[node_.index()] += bytes; }

  void keep(const Node& node, const OperatorTraits& traits) {
    const ValueId input = first_tensor(node);
    const TensorType& out = graph_.value(node.outputs.front()).type;
    switch (traits.keeps) {
      case Keeps::Nothing:
        return;
      case Keeps::Input:
        return keep_value(input);
      case Keeps::Output:
        return keep_value(node.outputs.front());
      case Keeps::OtherOperand:
      case Keeps::Divisor:
        return keep_factors(node, traits.keeps == Keeps::Divisor);
      case Keeps::ProductOperands:
        return keep_operands(node);
      case Keeps::InputAndWeight:
        keep_operand(input, needs(tensor_argument(node, "weight")), true);
        return keep_operand(tensor_argument(node, "weight"), needs(input), false);
      case Keeps::Statistics:
        keep_value(input);
        return keep_own(statistics(node) * kStatistics);
      case Keeps::Attention:
        return keep_attention(node);
      case Keeps::Mask:
        if (aliases_.storage[node.outputs.front().index()] == node.outputs.front())
          keep_own(out.elements() * Bytes{cpu_ ? 4 : 1});
        return;
      case Keeps::LogSoftmax:
        keep_own(graph_.value(input).type.elements() * element_size(DType::Float32));
        return keep_value(tensor_argument(node, "target"));
      case Keeps::BothInputs:
        for (const ValueId v : inputs_of(node)) keep_value(v);
        return;
      case Keeps::Indices:
        for (const ValueId v : inputs_of(node))
          if (!is_floating(graph_.value(v).type.dtype)) keep_value(v);
        return;
      case Keeps::Condition:
        keep_value(tensor_argument(node, "condition"));
        return keep_value(tensor_argument(node, "mask"));
      case Keeps::InputAndIndices:
        keep_value(input);
        return keep_own(out.elements() * element_size(DType::Int64));
    }
  }

  void keep_factors(const Node& node, bool divides) {
    const ValueId self = tensor_argument(node, "self"), other = tensor_argument(node, "other");
    if (other.value < 0) return;  // a number
    if (needs(other)) keep_value(self);
    if (needs(self) || divides) keep_value(other);
  }

  /// Products keep each operand iff the other one needs a gradient; in W the operand that
  /// multiplies the gradient of a parameter, and that incoming gradient.
  void keep_operands(const Node& node) {
    ValueId left = tensor_argument(node, "input"), right = tensor_argument(node, "weight");
    if (node.op == "aten::addmm")
      left = tensor_argument(node, "mat1"), right = tensor_argument(node, "mat2");
    if (left.value < 0)
      left = tensor_argument(node, "self"), right = tensor_argument(node, "other");
    if (right.value < 0) right = tensor_argument(node, "mat2");
    if (left.value < 0 || right.value < 0) return;
    keep_operand(left, needs(right), is_parameter(right));
    keep_operand(right, needs(left), is_parameter(left));
    if ((needs(right) && is_parameter(right)) || (needs(left) && is_parameter(left)))
      memory_.weight_own[node_.index()] += product_bytes(graph_.value(node.outputs.front()).type);
  }

  void keep_operand(ValueId v, bool wanted, bool weight) {
    if (v.value < 0 || !wanted) return;
    const TensorType& type = graph_.value(v).type;
    if (autocast_ && type.dtype == DType::Float32) {
      // The 16-bit copy is what is kept, of parameters too; autocast caches copies of parameters
      // only.
      if (!is_parameter(v) || cast_.insert(v).second) keep_own(product_bytes(type));
      return;
    }
    if (counts(v) && copied_by_product(type)) {
      keep_own(type.bytes());
      return;
    }
    keep_value(v, weight);
  }
  Bytes product_bytes(const TensorType& type) const {
    return autocast_ && type.dtype == DType::Float32 ? type.elements() * Bytes{2} : type.bytes();
  }
  /// matmul folds all batch dimensions of an operand into one, by a copy if the strides do not
  /// allow it.
  static bool copied_by_product(const TensorType& type) {
    const std::size_t dims = type.sizes.size();
    if (dims < 4) return false;
    std::int64_t batch = 1;
    for (std::size_t d = 0; d + 2 < dims; ++d) batch *= type.sizes[d];
    return !viewable(type, {batch, type.sizes[dims - 2], type.sizes[dims - 1]});
  }

  void keep_attention(const Node& node) {
    for (const char* operand : {"query", "key", "value"})
      keep_value(tensor_argument(node, operand));
    keep_value(node.outputs.front());
    const TensorType& query = graph_.value(tensor_argument(node, "query")).type;
    std::int64_t rows = 1;
    for (std::size_t d = 0; d + 1 < query.sizes.size(); ++d) rows *= query.sizes[d];
    keep_own(rows * Bytes{4});  // log-sum-exp
  }

  /// Number of (mean, deviation) pairs of a norm.
  std::int64_t statistics(const Node& node) const {
    const TensorType& input = graph_.value(first_tensor(node)).type;
    if (node.op == "aten::batch_norm") return input.sizes.at(1);
    if (node.op == "aten::group_norm")
      return input.sizes.at(0) * static_cast<std::int64_t>(number_argument(node, "num_groups", 1));
    const Argument* shape = node.find("normalized_shape");
    std::int64_t row = 1;
    if (shape != nullptr)
      if (const auto* sizes = std::get_if<std::vector<std::int64_t>>(&shape->value))
        for (const std::int64_t size : *sizes) row *= size;
    return input.elements() / std::max<std::int64_t>(row, 1);
  }

  const Graph& graph_;
  const Aliasing& aliases_;
  bool cpu_, autocast_;
  NodeId node_;
  SavedMemory memory_;
  std::map<ValueId, std::size_t> index_;
  std::set<ValueId> cast_;
};

}  // namespace

SavedMemory saved_memory(const Graph& graph, const Aliasing& aliases, Precision precision,
                         bool cpu) {
  return Keeper(graph, aliases, precision, cpu).collect();
}

}  // namespace pfeife
