#include "planner/cost/operators/saved.h"

#include <algorithm>

#include "planner/cost/operators/contraction.h"
#include "planner/cost/operators/recurrent.h"
#include "planner/ir/model/arguments.h"
#include "planner/ir/model/product_gradients.h"

namespace pfeife {

namespace {

/// Two operands whose gradients are einsums, too.
bool splits(const Node& einsum) {
  const Argument* equation = einsum.find("equation");
  const auto* text = equation ? std::get_if<std::string>(&equation->value) : nullptr;
  return text != nullptr && einsum_gradients(*text).has_value();
}

}  // namespace

bool deferred_to_weight(const GraphFacts& facts, NodeId n, ValueId v) {
  const OperatorTraits* row = facts.traits[n.index()];
  if (row == nullptr || !facts.needs_gradient(v) || !facts.is_parameter(v)) return false;
  const bool itself = facts.graph.value(v).role == ValueRole::Parameter;
  switch (row->work) {
    case OperatorWork::Lookup:
      return itself && tensor_argument(facts.node(n), "weight") == v;
    case OperatorWork::Product:
    case OperatorWork::Convolution:
      return itself;
    case OperatorWork::GroupedProduct:
      return parameter_behind(facts.graph, v) != kNoValue;
    case OperatorWork::Einsum:
      return itself && splits(facts.node(n));
    default:
      break;
  }
  if (!facts.is_view(n)) return false;  // a view on the way to one of those waits with it
  const ValueId seen = facts.node(n).outputs.front();
  const auto reader = sole_reader(facts.graph, seen);
  return reader && parameter_behind(facts.graph, seen) == v &&
         deferred_to_weight(facts, *reader, seen);
}

bool attention_by_parts(const Node& node, DeviceType device) {
  return device == DeviceType::Cpu && number_argument(node, "dropout_p", 0) > 0;
}

namespace {

constexpr Bytes kStatistics{8};  // mean and reciprocal deviation, fp32
constexpr Bytes kFloat{4};
constexpr std::size_t kPairOfOutputs = 2;  // values and their places

bool is_complex(DType type) {
  return type == DType::Complex32 || type == DType::Complex64 || type == DType::Complex128;
}

class Keeper {
 public:
  Keeper(const GraphFacts& facts, DeviceType device)
      : facts_(facts), device_(device), index_(facts.graph.values.size(), kNone) {
    memory_.node_bytes.resize(facts.graph.nodes.size());
    memory_.node_weight_bytes.resize(facts.graph.nodes.size());
  }

