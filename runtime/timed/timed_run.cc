#include "runtime/timed/timed_run.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "planner/ir/basics/error.h"
#include "runtime/execute/check.h"

namespace pfeife {
namespace {

constexpr std::uint32_t kReadyTask = ~std::uint32_t{0} - 20;
constexpr std::uint32_t kStartTask = ~std::uint32_t{0} - 21;
constexpr std::uint32_t kLatenessTask = ~std::uint32_t{0} - 22;

at::Tensor number(std::int64_t value) { return at::scalar_tensor(value, at::kLong); }

/// A moment that lies ahead for all ranks and is the same for all.
Nanoseconds agreed_start(std::uint64_t step, Transport& transport) {
  constexpr RankId kZero{0};
  if (transport.rank() != kZero) {
    transport.send(kZero, {step, kReadyTask, 0}, {});
    return Nanoseconds{
        transport.receive(kZero, {step, kStartTask, 0}).tensors.at(0).item<std::int64_t>()};
  }
  for (std::size_t r = 1; r < transport.ranks(); ++r)
    transport.receive(RankId{r}, {step, kReadyTask, 0});
  const Nanoseconds start = now() + std::chrono::milliseconds(20);
  for (std::size_t r = 1; r < transport.ranks(); ++r)
    transport.send(RankId{r}, {step, kStartTask, 0}, {number(start.count())});
  return start;
}

/// On rank 0: the mean lateness of all waits of the step.
Nanoseconds gather_lateness(const Lateness& before, const Lateness& after, std::uint64_t step,
                            Transport& transport) {
  const Tag tag{step, kLatenessTask, 0};
  const std::int64_t waits = static_cast<std::int64_t>(after.waits - before.waits);
  transport.send(RankId{0}, tag, {at::tensor({waits, (after.total - before.total).count()})});
  if (transport.rank() != RankId{0}) return {};
  Lateness all;
  for (std::size_t r = 0; r < transport.ranks(); ++r) {
    const at::Tensor part = transport.receive(RankId{r}, tag).tensors.at(0);
    const auto* found = part.const_data_ptr<std::int64_t>();
    all.add({static_cast<std::size_t>(found[0]), Nanoseconds{found[1]}, {}});
  }
  return all.mean();
}

std::size_t median_index(const std::vector<Nanoseconds>& steps) {
  std::vector<std::size_t> order(steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return steps[i]; });
  return order.at((order.size() - 1) / 2);
}

}  // namespace

Nanoseconds TimedMeasurement::median() const { return steps.at(median_index(steps)); }

TimedRank::TimedRank(const TimedPipeline& pipeline, RankId rank, Transport& transport)
    : pipeline_(pipeline), transport_(transport, pipeline.durations, lateness_) {
  PFEIFE_CHECK(pipeline.durations.size() == pipeline.tasks.size(), "a duration for each task");
  for (std::size_t t = 0; t < pipeline.tasks.size(); ++t) {
    const Task& task = pipeline.tasks.tasks[t];
    if (task.kind != TaskKind::Compute && task.kind != TaskKind::Optimizer &&
        task.kind != TaskKind::Copy)
      continue;
    // The first action of an overlap waits for the whole of it.
    for_each_action(task.cell, [&, left = pipeline.durations[t]](const Action& action) mutable {
      times_[action] = std::exchange(left, Nanoseconds{0});
    });
  }
  const auto time = [this](const Action& action) { return times_.at(action); };
  RankWork work;
  for (std::size_t s = 0; s < pipeline.placement.stages(); ++s) {
    const StageId id{s};
    if (pipeline.placement.rank(id) != rank) continue;
    stages_[id] = std::make_unique<TimedStage>(pipeline.messages, id, time, lateness_);
    work.stages[id] = stages_[id].get();
  }
  work.contribution = [this](const Task& task, RankId) { return contribution(task); };
  work.reduce = [](const Task&, const auto&) {};
  work.settle = [this](const Tag& tag) { settle(tag); };
  work.copy = [this](const Action& action, const auto&) { return copy(action); };
  work.await_reload = [this](const Action& action) { sleep_until(copied_.at(action), lateness_); };
  work.optimizer_step = [this](StageId stage) {
    sleep_until(now() + times_.at(stage_action(Op::OptimizerStep, stage)), lateness_);
  };
  work.entering = [this](const Cell& cell) {
    if (entering_) entering_(cell);
  };
  executor_ = std::make_unique<RankExecutor>(pipeline.tasks, pipeline.placement, rank,
                                             std::move(work), transport_);
}

