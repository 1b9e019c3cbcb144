#include "runtime/measure.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "runtime/check.h"

namespace pfeife {
namespace {

constexpr std::uint32_t kBarrierTask = ~std::uint32_t{0} - 11;
constexpr std::uint32_t kLossTask = ~std::uint32_t{0} - 12;
constexpr std::size_t kWarmUp = 2;

/// Returns on no rank before all have called it.
void wait_for_all(Transport& transport, std::uint64_t step) {
  for (std::size_t r = 0; r < transport.ranks(); ++r)
    transport.send(RankId{static_cast<std::int64_t>(r)}, {step, kBarrierTask, 0}, {});
  for (std::size_t r = 0; r < transport.ranks(); ++r)
    transport.receive(RankId{static_cast<std::int64_t>(r)}, {step, kBarrierTask, 0});
}

/// Index of the median time among the steps that count.
std::size_t median_index(const std::vector<Nanoseconds>& steps) {
  const std::size_t first = steps.size() > kWarmUp ? kWarmUp : 0;
  std::vector<std::size_t> order(steps.size() - first);
  std::iota(order.begin(), order.end(), first);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return steps[i]; });
  return order[(order.size() - 1) / 2];
}

}  // namespace

Nanoseconds Measurement::median() const { return steps[median_index(steps)]; }

Measurement measure_steps(const Pipeline& pipeline, RankId rank, const WeightSource& source,
                          const RankOptions& options, int steps, RandomTurns& turns,
                          const std::function<void(const Cell&)>& entering, Transport& transport) {
  RankPipeline own(pipeline, rank, source, options, turns, transport);
  if (entering) own.on_entering(entering);
  Measurement measured;
  std::vector<Trace> traces;
  measured.samples_per_step = static_cast<double>(pipeline.microbatches) *
                              static_cast<double>(pipeline.graph.microbatch_size);
  for (int i = 0; i < steps; ++i) {
    const auto step = static_cast<std::uint64_t>(i);
    const StepInputs inputs = synthetic_step(pipeline, step, options.seed, options.placing);
    wait_for_all(transport, step);
    const auto records = gather_records(own.step(inputs), step, transport);
    const auto losses = own.losses();
    transport.send(RankId{0}, {step, kLossTask, 0}, {at::tensor(losses, at::kDouble)});
    if (rank != RankId{0}) continue;
    traces.push_back(measured_trace(pipeline.tasks, records));
    measured.steps.push_back(step_time(traces.back()));
    for (std::size_t r = 0; r < pipeline.ranks(); ++r) {
      const at::Tensor made =
          transport.receive(RankId{static_cast<std::int64_t>(r)}, {step, kLossTask, 0})
              .tensors.at(0);
      if (made.numel() > 0) measured.losses.push_back(made.mean().item<double>());
    }
  }
  if (!traces.empty()) measured.trace = traces[median_index(measured.steps)];
  return measured;
}

std::string to_string(const Measurement& measurement) {
  std::ostringstream out;
  const double step = seconds(measurement.median());
  out << measurement.steps.size() << " steps, median " << step * 1e3 << " ms, "
      << measurement.samples_per_step / step << " samples/s, bubble " << bubble(measurement.trace)
      << ", loss " << measurement.losses.front() << " -> " << measurement.losses.back() << "\n";
  return out.str();
}

std::string measurement_text(const Measurement& measurement) {
  std::ostringstream out;
  out << "step,time_ns,loss\n";
  for (std::size_t i = 0; i < measurement.steps.size(); ++i)
    out << i << "," << measurement.steps[i].count() << "," << measurement.losses.at(i) << "\n";
  out << "\nrank,peer,action,start_ns,end_ns\n";
  for (const Event& event : measurement.trace.events)
    out << event.rank.value << "," << event.peer.value << "," << to_string(event.cell) << ","
        << event.start.count() << "," << event.end.count() << "\n";
  return out.str();
}

}  // namespace pfeife