  SavedMemory collect() {
    for (const NodeId n : nodes_of(facts_.graph)) {
      if (!facts_.gives_gradient(n)) continue;
      node_ = n;
      if (facts_.traits[n.index()] == nullptr)
        keep_everything();
      else
        keep(facts_.node(n), facts_.traits[n.index()]->keeps);
    }
    return std::move(memory_);
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  bool needs(ValueId v) const { return facts_.needs_gradient(v); }
  void keep_bytes(Bytes bytes) { memory_.node_bytes[node_.index()] += bytes; }

  SavedStorage& entry(ValueId root, Bytes bytes) {
    std::size_t& at = index_[root.index()];
    if (at == kNone) {
      at = memory_.storages.size();
      memory_.storages.push_back({root, bytes, {}, {}});
    }
    return memory_.storages[at];
  }
  void add_node(std::vector<NodeId>& nodes) const {
    if (nodes.empty() || nodes.back() != node_) nodes.push_back(node_);
  }

  /// Keeps operand `v`, for W as well if `weight`: its storage, or the copy the operator made.
  void keep_value(ValueId v, bool weight = false) {
    if (v == kNoValue) return;
    const Bytes copy = facts_.operand_copy(node_, v);
    const ValueId root = facts_.storage(v);
    const ValueRole role = facts_.role(v);
    if (copy > Bytes{0}) {
      if (role == ValueRole::Parameter) return add_node(entry(root, copy).savers);
      keep_bytes(copy);
      if (weight) memory_.node_weight_bytes[node_.index()] += copy;
      return;
    }
    if (role != ValueRole::Intermediate && role != ValueRole::Input) return;
    SavedStorage& storage = entry(root, facts_.bytes(root));
    add_node(storage.savers);
    if (weight) add_node(storage.weight_savers);
  }

  void keep(const Node& node, Keeps rule) {
    const ValueId input = first_tensor(node), output = node.outputs.front();
    switch (rule) {
      case Keeps::Nothing:
        return;
      case Keeps::Input:
        return keep_value(input);
      case Keeps::InputCopy:
        return keep_bytes(facts_.bytes(input));
      case Keeps::RealInput:
        return is_complex(facts_.types[input.index()]) ? void() : keep_value(input);
      case Keeps::InputAndOutput:
        keep_value(input);
        return keep_value(output);
      case Keeps::InputUnlessConstant:
        return pads_with_number(node) ? void() : keep_value(input);
      case Keeps::Power:
        return tensor_argument(node, "exponent") == kNoValue ? keep_value(input)
                                                             : keep_everything();
      case Keeps::Everything:
        return keep_everything();
      case Keeps::InputUnlessMean:
        return is_mean(facts_.type(output)) ? void() : keep_value(input);
      case Keeps::Output:
        return keep_value(output);
      case Keeps::OtherOperand:
      case Keeps::Divisor:
        return keep_factors(node, rule == Keeps::Divisor);
      case Keeps::ProductOperands:
        return facts_.traits[node_.index()]->work == OperatorWork::Einsum ? keep_contractions(node)
                                                                          : keep_operands(node);
      case Keeps::Gates:
        return keep_gates(node);
      case Keeps::Statistics:
        keep_value(input);
        if (node.op == "aten::instance_norm" && tensor_argument(node, "weight") != kNoValue)
          keep_bytes(statistics(node) * kFloat);  // the weight for each sample
        return keep_bytes(statistics(node) * kStatistics);
      case Keeps::RowScale:
        return keep_row_scale(node);
      case Keeps::Attention:
        return attention_by_parts(node, device_) ? keep_attention_parts(node)
                                                 : keep_attention(node);
      case Keeps::StateSpace: {
        keep_value(input);
        const TensorType& result = facts_.type(output);
        const auto groups = static_cast<std::int64_t>(number_argument(node, "groups", 1));
        keep_bytes(result.elements() / extent_from_back(result, 1) * groups * kFloat);
        return keep_bytes(facts_.bytes(output));
      }
      case Keeps::Mask:
        return facts_.is_view(node_) ? void() : keep_bytes(mask(output));
      case Keeps::LogSoftmax:
        keep_bytes(facts_.type(input).elements() * kFloat + kFloat);  // and the sum of the weights
        return keep_value(tensor_argument(node, "target"));
      case Keeps::BothInputs:
        for (const ValueId v : facts_.distinct_inputs(node_)) keep_value(v);
        return;
      case Keeps::Difference:
        return keep_bytes(facts_.bytes(input));
      case Keeps::Indices:
        return keep_indices(node);
      case Keeps::IndicesAndSource:
        keep_indices(node);
        return keep_value(tensor_argument(node, "source"));
      case Keeps::OutputIndices:
        return keep_output_indices(node);
      case Keeps::Extremum:
        return keep_extremum(node);
      case Keeps::Condition:
        keep_value(tensor_argument(node, "condition"));
        return keep_value(tensor_argument(node, "mask"));
      case Keeps::InputAndIndices:
        keep_value(input);
        return keep_bytes(facts_.type(output).elements() * element_size(DType::Int64));
    }
  }

  /// Without a row in the table: whatever could be needed.
  void keep_everything() {
    for (const ValueId v : facts_.distinct_inputs(node_)) keep_value(v);
    for (const ValueId v : facts_.node(node_).outputs) keep_value(v);
  }

  /// "reflect" and "replicate" are operators of their own underneath.
  static bool pads_with_number(const Node& node) {
    const Argument* mode = node.find("mode");
    const auto* text = mode ? std::get_if<std::string>(&mode->value) : nullptr;
    return text == nullptr || (*text != "reflect" && *text != "replicate");
  }
  /// One value a channel.
  static bool is_mean(const TensorType& pooled) {
    std::int64_t window = 1;
    for (std::size_t d = 2; d < pooled.sizes.size(); ++d) window *= pooled.sizes[d];
    return window == 1;
  }
  Bytes mask(ValueId dropped) const {
    if (facts_.node(node_).op.find("feature_") != std::string::npos) {  // a number a channel
      const TensorType& type = facts_.type(dropped);
      const std::int64_t channels =
          type.sizes.size() < 2 ? type.elements() : type.sizes[0] * type.sizes[1];
      return channels * element_size(facts_.types[dropped.index()]);
    }
    return device_ == DeviceType::Cpu ? facts_.bytes(dropped)
                                      : Bytes{facts_.type(dropped).elements()};
  }

  void keep_factors(const Node& node, bool divides) {
    const ValueId self = tensor_argument(node, "self"), other = tensor_argument(node, "other");
    if (other == kNoValue) return;  // a number
    if (needs(other)) keep_value(self);
    if (needs(self) || divides) keep_value(other);
  }

  /// Each operand iff the other one needs a gradient.
  void keep_operands(const Node& node) {
    const auto [left, right, bias] = factors_of(node);
    if (node.op.find("cdist") != std::string::npos) keep_value(node.outputs.front());
    keep_value(tensor_argument(node, "input2"));  // of bilinear
    const bool left_waits = deferred_to_weight(facts_, node_, left),
               right_waits = deferred_to_weight(facts_, node_, right);
    if (right != kNoValue && needs(right)) keep_value(left, right_waits);
    if (left != kNoValue && needs(left)) keep_value(right, left_waits);
    if (left_waits || right_waits || deferred_to_weight(facts_, node_, bias))
      memory_.node_weight_bytes[node_.index()] += facts_.bytes(node.outputs.front());
  }

  /// Keeps, for each product of the chain, a factor iff the other one needs a gradient; results in
  /// between, and operands laid out anew, are the node's own.
  void keep_contractions(const Node& node) {
    const std::vector<ValueId> operands = inputs_of(node);
    std::vector<bool> needed;
    for (const ValueId v : operands) needed.push_back(needs(v));
    const Bytes element = element_size(facts_.types[node.outputs.front().index()]);
    for (const Contraction& product : contractions_of(facts_.graph, node)) {
      const auto waits = [&](const Contraction::Factor& factor) {
        return factor.number < operands.size() &&
               deferred_to_weight(facts_, node_, operands[factor.number]);
      };
      const auto keep_factor = [&](const Contraction::Factor& factor, bool wanted, bool weight) {
        if (!wanted) return;
        const bool own = factor.number >= operands.size();
        if (!own && !factor.copied) return keep_value(operands[factor.number], weight);
        keep_bytes(factor.elements * element);
        if (weight) memory_.node_weight_bytes[node_.index()] += factor.elements * element;
      };
      const bool left = needed[product.left.number], right = needed[product.right.number];
      const bool left_waits = waits(product.left), right_waits = waits(product.right);
      keep_factor(product.left, right, right_waits);
      keep_factor(product.right, left, left_waits);
      needed.push_back(left || right);
      if (left_waits || right_waits)
        memory_.node_weight_bytes[node_.index()] += facts_.bytes(node.outputs.front());
    }
  }

  /// What the steps keep where they are computed by parts (what cuDNN reserves is not published,
  /// and not less): inputs (of samples first, a copy each direction on a CPU), states before each
  /// step, and of an LSTM the four gates and the state's tanh, of a GRU its gates, the candidate,
  /// its difference to the state and a copy before the reset.
  void keep_gates(const Node& node) {
    const RecurrentShape shape = recurrent_shape(facts_.graph, node);
    const bool turned = device_ == DeviceType::Cpu && flag_argument(node, "batch_first", false) &&
                        shape.steps > 1 && shape.rows > shape.steps;
    for (const char* name : {"input", "data"})
      if (const ValueId v = tensor_argument(node, name); turned && v != kNoValue)
        keep_bytes(shape.directions * facts_.bytes(v));
      else
        keep_value(v);
    if (const Argument* hx = node.find("hx"))
      if (const auto* states = std::get_if<std::vector<ValueId>>(&hx->value))
        for (const ValueId v : *states) keep_value(v);
    keep_value(tensor_argument(node, "hx"));
    const std::int64_t later = shape.rows - shape.rows / shape.steps;  // states that steps made
    std::int64_t elements = 0;
    for (const RecurrentShape::Cell& cell : shape.cells) {
      const bool projects = cell.every_step.size() > 1;
      const std::int64_t state = facts_.type(cell.every_step.front()).sizes[1];
      if (shape.gates == 4)
        elements += shape.rows * (projects ? 6 : 5) * cell.width + later * (cell.width + state);
      else if (shape.gates == 3)
        elements += shape.rows * 6 * cell.width + later * state;
      else
        elements += shape.rows * cell.width;
      if (!cell.reads_input)  // what the layer before gave; both directions read it
        elements += shape.rows * facts_.type(cell.from_input).sizes[1] / shape.directions;
    }
    keep_bytes(elements * element_size(facts_.types[node.outputs.front().index()]));
  }

  /// A GPU has a kernel of its own for it.
  void keep_row_scale(const Node& node) {
    const ValueId input = first_tensor(node);
    keep_value(input);
    keep_bytes(statistics(node) * kFloat);
    if (device_ == DeviceType::Cpu && tensor_argument(node, "weight") != kNoValue)
      keep_bytes(facts_.bytes(input));
  }

  void keep_output_indices(const Node& node) {
    for (const ValueId v : node.outputs)
      if (!is_floating(facts_.types[v.index()])) keep_value(v);
  }
  void keep_extremum(const Node& node) {
    if (node.outputs.size() == kPairOfOutputs) return keep_output_indices(node);
    for (const ValueId v : facts_.distinct_inputs(node_)) keep_value(v);
    if (node.find("other") == nullptr) keep_value(node.outputs.front());
  }

  void keep_indices(const Node& node) {
    const bool waits = deferred_to_weight(facts_, node_, tensor_argument(node, "weight"));
    for (const ValueId v : facts_.distinct_inputs(node_))
      if (!is_floating(facts_.types[v.index()])) keep_value(v, waits);
    if (facts_.traits[node_.index()]->work == OperatorWork::Bag) keep_output_indices(node);
    if (waits) memory_.node_weight_bytes[node_.index()] += facts_.bytes(node.outputs.front());
  }

  void keep_attention(const Node& node) {
    for (const char* operand : {"query", "key", "value"})
      keep_value(tensor_argument(node, operand));
    keep_value(node.outputs.front());
    const ValueId query = tensor_argument(node, "query"), mask = tensor_argument(node, "attn_mask");
    if (mask != kNoValue && facts_.types[mask.index()] == DType::Bool)  // made additive first
      keep_bytes(
          facts_.type(mask).elements() *
          element_size(facts_.cast_type(node_, query).value_or(facts_.types[query.index()])));
    else
      keep_value(mask);
    const TensorType& queries = facts_.type(query);
    keep_bytes(queries.elements() / extent_from_back(queries, 1) * kFloat);
  }

  /// Softmax of the scores, dropout's mask, the dropped softmax; scaled query and key; the value,
  /// or a copy of it if its heads are no batch of matrices.
  void keep_attention_parts(const Node& node) {
    const ValueId query = tensor_argument(node, "query"), key = tensor_argument(node, "key");
    const Bytes element =
        element_size(facts_.cast_type(node_, query).value_or(facts_.types[query.index()]));
    const TensorType &q = facts_.type(query), &k = facts_.type(key);
    const std::int64_t scores = q.elements() / extent_from_back(q, 1) * extent_from_back(k, 2);
    keep_bytes((q.elements() + k.elements() + 3 * scores) * element);
    const ValueId value = tensor_argument(node, "value");
    const TensorType& v = facts_.type(value);
    const std::int64_t rows = extent_from_back(v, 2), depth = extent_from_back(v, 1);
    if (viewable(v, {v.elements() / (rows * depth), rows, depth}))
      keep_value(value);
    else
      keep_bytes(v.elements() * element);
  }

  /// Number of (mean, deviation) pairs of a norm.
  std::int64_t statistics(const Node& node) const {
    const TensorType& input = facts_.type(first_tensor(node));
    if (const Argument* shape = node.find("normalized_shape")) {
      std::int64_t row = 1;
      if (const auto* sizes = std::get_if<std::vector<std::int64_t>>(&shape->value))
        for (const std::int64_t size : *sizes) row *= size;
      return input.elements() / std::max<std::int64_t>(row, 1);
    }
    const std::int64_t samples = input.sizes.empty() ? 1 : input.sizes.front();
    for (const char* groups : {"num_groups", "group"})
      if (node.find(groups) != nullptr)
        return samples * static_cast<std::int64_t>(number_argument(node, groups, 1));
    if (node.op == "aten::instance_norm" && input.sizes.size() > 1) return samples * input.sizes[1];
    return input.sizes.size() < 2 ? 1 : input.sizes[1];  // batch norm: channels
  }

  const GraphFacts& facts_;
  DeviceType device_;
  NodeId node_;
  SavedMemory memory_;
  std::vector<std::size_t> index_;  // [value] into memory_.storages
};

}  // namespace

SavedMemory saved_memory(const GraphFacts& facts, DeviceType device) {
  return Keeper(facts, device).collect();
}

}  // namespace pfeife