std::vector<TaskRecord> TimedRank::step(std::uint64_t step, Nanoseconds start) {
  Lateness ignored;
  sleep_until(start, ignored);
  return executor_->run(step);
}

/// All have told all.
void TimedRank::settle(const Tag& tag) {
  for (const bool sends : {true, false})
    for (std::size_t r = 0; r < transport_.ranks(); ++r) {
      if (RankId{r} == transport_.rank()) continue;
      sends ? transport_.send(RankId{r}, tag, {}) : void(transport_.receive(RankId{r}, tag));
    }
}

/// Beside what the rank computes, one copy after another each way.
std::pair<Nanoseconds, Nanoseconds> TimedRank::copy(const Action& action) {
  const Operation& kind = operation(action.op);
  Nanoseconds start = std::max(now(), engine_free_[kind.queue]);
  if (const Action source{
          .op = *kind.reads, .stage = action.stage, .microbatch = action.microbatch};
      is_copy(source.op))
    start = std::max(start, copied_.at(source));
  const Nanoseconds end = start + times_.at(action);
  copied_[action] = engine_free_[kind.queue] = end;
  return {start, end};
}

Tensors TimedRank::contribution(const Task& reduction) const {
  const auto& stages = pipeline_.tasks.slots[reduction.slot].stages;
  for (const StageReduction& found : pipeline_.messages.reductions)
    if (found.stages == stages)
      return {at::zeros({found.bytes.value}, at::TensorOptions().dtype(at::kByte))};
  return {};
}

TimedMeasurement measure_timed(const TimedPipeline& pipeline, RankId rank, int steps,
                               const std::function<void(const Cell&)>& entering,
                               Transport& transport) {
  wake_precisely();
  TimedRank timed_rank(pipeline, rank, transport);
  if (entering) timed_rank.on_entering(entering);
  TimedMeasurement measured;
  std::vector<Trace> traces;
  for (int i = 0; i < steps; ++i) {
    const auto step = static_cast<std::uint64_t>(i);
    const Lateness before = timed_rank.lateness();
    const auto own_records = timed_rank.step(step, agreed_start(step, transport));
    const auto records = gather_records(own_records, step, transport);
    const Nanoseconds late = gather_lateness(before, timed_rank.lateness(), step, transport);
    if (rank != RankId{0}) continue;
    traces.push_back(measured_trace(pipeline.tasks, records));
    measured.steps.push_back(step_time(traces.back()));
    measured.lateness.push_back(late);
  }
  if (!traces.empty()) measured.trace = std::move(traces[median_index(measured.steps)]);
  return measured;
}

std::string to_string(const TimedMeasurement& measurement, Nanoseconds estimated) {
  const double measured_s = seconds(measurement.median()), estimated_s = seconds(estimated);
  const Nanoseconds late = *std::ranges::max_element(measurement.lateness);
  std::ostringstream out;
  out << "timed stages: " << measurement.steps.size() << " steps, median " << measured_s * 1e3
      << " ms measured, " << estimated_s * 1e3 << " ms estimated without contention ("
      << std::showpos << (measured_s / estimated_s - 1) * 100 << std::noshowpos
      << " %); waits ended up to " << seconds(late) * 1e6 << " us late on average of a step\n";
  return out.str();
}

std::vector<Nanoseconds> task_durations(const DependencyGraph& graph,
                                        const std::map<std::string, Nanoseconds>& by_cell,
                                        const std::string& file) {
  std::vector<Nanoseconds> durations;
  for (const Task& task : graph.tasks) {
    const auto found = by_cell.find(to_string(task.cell));
    if (found == by_cell.end())
      throw ConfigError({file}, "has no time of " + to_string(task.cell) +
                                    ": it is the trace of another schedule; plan again");
    durations.push_back(found->second);
  }
  return durations;
}

}  // namespace pfeife
