#include "planner/cost/work.h"

#include <algorithm>

namespace pfeife {
namespace {

constexpr Bytes kAccumulate{12};  // read the sum, read the new gradient, write the sum, fp32
constexpr Bytes kCast{6};         // read 4, write 2

class Counter {
 public:
  Counter(const Graph& graph, const Aliasing& aliases, bool autocast)
      : graph_(graph), aliases_(aliases), autocast_(autocast) {
    readers_.assign(graph.values.size(), 0);
    for (const Node& node : graph.nodes) {
      if (!gives_gradient(node)) continue;
      for (const ValueId v : inputs_of(node)) ++readers_[v.index()];
    }
  }

  NodeWork count(const Node& node) const {
    const OperatorTraits* traits = find_operator(node.op);
    NodeWork work;
    work.known = traits != nullptr;
    if (node.outputs.empty()) return work;
    const bool view = aliases_.storage[node.outputs.front().index()] != node.outputs.front() &&
                      !(traits && traits->memory == Memory::InPlace);
    const Work kind = view ? Work::None : traits ? traits->work : Work::Stream;
    switch (kind) {
      case Work::None:
        break;
      case Work::Create:
        work.forward = {{}, outputs(node), 1};
        break;
      case Work::Stream:
        count_stream(node, traits, work);
        break;
      case Work::Norm:
        count_norm(node, work);
        break;
      case Work::Lookup:
        count_lookup(node, work);
        break;
      case Work::Product:
        count_product(node, work);
        break;
      case Work::Convolution:
        count_convolution(node, work);
        break;
      case Work::Attention:
        count_attention(node, work);
        break;
    }
    add_gradient_sums(node, work);
    return work;
  }

 private:
  const TensorType& type(ValueId v) const { return graph_.value(v).type; }
  bool needs(ValueId v) const { return v.value >= 0 && graph_.value(v).requires_grad; }
  bool gives_gradient(const Node& node) const {
    return std::ranges::any_of(node.outputs, [&](ValueId v) { return needs(v); });
  }
  bool is_parameter(ValueId v) const {
    return graph_.value(aliases_.storage[v.index()]).role == ValueRole::Parameter;
  }
  Bytes outputs(const Node& node) const {
    Bytes sum;
    for (const ValueId v : node.outputs) sum += type(v).bytes();
    return sum;
  }
  Bytes inputs(const Node& node) const {
    Bytes sum;
    for (const ValueId v : inputs_of(node)) sum += type(v).bytes();
    return sum;
  }
  static void add(PassWork& to, Flops flops, Bytes bytes) {
    to.flops += flops;
    to.bytes += bytes;
    ++to.kernels;
  }

  void count_stream(const Node& node, const OperatorTraits* traits, NodeWork& work) const {
    add(work.forward, {}, inputs(node) + outputs(node));
    if (!gives_gradient(node)) return;
    const bool passes_on =
        node.op == "aten::add" || node.op == "aten::add_" || node.op == "aten::sub";
    const bool reads_saved = traits && traits->keeps != Keeps::Nothing;
    for (const ValueId v : inputs_of(node)) {
      if (!needs(v)) continue;
      const Bytes gradient = type(v).bytes(), incoming = outputs(node);
      if (passes_on && gradient == incoming) continue;  // the same tensor serves as gradient
      add(work.backward_input, {},
          incoming + gradient + (reads_saved ? std::max(gradient, incoming) : Bytes{0}));
    }
  }

  /// Forward reads and writes; backward reads both gradient and input twice (once for the
  /// parameters) and writes.
  void count_norm(const Node& node, NodeWork& work) const {
    const Bytes size = type(first_tensor(node)).bytes();
    add(work.forward, {}, size + outputs(node));
    if (!gives_gradient(node)) return;
    add(work.backward_input, {}, 3 * size);
    if (needs(tensor_argument(node, "weight"))) add(work.backward_input, {}, 2 * size);
  }

  void count_lookup(const Node& node, NodeWork& work) const {
    const ValueId weight = tensor_argument(node, "weight");
    add(work.forward, {}, 2 * outputs(node));
    if (!needs(weight)) return;
    // A dense gradient: zeros of the table's size, the rows added, then added to the parameter's.
    add(work.backward_weight, {}, type(weight).bytes() + 2 * outputs(node));
    add(work.backward_weight, {}, type(weight).elements() * kAccumulate);
  }

