#include "planner/cost/roofline.h"

#include <algorithm>
#include <map>

#include "planner/cost/autocast.h"
#include "planner/cost/saved.h"
#include "planner/cost/work.h"
#include "planner/ir/error.h"

namespace pfeife {
namespace {

// Fractions of the efficiency of a large square product that other products reach; our assumptions.
constexpr double kConvolution = 0.7;
constexpr double kBatchedProduct = 0.6;  // many small products of activations: 0.4 to 0.8
constexpr double kAttention = 0.45;      // fused attention kernel

/// The name under which a device lists the peak that products run at.
std::string peak_name(Precision precision) {
  switch (precision) {
    case Precision::Fp32:
      return "fp32";
    case Precision::Tf32:
      return "tf32";
    case Precision::Bf16Amp:
      return "bf16";
    case Precision::Fp16Amp:
      return "fp16";
  }
  return "fp32";
}

class Roofline {
 public:
  Roofline(const DeviceKind& device, Precision precision) : device_(device) {
    const std::string wanted = peak_name(precision);
    auto peak = device.peak.find(wanted);
    if (peak == device.peak.end()) peak = device.peak.find("fp32");
    if (peak == device.peak.end())
      throw ConfigError({}, "device kind '" + device.name + "' lists no peak for " + wanted +
                                " nor fp32; add `peak: {fp32: ...}`");
    peak_ = peak->second;
    auto curve = device.gemm_efficiency.find(peak->first);
    if (curve == device.gemm_efficiency.end() && !device.gemm_efficiency.empty())
      curve = device.gemm_efficiency.begin();
    if (curve != device.gemm_efficiency.end()) curve_ = &curve->second;
  }

  Nanoseconds time(const PassWork& work, double share) const {
    if (work.kernels == 0) return Nanoseconds{0};
    double busy = seconds_at(work.bytes, device_.memory_efficiency * device_.memory_bandwidth);
    if (work.flops.value > 0) {
      const double fraction = share * (curve_ ? curve_->at(work.flops) : 1.0);
      busy = std::max(busy, seconds_at(work.flops, fraction * peak_));
    }
    return nanoseconds_from_seconds(busy) + work.kernels * device_.kernel_overhead;
  }

 private:
  const DeviceKind& device_;
  FlopsPerSecond peak_;
  const EfficiencyCurve* curve_ = nullptr;
};

double share_of(const Node& node) {
  const OperatorTraits* traits = find_operator(node.op);
  if (traits == nullptr) return 1;
  if (traits->work == Work::Convolution) return kConvolution;
  if (traits->work == Work::Attention) return kAttention;
  return node.op == "aten::matmul" || node.op == "aten::bmm" ? kBatchedProduct : 1;
}

/// Bytes an optimizer step moves for each fp32 parameter element: what it reads and writes of
/// parameter, gradient and state. Adam as PyTorch's multi-tensor implementation runs it, with its
/// intermediate passes.
Bytes optimizer_traffic(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::Sgd:
      return Bytes{12};
    case Optimizer::Momentum:
      return Bytes{20};
    case Optimizer::Adam:
    case Optimizer::AdamW:
      return Bytes{80};
  }
  return Bytes{80};
}

/// Inputs and outputs of the node that nobody keeps, or the gradients of both in backward,
/// whichever is more.
Bytes temporary(const Graph& graph, const Aliasing& aliases, const std::vector<bool>& kept,
                const Node& node) {
  std::vector<ValueId> roots;
  Bytes forward, gradients;
  const auto visit = [&](ValueId v) {
    const ValueId root = aliases.storage[v.index()];
    if (graph.value(root).role != ValueRole::Intermediate ||
        std::ranges::find(roots, root) != roots.end())
      return;
    roots.push_back(root);
    const Bytes size = graph.value(root).type.bytes();
    if (!kept[root.index()]) forward += size;
    if (graph.value(root).requires_grad) gradients += size;
  };
  for (const ValueId v : inputs_of(node)) visit(v);
  for (const ValueId v : node.outputs) visit(v);
  return std::max(forward, gradients);
}

void warn_unknown(const Graph& graph, const std::vector<NodeWork>& work, Profile& profile) {
  std::map<std::string, int> unknown;
  for (std::size_t n = 0; n < work.size(); ++n)
    if (!work[n].known) ++unknown[graph.nodes[n].op];
  for (const auto& [op, count] : unknown)
    profile.warnings.push_back(
        stream_all("operator ", op, " (", count, count == 1 ? " node" : " nodes",
                   ") is not in the operator table: charged by bytes, nothing saved"));
}

}  // namespace

Profile roofline_profile(const Graph& graph, const DeviceKind& device, const Training& training) {
  const bool autocast =
      training.precision == Precision::Bf16Amp || training.precision == Precision::Fp16Amp;
  const bool cpu = device.peak.size() == 1 && device.peak.contains("fp32");
  const Graph typed = under_autocast(graph, training.precision);
  const Aliasing aliases = aliasing(typed);
  const std::vector<NodeWork> work = node_work(typed, aliases, autocast);
  SavedMemory saved = saved_memory(typed, aliases, training.precision, cpu);
  const Roofline roofline(device, training.precision);

  Profile profile;
  profile.graph_digest = graph.digest;
  profile.device_kind = device.name;
  profile.training = training;
  profile.source = FigureSource::Roofline;
  profile.origin = "roofline of " + device.name + " in " + to_string(training.precision);
  std::vector<bool> kept(typed.values.size(), false);
  for (const SavedStorage& storage : saved.storages) kept[storage.value.index()] = true;
  for (std::size_t n = 0; n < typed.nodes.size(); ++n) {
    const Node& node = typed.nodes[n];
    const double share = share_of(node);
    NodeProfile cost;
    cost.forward = roofline.time(work[n].forward, share);
    cost.backward_input = roofline.time(work[n].backward_input, share);
    cost.backward_weight = roofline.time(work[n].backward_weight, share);
    cost.saved = saved.own[n];
    cost.weight_saved = saved.weight_own[n];
    cost.temporary = temporary(typed, aliases, kept, node);
    profile.nodes.push_back(cost);
  }
  profile.storages = std::move(saved.storages);
  for (const Parameter& parameter : graph.parameters) {
    if (!parameter.trainable) {
      profile.parameters.push_back({});
      continue;
    }
    const Bytes traffic = parameter.type.elements() * optimizer_traffic(training.optimizer);
    profile.parameters.push_back({nanoseconds_from_seconds(seconds_at(
                                      traffic, device.memory_efficiency * device.memory_bandwidth)),
                                  state_multiple(training.optimizer) * parameter.type.bytes()});
  }
  warn_unknown(graph, work, profile);
  return profile;
}

Flops forward_flops(const Graph& graph) {
  Flops sum;
  for (const NodeWork& work : node_work(graph, aliasing(graph), false)) sum += work.forward.flops;
  return sum;
}

}  // namespace pfeife
