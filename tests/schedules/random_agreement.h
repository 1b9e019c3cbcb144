// Three readings of the same rules: the estimator over the DependencyGraph, the interpreter of rank
// programs and queues, and the judge. On random programs, half of them with an order that may
// deadlock, they agree to the nanosecond.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "planner/cost/estimate/estimator.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/judge/validate.h"
#include "planner/ir/schedule/lower.h"
#include "tests/support/interpreter.h"
#include "tests/support/random_program.h"

namespace pfeife::testing {

inline std::vector<Semantics> all_semantics() {
  std::vector<Semantics> all;
  for (const bool blocking : {false, true})
    for (const Queues queues : {Queues::None, Queues::Edge, Queues::Pair, Queues::Rank})
      all.push_back({queues, Links::Delay, blocking});
  return all;
}

inline Stand stand_of(const DependencyGraph& graph, std::size_t task) {
  return {graph.tasks[task].rank.index(), graph.tasks[task].position};
}

inline bool is_reload(const Cell& cell) {
  const auto* action = std::get_if<Action>(&cell);
  return action != nullptr && action->op == Op::Reload;
}

inline bool has_copies(const Schedule& schedule) {
  return std::ranges::any_of(schedule.rows,
                             [](const auto& row) { return std::ranges::any_of(row, is_reload); });
}

inline Outcome estimated(const RandomProgram& program, const Semantics& semantics) {
  const DependencyGraph graph =
      dependencies(program.schedule, stage_graph(program.costs), program.placement, semantics);
  const auto answer = estimate(graph, program.costs, {.launch_overhead = program.launch});
  Outcome outcome;
  if (const auto* deadlock = std::get_if<Deadlock>(&answer)) {
    for (const TaskId task : deadlock->blocked)
      outcome.blocked.insert(stand_of(graph, task.index()));
    return outcome;
  }
  const Trace& trace = std::get<Trace>(answer);
  // A RELOAD is shown later than it could run.
  for (std::size_t t = 0; t < graph.size(); ++t)
    if (!is_reload(graph.tasks[t].cell))
      outcome.ran[stand_of(graph, t)] = {trace.events[t].start, trace.events[t].end};
  return outcome;
}

/// Does the judge see a circle of waits? Nothing if it refuses to run the program for another
/// reason.
inline std::optional<bool> judged_deadlock(const RandomProgram& program, std::size_t microbatches,
                                           const Semantics& semantics) {
  bool deadlock = false, other = false;
  for (const Violation& v :
       validate(program.schedule, {stage_graph(program.costs), microbatches, true}, semantics)) {
    const bool circle = v.message.starts_with("deadlock");
    deadlock |= circle;
    other |= !circle;
  }
  if (other && !deadlock) return std::nullopt;
  return deadlock;
}

/// Adds copies of random lengths where there is room; then what comes back takes longer, and
/// backwards wait for it.
inline void add_copies(RandomProgram& program, std::uint64_t seed) {
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  program.costs.one_copy_engine = random() % 2 == 0;
  for (StageCost& stage : program.costs.stages) {
    stage.offloaded = Bytes{static_cast<std::int64_t>(random() % 3)};
    stage.offload = Nanoseconds{random() % 4}, stage.reload = Nanoseconds{random() % 4};
  }
  program.schedule = with_offload(program.schedule, program.costs, program.placement,
                                  [](StageId, MicrobatchId) { return true; });
  for (StageCost& stage : program.costs.stages) stage.reload *= 1 + random() % 3;
}

/// Fails at the first of the programs 0..count-1 on which two of the three disagree.
inline void expect_agreement(std::uint64_t count, bool copies = false) {
  std::size_t ran = 0, deadlocked = 0, judged = 0, copied = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    RandomProgram program = random_program(seed);
    if (copies) add_copies(program, seed);
    copied += has_copies(program.schedule);
    const std::size_t microbatches = microbatch_count(program.schedule);
    for (const Semantics& semantics : all_semantics()) {
      const Outcome answer = estimated(program, semantics);
      Outcome opinion =
          interpret(program.schedule, program.costs, program.placement, semantics, program.launch);
      if (!opinion.blocked.empty()) opinion.ran.clear();  // the estimator gives no times then
      std::erase_if(opinion.ran, [&](const auto& ran) {
        return is_reload(program.schedule.rows[ran.first.rank][ran.first.position]);
      });
      ASSERT_EQ(answer.blocked, opinion.blocked) << seed << "\n"
                                                 << write_schedule(program.schedule);
      ASSERT_EQ(answer.ran, opinion.ran) << seed << "\n" << write_schedule(program.schedule);
      ++(opinion.blocked.empty() ? ran : deadlocked);
      if (const auto circle = judged_deadlock(program, microbatches, semantics)) {
        ASSERT_EQ(*circle, !opinion.blocked.empty()) << seed << "\n"
                                                     << write_schedule(program.schedule);
        ++judged;
      }
    }
  }
  EXPECT_GT(ran, count);  // neither kind is rare
  EXPECT_GT(deadlocked, count);
  EXPECT_GT(judged, 2 * count);
  if (copies) {
    EXPECT_GT(copied, count / 4);
  }
}

}  // namespace pfeife::testing