  struct Operands {
    ValueId left{-1}, right{-1}, bias{-1};
  };
  static Operands operands(const Node& node) {
    if (node.op == "aten::addmm")
      return {tensor_argument(node, "mat1"), tensor_argument(node, "mat2"),
              tensor_argument(node, "self")};
    if (node.op == "aten::linear")
      return {tensor_argument(node, "input"), tensor_argument(node, "weight"),
              tensor_argument(node, "bias")};
    const ValueId other = tensor_argument(node, "other");
    return {tensor_argument(node, "self"), other.value >= 0 ? other : tensor_argument(node, "mat2"),
            ValueId{-1}};
  }

  void count_product(const Node& node, NodeWork& work) const {
    const Operands by = operands(node);
    if (by.left.value < 0 || by.right.value < 0) return;
    const std::int64_t inner = type(by.left).sizes.empty() ? 1 : type(by.left).sizes.back();
    const Flops flops{2.0 * static_cast<double>(type(node.outputs.front()).elements()) *
                      static_cast<double>(inner)};
    count_two_operands(node, by.left, by.right, by.bias, flops, work);
  }

  void count_convolution(const Node& node, NodeWork& work) const {
    const ValueId weight = tensor_argument(node, "weight");
    double window = 1;
    for (std::size_t d = 1; d < type(weight).sizes.size(); ++d)
      window *= static_cast<double>(type(weight).sizes[d]);
    const Flops flops{2.0 * static_cast<double>(type(node.outputs.front()).elements()) * window};
    count_two_operands(node, tensor_argument(node, "input"), weight, tensor_argument(node, "bias"),
                       flops, work);
  }

  /// Forward once, and once more for each operand that needs a gradient.
  void count_two_operands(const Node& node, ValueId left, ValueId right, ValueId bias, Flops flops,
                          NodeWork& work) const {
    const Bytes out = outputs(node);
    add(work.forward, flops, product_bytes(left) + product_bytes(right) + out);
    for (const ValueId operand : {left, right}) {
      if (autocast_ && type(operand).dtype == DType::Float32)
        add(work.forward, {}, type(operand).elements() * kCast);
      if (!needs(operand)) continue;
      const ValueId other = operand == left ? right : left;
      PassWork& pass = is_parameter(operand) ? work.backward_weight : work.backward_input;
      add(pass, flops, out + product_bytes(other) + product_bytes(operand));
      if (autocast_ && type(operand).dtype == DType::Float32)
        add(pass, {}, type(operand).elements() * kCast);
      if (is_parameter(operand)) add(pass, {}, type(operand).elements() * kAccumulate);
    }
    if (needs(bias))
      add(is_parameter(bias) ? work.backward_weight : work.backward_input, {},
          out + type(bias).bytes());
  }
  Bytes product_bytes(ValueId v) const {
    return autocast_ && type(v).dtype == DType::Float32 ? type(v).elements() * Bytes{2}
                                                        : type(v).bytes();
  }

  /// Two products forward, five backward (the scores once more); no discount for a causal mask.
  void count_attention(const Node& node, NodeWork& work) const {
    const TensorType &q = type(tensor_argument(node, "query")),
                     &k = type(tensor_argument(node, "key")),
                     &v = type(tensor_argument(node, "value"));
    double heads = 1;
    for (std::size_t d = 0; d + 2 < q.sizes.size(); ++d) heads *= static_cast<double>(q.sizes[d]);
    const auto back = [](const TensorType& t, std::size_t i) {
      return static_cast<double>(t.sizes[t.sizes.size() - i]);
    };
    const Flops flops{2.0 * heads * back(q, 2) * back(k, 2) * (back(q, 1) + back(v, 1))};
    add(work.forward, flops, inputs(node) + outputs(node));
    if (gives_gradient(node))
      add(work.backward_input, 2.5 * flops, 2 * inputs(node) + 2 * outputs(node));
  }

  /// A value read k times receives k gradients: k - 1 additions of two reads and a write.
  void add_gradient_sums(const Node& node, NodeWork& work) const {
    for (const ValueId v : node.outputs)
      if (needs(v))
        for (int extra = 1; extra < readers_[v.index()]; ++extra)
          add(work.backward_input, {}, 3 * type(v).bytes());
  }

  const Graph& graph_;
  const Aliasing& aliases_;
  bool autocast_;
  std::vector<int> readers_;  // [value] nodes that send it a gradient
};

}  // namespace

std::vector<NodeWork> node_work(const Graph& graph, const Aliasing& aliases, bool autocast) {
  const Counter counter(graph, aliases, autocast);
  std::vector<NodeWork> work;
  work.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) work.push_back(counter.count(node));
  return work;
}

}  // namespace pfeife
