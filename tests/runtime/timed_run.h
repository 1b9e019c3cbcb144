// A pipeline whose compute and links are waits of given lengths, run by the executor, transports
// and trace of one that computes: many ranks on few cores. Tensors are real, of the right number of
// bytes; every message carries the number of its maker, so that a message that went astray is
// noticed. Clocks of all ranks must agree, so one host only. Not here: copies to the host,
// clipping.
#pragma once

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/schedule/stage_costs.h"
#include "planner/ir/trace/trace.h"
#include "runtime/execute/check.h"
#include "runtime/execute/executor.h"

namespace pfeife::testing {

/// What is executed; equal on all ranks.
struct TimedPipeline {
  DependencyGraph tasks;  ///< of the lowered schedule, without queues
  Placement placement;
  StageCosts messages;                 ///< who exchanges how many bytes; its times are not read
  std::vector<Nanoseconds> durations;  ///< [task]
};

/// Returns when now() is at least `deadline`. A virtual clock is set forward.
inline void sleep_until(Nanoseconds deadline) {
  if (now() >= deadline) return;
  if (thread_clock != nullptr) {
    *thread_clock = deadline;
    return;
  }
  // now() is CLOCK_MONOTONIC: std::chrono::steady_clock on Linux.
  const timespec at{static_cast<time_t>(deadline.count() / 1'000'000'000),
                    static_cast<long>(deadline.count() % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
  }
}

/// Delivers a message no earlier than its posting plus the length of its task: a delay that never
/// holds the sender and lets any number of messages overlap, as Links::Delay. The inner transport's
/// time counts within it. A reduction lasts from the last of its parts.
class TimedTransport final : public Transport {
 public:
  TimedTransport(Transport& inner, std::vector<Nanoseconds> durations)
      : inner_(inner), durations_(std::move(durations)) {}

  RankId rank() const override { return inner_.rank(); }
  std::size_t ranks() const override { return inner_.ranks(); }
  void stop(const RankFault& fault) override { inner_.stop(fault); }
  void send(RankId to, Tag tag, Tensors tensors) override {
    if (tag.task < durations_.size()) own_parts_.try_emplace(tag.task, now());
    inner_.send(to, tag, std::move(tensors));
  }
  Message receive(RankId from, Tag tag) override {
    Message message = inner_.receive(from, tag);
    if (tag.task >= durations_.size()) return message;
    Nanoseconds start = message.posted;
    // Only a reduction's parts are sent and received under one tag.
    if (const auto part = own_parts_.find(tag.task); part != own_parts_.end())
      start = std::max(start, part->second);
    const Nanoseconds end = start + durations_[tag.task];
    const bool waited = now() < end;
    sleep_until(end);
    message.arrived = std::max(message.arrived, waited ? now() : end);
    return message;
  }

 private:
  Transport& inner_;
  std::vector<Nanoseconds> durations_;
  std::map<std::uint32_t, Nanoseconds> own_parts_;  ///< when this rank posted its own
};

class TimedStage final : public Stage {
 public:
  TimedStage(const StageCosts& costs, StageId stage, const std::map<Action, Nanoseconds>& times)
      : stage_(stage), times_(times) {
    for (const StagePair& pair : costs.pairs) {
      if (pair.to == stage) {
        sources_.push_back(pair.from);
        onward_.in.push_back(pair.bytes);
        back_.out.push_back(pair.gradient_bytes);
      }
      if (pair.from == stage) {
        destinations_.push_back(pair.to);
        onward_.out.push_back(pair.bytes);
        back_.in.push_back(pair.gradient_bytes);
      }
    }
  }

  const std::vector<StageId>& sources() const override { return sources_; }
  const std::vector<StageId>& destinations() const override { return destinations_; }
  PerStage forward(MicrobatchId m, const PerStage& received) override {
    PFEIFE_CHECK(in_flight_.insert(m).second, "microbatch ", m.value, " has run twice");
    return perform(pfeife::forward(stage_, m), sources_, received, onward_);
  }
  PerStage backward(MicrobatchId m, const PerStage& gradients) override {
    PFEIFE_CHECK(in_flight_.erase(m) == 1, "microbatch ", m.value, " has no forward");
    return perform(pfeife::backward(stage_, m), destinations_, gradients, back_);
  }
  PerStage backward_input(MicrobatchId m, const PerStage& gradients) override {
    PFEIFE_CHECK(in_flight_.erase(m) == 1, "microbatch ", m.value, " has no forward");
    weights_pending_.insert(m);
    return perform(pfeife::backward_input(stage_, m), destinations_, gradients, back_);
  }
  void backward_weight(MicrobatchId m) override {
    PFEIFE_CHECK(weights_pending_.erase(m) == 1, "microbatch ", m.value, " has no backward-input");
    perform(pfeife::backward_weight(stage_, m), {}, {}, {});
  }
  std::optional<at::Tensor> loss(MicrobatchId) const override { return {}; }

 private:
  struct Messages {  // per neighbour
    std::vector<Bytes> in, out;
  };

  /// What fills a message: tells stages, microbatches and ways apart.
  static std::uint8_t stamp(StageId from, MicrobatchId m, bool onward) {
    return static_cast<std::uint8_t>((from.value * 31 + m.value * 7 + (onward ? 1 : 0)) % 251);
  }
  static void check_message(const Action& action, const Tensors& message, Bytes bytes, StageId from,
                            bool onward) {
    PFEIFE_CHECK(message.size() == 1 && message.front().numel() == bytes.value, to_string(action),
                 " got other tensors from stage ", from.value, " than one of ", bytes.value,
                 " bytes");
    const auto* content = message.front().const_data_ptr<std::uint8_t>();
    for (const std::int64_t i : {std::int64_t{0}, bytes.value / 2, bytes.value - 1})
      PFEIFE_CHECK(content[i] == stamp(from, *action.microbatch, onward), to_string(action),
                   " got what stage ", from.value, " made for another microbatch");
  }
  PerStage perform(const Action& action, const std::vector<StageId>& senders,
                   const PerStage& received, const Messages& messages) {
    const Nanoseconds end = now() + times_.at(action);
    const bool onward = operation(action.op).passes == Direction::Forward;
    for (std::size_t i = 0; i < senders.size(); ++i)
      if (messages.in[i] > Bytes{0})
        check_message(action, received.at(i), messages.in[i], senders[i], onward);
    PerStage out;
    for (const Bytes bytes : messages.out) {
      Tensors& message = out.emplace_back();
      if (bytes > Bytes{0})
        message.push_back(at::full({bytes.value}, stamp(stage_, *action.microbatch, onward),
                                   at::TensorOptions().dtype(at::kByte)));
    }
    sleep_until(end);
    return out;
  }

  StageId stage_;
  const std::map<Action, Nanoseconds>& times_;
  std::vector<StageId> sources_, destinations_;
  Messages onward_, back_;
  std::set<MicrobatchId> in_flight_, weights_pending_;
};

/// A moment that lies ahead for all ranks and is the same for all.
inline Nanoseconds agreed_start(Transport& transport) {
  constexpr RankId kZero{0};
  constexpr Tag kReady{0, ~std::uint32_t{0} - 20, 0}, kStart{0, ~std::uint32_t{0} - 21, 0};
  if (transport.rank() != kZero) {
    transport.send(kZero, kReady, {});
    return Nanoseconds{transport.receive(kZero, kStart).tensors.at(0).item<std::int64_t>()};
  }
  for (std::size_t r = 1; r < transport.ranks(); ++r) transport.receive(RankId{r}, kReady);
  const Nanoseconds start = now() + std::chrono::milliseconds(20);
  for (std::size_t r = 1; r < transport.ranks(); ++r)
    transport.send(RankId{r}, kStart, {at::scalar_tensor(start.count(), at::kLong)});
  return start;
}

/// One step, which all ranks begin at the same moment. The result is rank 0's; empty elsewhere.
inline Trace run_timed(const TimedPipeline& pipeline, RankId rank, Transport& inner) {
  TimedTransport transport(inner, pipeline.durations);
  std::map<Action, Nanoseconds> times;
  for (std::size_t t = 0; t < pipeline.tasks.size(); ++t) {
    const Task& task = pipeline.tasks.tasks[t];
    if (task.kind != TaskKind::Compute && task.kind != TaskKind::Optimizer) continue;
    // The first action of an overlap waits for the whole of it.
    for_each_action(task.cell, [&, left = pipeline.durations[t]](const Action& action) mutable {
      times[action] = std::exchange(left, Nanoseconds{0});
    });
  }
  std::map<StageId, std::unique_ptr<TimedStage>> stages;
  RankWork work;
  for (std::size_t s = 0; s < pipeline.placement.stages(); ++s) {
    const StageId id{s};
    if (pipeline.placement.rank(id) != rank) continue;
    stages[id] = std::make_unique<TimedStage>(pipeline.messages, id, times);
    work.stages[id] = stages[id].get();
  }
  work.contribution = [&](const Task& task, RankId) -> Tensors {
    for (const StageReduction& found : pipeline.messages.reductions)
      if (found.stages == pipeline.tasks.slots[task.slot].stages)
        return {at::zeros({found.bytes.value}, at::TensorOptions().dtype(at::kByte))};
    return {};
  };
  work.reduce = [](const Task&, const auto&) {};
  work.optimizer_step = [&](StageId stage) {
    sleep_until(now() + times.at(stage_action(Op::OptimizerStep, stage)));
  };
  RankExecutor executor(pipeline.tasks, pipeline.placement, rank, std::move(work), transport);
  sleep_until(agreed_start(transport));
  const auto own_records = executor.run(0);
  const auto records = gather_records(own_records, 0, transport);
  return rank == RankId{0} ? measured_trace(pipeline.tasks, records) : Trace{};
}

}  // namespace pfeife::testing
