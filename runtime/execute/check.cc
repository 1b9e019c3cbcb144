#include "runtime/execute/check.h"

#include <algorithm>
#include <cmath>

#include "planner/ir/basics/error.h"
#include "runtime/execute/host_clocks.h"
#include "runtime/launch/rank_threads.h"

namespace pfeife {
namespace {

constexpr std::uint32_t kRecordsTask = ~std::uint32_t{0} - 8;
constexpr std::uint32_t kGradientTask = ~std::uint32_t{0} - 9;
constexpr std::uint32_t kLossTask = ~std::uint32_t{0} - 10;
constexpr std::uint32_t kScaleTask = ~std::uint32_t{0} - 14;

/// Half the distance from 1 to the next number: the largest share by which a rounding changes one.
double unit_roundoff(at::ScalarType type) {
  switch (c10::toRealValueType(type)) {
    case at::kDouble:
      return 0x1p-53;
    case at::kFloat:
      return 0x1p-24;
    case at::kHalf:
      return 0x1p-11;
    case at::kBFloat16:
      return 0x1p-8;
    case at::kFloat8_e4m3fn:
      return 0x1p-4;
    case at::kFloat8_e5m2:
      return 0x1p-3;
    default:
      return 0;  // an integer carries no gradient
  }
}

at::ScalarType coarser(at::ScalarType a, at::ScalarType b) {
  return unit_roundoff(a) < unit_roundoff(b) ? b : a;
}

at::ScalarType widest(const at::Tensor& tensor) {
  return tensor.is_complex() ? at::kComplexDouble : at::kDouble;
}

double norm_of(const at::Tensor& tensor) { return tensor.to(widest(tensor)).norm().item<double>(); }

/// What each tensor may be off.
class Tolerance {
 public:
  Tolerance(const Pipeline& pipeline, const RankOptions& options, std::optional<double> everywhere)
      : everywhere_(everywhere), microbatches_(pipeline.microbatches * pipeline.replicas.count) {
    const Graph& graph = pipeline.graph;
    // Operators round to 16 bits, whatever the types of parameters are.
    if (options.autocast)
      computed_ = 5e-2;
    else if (!options.placing.device.is_cpu() && at::globalContext().allowTF32CuBLAS())
      computed_ = 5e-2 / 8;  // three bits more than bf16
    for (const Value& value : graph.values)
      coarsest_.push_back(placed_type(value.type.dtype, options.placing));
    for (const at::ScalarType type : coarsest_) of_all_ = coarser(of_all_, type);
    for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
      for (const ValueId out : node->outputs) {
        if (!graph.value(out).requires_grad) continue;
        for (const ValueId in : inputs_of(*node))
          coarsest_[in.index()] = coarser(coarsest_[in.index()], coarsest_[out.index()]);
      }
    }
  }

  double of_losses() const { return allowed(of_all_); }
  double of_gradient(const Parameter& parameter) const {
    return allowed(coarsest_[parameter.value.index()]);
  }

 private:
  double allowed(at::ScalarType type) const {
    return everywhere_.value_or(std::max(computed_, rounding_allowed(type, microbatches_)));
  }

  std::optional<double> everywhere_;
  std::size_t microbatches_;
  double computed_ = 0;
  at::ScalarType of_all_ = at::kDouble;
  std::vector<at::ScalarType> coarsest_;  ///< [value]: of it and of what is computed from it
};

void compare(CheckReport& report, const std::string& name, const at::Tensor& found,
             const at::Tensor& expected, double allowed) {
  ++report.tensors;
  Difference difference{name, 0, allowed};
  if (found.defined() != expected.defined()) {
    difference.value = std::numeric_limits<double>::infinity();
  } else if (expected.defined()) {
    const double norm = norm_of(expected);
    difference.value = norm_of(found.to(widest(found)) - expected.to(widest(expected)));
    if (norm > 0) difference.value /= norm;
    difference.value = plain_nan(difference.value);
  }
  if (report.largest.tensor.empty() || difference.exceeds(report.largest))
    report.largest = difference;
  const bool wrong = !(difference.value <= allowed);  // NaN is wrong, too
  if (wrong && report.first_different.tensor.empty()) report.first_different = difference;
}

/// One step of the unsplit model: what is expected.
struct Expected {
  std::vector<double> losses;
  std::map<ParameterId, at::Tensor> gradients;

  bool finite() const {
    return std::ranges::all_of(gradients, [](const auto& entry) {
      return !entry.second.defined() || at::isfinite(entry.second).all().template item<bool>();
    });
  }
};

/// The same on all ranks, from rank 0.
double scale_for_all(double scale, Transport& transport) {
  const Tag tag{0, kScaleTask, 0};
  if (transport.rank() != RankId{0})
    return transport.receive(RankId{0}, tag).tensors.at(0).item<double>();
  for (std::size_t r = 1; r < transport.ranks(); ++r)
    transport.send(RankId{r}, tag, {at::scalar_tensor(scale, at::kDouble)});
  return scale;
}

}  // namespace

