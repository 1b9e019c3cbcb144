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

void compare(CheckReport& report, const std::string& name, const at::Tensor& found,
             const at::Tensor& expected, double tolerance) {
  ++report.tensors;
  double difference = 0;
  if (found.defined() != expected.defined()) {
    difference = std::numeric_limits<double>::infinity();
  } else if (expected.defined()) {
    const double norm = expected.to(at::kDouble).norm().item<double>();
    difference = (found.to(at::kDouble) - expected.to(at::kDouble)).norm().item<double>();
    if (norm > 0) difference /= norm;
  }
  const bool wrong = !(difference <= tolerance);  // NaN is wrong, too
  if (report.largest_tensor.empty() || difference > report.largest || std::isnan(difference))
    report.largest = difference, report.largest_tensor = name;
  if (wrong && report.first_different.empty())
    report.first_different = name, report.first_difference = difference;
}

/// One step of the unsplit model: what is expected.
struct Expected {
  std::vector<double> losses;
  std::map<ParameterId, at::Tensor> gradients;

  bool finite() const {
    return std::ranges::all_of(gradients, [](const auto& one) {
      return !one.second.defined() || at::isfinite(one.second).all().template item<bool>();
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
  StepInputs inputs{step, {}, equal_scale(pipeline.microbatches * pipeline.replicas.count)};
  inputs.loss_scale.resize(pipeline.microbatches);
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
                           const RankOptions& options, double tolerance, Transport& transport) {
  RankOptions quiet = options;
  quiet.update = false;
  RandomTurns turns;
  const auto inputs_of = [&](const Pipeline& of, std::size_t replica, double scale) {
    StepInputs inputs = synthetic_step(of, 0, options.seed, options.placing, replica);
    for (double& share : inputs.loss_scale) share *= scale;
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
  std::map<ParameterId, std::vector<at::Tensor>> found;
  for (std::size_t r = 0; r < pipeline.all_ranks(); ++r) {
    const RankId from{r};
    const Tensors which = transport.receive(from, {0, kGradientTask, 0}).tensors;
    const Tensors what = transport.receive(from, {0, kGradientTask, 1}).tensors;
    for (std::size_t i = 0; i < which.size(); ++i)
      found[ParameterId{which[i].item<std::int64_t>()}].push_back(what[i]);
    const at::Tensor made = transport.receive(from, {0, kLossTask, 0}).tensors.at(0);
    const auto microbatches = static_cast<std::int64_t>(pipeline.microbatches);
    const at::Tensor expected_losses =
        at::tensor(expected.losses, at::kDouble)
            .narrow(0, static_cast<std::int64_t>(pipeline.replica_of(from)) * microbatches,
                    microbatches);
    if (made.numel() > 0) compare(report, "loss", made, expected_losses, tolerance);
  }
  for (const auto& [p, gradient] : expected.gradients) {
    if (gradient.defined() && !gradient.any().item<bool>()) ++report.zeros;
    for (const at::Tensor& copy : found[p])
      compare(report, "gradient of " + pipeline.graph.parameters[p.index()].names.front(), copy,
              gradient, tolerance);
  }
  return report;
}

std::string to_string(const CheckReport& report, double tolerance) {
  std::ostringstream out;
  if (!report.first_different.empty())
    out << "DIFFERENT: " << report.first_different << " is off by " << report.first_difference
        << " of its norm (allowed " << tolerance << "); largest: " << report.largest_tensor << ", "
        << report.largest << "\n";
  else
    out << report.tensors << " losses and gradients equal those of the unsplit model (largest "
        << "difference " << report.largest << " of the norm, " << report.largest_tensor
        << "; allowed " << tolerance << ")"
        << (report.zeros > 0 ? stream_all("; ", report.zeros, " gradients are zero") : "") << "\n";
  if (!report.broken_edge.empty()) out << "ORDER BROKEN: " << report.broken_edge << "\n";
  return out.str();
}

}  // namespace pfeife
