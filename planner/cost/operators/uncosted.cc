#include "planner/cost/operators/uncosted.h"

#include <algorithm>
#include <map>

#include "planner/cost/operators/work.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// The FLOPs of a product of the first tensor that the node reads with its parameters.
double as_product(const GraphFacts& facts, NodeId n) {
  double parameters = 0;
  for (const ValueId v : facts.distinct_inputs(n))
    if (facts.is_parameter(v)) parameters += static_cast<double>(facts.type(v).elements());
  const auto first =
      std::ranges::find_if(facts.inputs(n), [&](ValueId v) { return !facts.is_parameter(v); });
  if (first == facts.inputs(n).end()) return 0;
  const TensorType& type = facts.type(*first);
  return 2 * parameters * static_cast<double>(type.elements()) /
         static_cast<double>(extent_from_back(type, 1));
}

}  // namespace

std::vector<UncostedOperator> uncosted_operators(const FactsByPrecision& of,
                                                 std::span<const OperatorCost> costs) {
  const Graph& graph = of.graph;
  const GraphFacts& facts = of.at(Precision::Fp32);
  const auto has_cost = [&](NodeId n) {
    return facts.traits[n.index()] != nullptr ||
           std::ranges::find(costs, graph.node(n).op, &OperatorCost::op) != costs.end();
  };
  if (std::ranges::all_of(nodes_of(graph), has_cost)) return {};
  const SavedMemory saved = saved_memory(facts, DeviceType::Gpu);
  const KernelList kernels(facts, saved, DeviceType::Gpu, costs);
  std::map<std::string, UncostedOperator> found;
  double flops = 0, bytes = 0;
  for (const NodeId n : nodes_of(graph)) {
    double moved = 0;
    for (const Kernel& kernel : kernels.at(n)) {
      if (kernel.pass != Pass::Forward) continue;
      const auto times = static_cast<double>(kernel.times);
      moved += times * static_cast<double>(kernel.bytes.value);
      flops += times * kernel.flops.value;
    }
    bytes += moved;
    if (has_cost(n)) continue;
    const Node& node = graph.node(n);
    UncostedOperator& sum = found[node.op];
    if (sum.nodes++ == 0)
      sum.op = node.op, sum.first = node.name, sum.module_path = node.module_path;
    const double product = as_product(facts, n);
    sum.reads_parameters = sum.reads_parameters || product > 0;
    sum.of_bytes += moved;
    sum.of_flops += product;
    flops += product;
  }
  std::vector<UncostedOperator> list;
  for (auto& [op, sum] : found) {
    sum.of_bytes = bytes > 0 ? sum.of_bytes / bytes : 0;
    sum.of_flops = flops > 0 ? sum.of_flops / flops : 0;
    list.push_back(std::move(sum));
  }
  return list;
}

std::string to_string(const UncostedOperator& uncosted) {
  return stream_all(
      uncosted.op, " (", uncosted.nodes, uncosted.nodes == 1 ? " node, '" : " nodes, the first '",
      uncosted.first, "'", uncosted.module_path.empty() ? "" : " in " + uncosted.module_path,
      ") is charged by its bytes, ", fixed(100 * uncosted.of_bytes, 1), " % of all",
      uncosted.of_flops > 0 ? "; as a product with its parameters it would be " +
                                  fixed(100 * uncosted.of_flops, 1) + " % of the FLOPs"
                            : "",
      "; say what it costs under `operators`: {", uncosted.op,
      ": {flops: \"2*m*n*k\", bytes: io}}, or {", uncosted.op,
      ": {bytes: io}} if its bytes are all");
}

}  // namespace pfeife