StepInputs synthetic_step(const Pipeline& pipeline, std::uint64_t step, std::uint64_t seed,
                          const Placing& placing, std::size_t replica) {
  StepInputs inputs{step, {}, equal_shares(pipeline.microbatches * pipeline.replicas.count)};
  inputs.shares.resize(pipeline.microbatches);
  inputs.first_microbatch = replica * pipeline.microbatches;
  for (std::size_t m = 0; m < pipeline.microbatches; ++m)
    inputs.microbatches.push_back(synthetic_inputs(pipeline.graph, mixed_seed({seed, step}),
                                                   MicrobatchId{inputs.first_microbatch + m},
                                                   placing));
  return inputs;
}

std::vector<std::vector<TaskRecord>> records_of_replica(
    const Pipeline& pipeline, std::span<const std::vector<TaskRecord>> records,
    std::size_t replica) {
  std::vector<std::vector<TaskRecord>> found;
  for (const RankId r : pipeline.replica_ranks(replica)) found.push_back(records[r.index()]);
  return found;
}

double plain_nan(double number) {
  return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number;
}

void require_finite(double loss, std::int64_t step) {
  if (!std::isfinite(loss))
    throw RuntimeFault(stream_all("the loss of step ", step, " is ", loss,
                                  ": a smaller --learning-rate, --clip-norm, or other data"));
}

std::vector<std::vector<TaskRecord>> gather_records(const std::vector<TaskRecord>& records_here,
                                                    std::uint64_t step, Transport& transport) {
  const Tag tag{step, kRecordsTask, 0};
  if (transport.rank() != RankId{0}) {
    at::Tensor table = at::empty({static_cast<std::int64_t>(records_here.size()), 3}, at::kLong);
    auto* at = table.mutable_data_ptr<std::int64_t>();
    for (const TaskRecord& record : records_here)
      *at++ = record.task.value, *at++ = record.start.count(), *at++ = record.end.count();
    transport.send(RankId{0}, tag, {table});
    return {};
  }
  std::vector<std::vector<TaskRecord>> all{records_here};
  for (std::size_t r = 1; r < transport.ranks(); ++r) {
    const at::Tensor table = transport.receive(RankId{r}, tag).tensors.at(0);
    const auto* at = table.const_data_ptr<std::int64_t>();
    auto& records = all.emplace_back();
    for (std::int64_t i = 0; i < table.size(0); ++i, at += 3)
      records.push_back({TaskId{at[0]}, Nanoseconds{at[1]}, Nanoseconds{at[2]}});
  }
  return all;
}

