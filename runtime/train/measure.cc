#include "runtime/train/measure.h"

#include <algorithm>
#include <sstream>

#include "runtime/device/rank_memory.h"
#include "runtime/execute/check.h"
#include "runtime/execute/host_clocks.h"

namespace pfeife {
namespace {

constexpr std::uint32_t kBarrierTask = ~std::uint32_t{0} - 11;
constexpr std::uint32_t kLossTask = ~std::uint32_t{0} - 12;
constexpr std::uint32_t kPeakTask = ~std::uint32_t{0} - 13;
constexpr int kWarmUp = 2;

/// Returns on no rank before all have called it.
void wait_for_all(Transport& transport, std::uint64_t step) {
  for (std::size_t r = 0; r < transport.ranks(); ++r)
    transport.send(RankId{r}, {step, kBarrierTask, 0}, {});
  for (std::size_t r = 0; r < transport.ranks(); ++r)
    transport.receive(RankId{r}, {step, kBarrierTask, 0});
}

/// Mean loss of the step on rank 0, from the ranks that make it or a replica's share of it.
double gather_loss(const std::optional<double>& made_here, RankId rank, std::uint64_t step,
                   Transport& transport) {
  transport.send(RankId{0}, {step, kLossTask, 0},
                 {made_here ? at::scalar_tensor(*made_here, at::kDouble) : at::Tensor()});
  double loss = 0;
  if (rank == RankId{0})
    for (std::size_t r = 0; r < transport.ranks(); ++r) {
      const at::Tensor rank_loss = transport.receive(RankId{r}, {step, kLossTask, 0}).tensors.at(0);
      if (rank_loss.defined()) loss += rank_loss.item<double>();
    }
  return plain_nan(loss);
}

Bytes bytes_of(const at::Tensor& tensor) {
  return Bytes{static_cast<std::int64_t>(tensor.storage().nbytes())};
}

/// Bytes of parameters and buffers that are mapped from a file: this rank's memory, though not the
/// allocator's, which grew by `counted` while they were loaded.
Bytes mapped_bytes(RankPipeline& rank, Bytes counted) {
  Bytes held{0};
  for (const auto& [p, tensor] : rank.tensors().parameters) held += bytes_of(tensor);
  for (const auto& [b, tensor] : rank.tensors().buffers) held += bytes_of(tensor);
  return std::max(held - counted, Bytes{0});
}

Bytes input_bytes(const StepInputs& inputs) {
  Bytes sum{0};
  for (const auto& microbatch : inputs.microbatches)
    for (const auto& [value, tensor] : microbatch) sum += bytes_of(tensor);
  return sum;
}

/// [pipeline rank] on rank 0: the highest of all replicas.
std::vector<Bytes> gather_peaks(Bytes peak, const Pipeline& pipeline, RankId rank,
                                Transport& transport) {
  transport.send(RankId{0}, {0, kPeakTask, 0}, {at::tensor({peak.value}, at::kLong)});
  if (rank != RankId{0}) return {};
  std::vector<Bytes> peaks(pipeline.ranks());
  for (std::size_t r = 0; r < transport.ranks(); ++r) {
    Bytes& highest = peaks[pipeline.pipeline_rank_of(RankId{r}).index()];
    const at::Tensor found = transport.receive(RankId{r}, {0, kPeakTask, 0}).tensors.at(0);
    highest = std::max(highest, Bytes{found.item<std::int64_t>()});
  }
  return peaks;
}

}  // namespace

MeasuredTraining measure_steps(const Pipeline& pipeline, RankId rank, const WeightSource& source,
                               const RankOptions& options, int steps, bool count_memory,
                               RandomTurns& turns, const std::function<void(const Cell&)>& entering,
                               Transport& transport) {
  RankMemory memory(options.placing.device);
  const Bytes before = memory.allocated().now;
  RankPipeline rank_pipeline(pipeline, rank, source, options, turns, transport);
  if (entering) rank_pipeline.on_entering(entering);
  const Bytes mapped = mapped_bytes(rank_pipeline, memory.allocated().now - before);
  Bytes peak{0};
  Measurement measured;
  std::vector<std::vector<std::vector<TaskRecord>>> records;  // [step][rank], on rank 0
  HostClocks clocks;
  clocks.measure(transport);
  for (int i = 0; i < steps; ++i) {
    const auto step = static_cast<std::uint64_t>(i);
    const StepInputs inputs =
        synthetic_step(pipeline, step, options.seed, options.placing, rank_pipeline.replica());
    wait_for_all(transport, step);
    memory.reset_peak();
    const std::vector<TaskRecord> own_records = rank_pipeline.step(inputs);
    const bool counts = i >= kWarmUp || steps <= kWarmUp;
    if (counts) peak = std::max(peak, mapped + memory.allocated().peak - input_bytes(inputs));
    auto of_ranks = gather_records(own_records, step, transport);
    const double loss = gather_loss(rank_pipeline.mean_loss(), rank, step, transport);
    if (rank != RankId{0}) continue;
    if (!rank_pipeline.loss_scale()) require_finite(loss, i + 1);  // else the step was skipped
    records.push_back(std::move(of_ranks));
    measured.steps.push_back({counts, Nanoseconds{0}, loss});
  }
  clocks.measure(transport);
  std::vector<Trace> traces;
  for (std::size_t i = 0; i < records.size(); ++i) {
    auto of_replica = records_of_replica(pipeline, records[i], 0);
    clocks.correct(pipeline.tasks, of_replica, pipeline.replica_ranks(0));
    traces.push_back(measured_trace(pipeline.tasks, of_replica));
    measured.steps[i].time = step_time(traces.back());
  }
  if (count_memory) measured.peak_memory = gather_peaks(peak, pipeline, rank, transport);
  if (traces.empty()) return {std::move(measured), {}, ""};
  measured.trace = traces[median_step(measured.steps)];
  measured.durations = median_durations(traces, measured.steps);
  std::vector<Trace> counting;
  for (std::size_t i = 0; i < traces.size(); ++i)
    if (measured.steps[i].counts) counting.push_back(std::move(traces[i]));
  return {std::move(measured), std::move(counting), clocks.text()};
}

std::string summary(const Measurement& measurement, double samples) {
  std::ostringstream out;
  const double step = seconds(measurement.quantile(0.5));
  out << measurement.steps.size() << " steps, median " << step * 1e3 << " ms, " << samples / step
      << " samples/s, bubble " << 100 * bubble(measurement.trace) << " %, loss "
      << measurement.steps.front().loss << " -> " << measurement.steps.back().loss << "\n";
  return out.str();
}

}  // namespace pfeife