CheckReport check_pipeline(const Pipeline& pipeline, RankId rank, const WeightSource& source,
                           const RankOptions& options, std::optional<double> everywhere,
                           Transport& transport) {
  RankOptions quiet = options;
  quiet.update = false;
  RandomTurns turns;
  const auto inputs_of = [&](const Pipeline& of, std::size_t replica, double scale) {
    StepInputs inputs = synthetic_step(of, 0, options.seed, options.placing, replica);
    inputs.factor = scale;
    return inputs;
  };
  const auto unsplit_with = [&](double scale) {
    const Pipeline unsplit =
        unsplit_pipeline(pipeline.graph, pipeline.microbatches * pipeline.replicas.count);
    RankOptions plain = quiet;
    plain.recompute.clear(), plain.blocks.clear();
    Expected expected;
    run_ranks(1, options.placing.device, [&](RankId zero, Transport& alone) {
      RankPipeline whole(unsplit, zero, source, plain, turns, alone);
      whole.step(inputs_of(unsplit, 0, scale));
      expected.losses = whole.losses();
      for (const auto& [p, tensor] : whole.tensors().parameters)
        expected.gradients[p] = tensor.grad();
    });
    return expected;
  };
  std::optional<Expected> scaled;
  double scale = 1;
  if (options.loss_scale) {
    LossScale tried(*options.loss_scale);
    if (rank == RankId{0})
      while (!(scaled = unsplit_with(tried.scale()))->finite() && tried.scale() > 1)
        tried.update(/*finite=*/false);
    scale = scale_for_all(tried.scale(), transport);
  }
  RankPipeline rank_pipeline(pipeline, rank, source, quiet, turns, transport);
  HostClocks clocks;
  clocks.measure(transport);
  const auto records = gather_records(
      rank_pipeline.step(inputs_of(pipeline, rank_pipeline.replica(), scale)), 0, transport);
  clocks.measure(transport);

  Tensors names, gradients;
  for (const auto& [p, tensor] : rank_pipeline.tensors().parameters) {
    names.push_back(at::scalar_tensor(p.value, at::kLong));
    gradients.push_back(tensor.grad());
  }
  transport.send(RankId{0}, {0, kGradientTask, 0}, names);
  transport.send(RankId{0}, {0, kGradientTask, 1}, gradients);
  transport.send(RankId{0}, {0, kLossTask, 0}, {at::tensor(rank_pipeline.losses(), at::kDouble)});
  CheckReport report;
  if (rank != RankId{0}) return report;

  for (std::size_t d = pipeline.replicas.count; d-- > 0;) {
    auto of_replica = records_of_replica(pipeline, records, d);
    clocks.correct(pipeline.tasks, of_replica, pipeline.replica_ranks(d));
    report.trace = measured_trace(pipeline.tasks, of_replica);
    const std::string broken = broken_edge(
        pipeline.tasks, report.trace,
        clocks.error() + (options.placing.device.is_cpu() ? Nanoseconds{0} : kDeviceClocksDiffer));
    if (!broken.empty()) report.broken_edge = broken;
  }
  const Expected expected = scaled ? *scaled : unsplit_with(scale);
  const Tolerance tolerance(pipeline, options, everywhere);
  std::map<ParameterId, std::vector<at::Tensor>> found;
  for (std::size_t r = 0; r < pipeline.all_ranks(); ++r) {
    const RankId from{r};
    const Tensors which = transport.receive(from, {0, kGradientTask, 0}).tensors;
    const Tensors what = transport.receive(from, {0, kGradientTask, 1}).tensors;
    for (std::size_t i = 0; i < which.size(); ++i)
      found[ParameterId{which[i].item<std::int64_t>()}].push_back(what[i]);
    const at::Tensor losses = transport.receive(from, {0, kLossTask, 0}).tensors.at(0);
    const auto microbatches = static_cast<std::int64_t>(pipeline.microbatches);
    const at::Tensor expected_losses =
        at::tensor(expected.losses, at::kDouble)
            .narrow(0, static_cast<std::int64_t>(pipeline.replica_of(from)) * microbatches,
                    microbatches);
    if (losses.numel() > 0) compare(report, "loss", losses, expected_losses, tolerance.of_losses());
  }
  for (const auto& [p, gradient] : expected.gradients) {
    if (gradient.defined() && !gradient.any().item<bool>()) ++report.zeros;
    const Parameter& parameter = pipeline.graph.parameters[p.index()];
    for (const at::Tensor& copy : found[p])
      compare(report, "gradient of " + parameter.names.front(), copy, gradient,
              tolerance.of_gradient(parameter));
  }
  return report;
}

bool Difference::exceeds(const Difference& other) const {
  if (std::isnan(value) || std::isnan(other.value)) return std::isnan(value);
  if (allowed == other.allowed) return value > other.value;
  return value * other.allowed > other.value * allowed;
}

double rounding_allowed(at::ScalarType type, std::size_t microbatches) {
  // Kernels add up inside in another order: sqrt(10^4) roundings are 1e-14 and 6e-6.
  if (c10::toRealValueType(type) == at::kDouble) return 1e-12;
  if (c10::toRealValueType(type) == at::kFloat) return 1e-4;
  // Types that are coarser than the ones kernels add up in: each result is rounded once, and so is
  // each sum when the next microbatch's gradient is added to it. The pipeline and the unsplit model
  // round differently, so the difference is a random walk of a step a microbatch, and a few steps
  // of the operators that differ (a gradient that comes from several stages is added up in their
  // order).
  return (4 + std::sqrt(static_cast<double>(microbatches))) * unit_roundoff(type);
}

std::string to_string(const CheckReport& report) {
  std::ostringstream out;
  if (!report.first_different.tensor.empty()) {
    out << "DIFFERENT: " << report.first_different.tensor << " is off by "
        << report.first_different.value << " of its norm (allowed "
        << report.first_different.allowed << "); largest: " << report.largest.tensor << ", "
        << report.largest.value << " (allowed " << report.largest.allowed << ")\n";
  } else {
    out << report.tensors << " losses and gradients equal those of the unsplit model (largest "
        << "difference " << report.largest.value << " of the norm, " << report.largest.tensor
        << "; allowed " << report.largest.allowed << ")"
        << (report.zeros > 0 ? stream_all("; ", report.zeros, " gradients are zero") : "") << "\n";
  }
  if (!report.broken_edge.empty()) out << "ORDER BROKEN: " << report.broken_edge << "\n";
  return out.str();
}

}  // namespace pfeife
