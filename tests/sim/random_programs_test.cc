// The simulator against the interpreter of rank programs and queues (tests/support), which knows no
// dependency graph: same times to the nanosecond, same verdict, same blocked items, under every
// semantics. PFEIFE_INSTANCES=10000: more of them.
#include <gtest/gtest.h>

#include <memory>

#include "planner/io/plan/schedule_csv.h"
#include "tests/sim/sim_test.h"
#include "tests/support/instances.h"
#include "tests/support/interpreter.h"
#include "tests/support/random_program.h"

namespace pfeife::testing {
namespace {

/// One program under one semantics.
struct Experiment {
  std::shared_ptr<const RandomProgram> program;
  Semantics semantics;
  DependencyGraph graph;
};

std::vector<std::unique_ptr<Experiment>> experiments(std::uint64_t first, std::uint64_t end) {
  std::vector<std::unique_ptr<Experiment>> all;
  for (std::uint64_t seed = first; seed < end; ++seed) {
    const auto program = std::make_shared<const RandomProgram>(random_program(seed));
    for (const bool blocking : {false, true})
      for (const Queues queues : {Queues::None, Queues::Edge, Queues::Pair, Queues::Rank}) {
        const Semantics semantics{queues, Links::Delay, blocking};
        all.push_back(std::make_unique<Experiment>(
            Experiment{program, semantics,
                       dependencies(program->schedule, stage_graph(program->costs),
                                    program->placement, semantics)}));
      }
  }
  return all;
}

Outcome outcome_of(const SimulationResult& result, const DependencyGraph& graph) {
  const auto stand = [&](std::size_t task) {
    return Stand{graph.tasks[task].rank.index(), graph.tasks[task].position};
  };
  Outcome outcome;
  if (result.deadlock)
    for (const TaskId task : result.deadlock->blocked) outcome.blocked.insert(stand(task.index()));
  else
    for (std::size_t t = 0; t < graph.size(); ++t)
      outcome.ran[stand(t)] = {result.trace->events[t].start, result.trace->events[t].end};
  return outcome;
}

/// Fails at the first of the programs 0..count-1 on which simulator and interpreter disagree.
void expect_simulated_as_interpreted(std::uint64_t count) {
  constexpr std::uint64_t kAtOnce = 100;
  const Cluster cluster = uniform_cluster(4, DeviceKind{}, {1e9}, Nanoseconds{100});
  for (std::uint64_t first = 0; first < count; first += kAtOnce) {
    const auto all = experiments(first, first + kAtOnce);
    std::vector<SimulationJob> jobs;
    for (const auto& e : all)
      jobs.push_back({.name = "random program",
                      .graph = &e->graph,
                      .costs = &e->program->costs,
                      .placement = &e->program->placement,
                      .cluster = &cluster,
                      .launch_overhead = e->program->launch,
                      .trace = true});
    const auto results = simulate_all(jobs);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const RandomProgram& program = *all[i]->program;
      Outcome opinion = interpret(program.schedule, program.costs, program.placement,
                                  all[i]->semantics, program.launch);
      if (!opinion.blocked.empty()) opinion.ran.clear();  // the simulator gives no times then
      ASSERT_TRUE(outcome_of(results[i], all[i]->graph) == opinion)
          << to_string(all[i]->semantics.queues) << " queues\n"
          << write_schedule(program.schedule);
    }
  }
}

class RandomProgramsSimulated : public SimulatorTest {};

TEST_F(RandomProgramsSimulated, AsTheInterpreterSays) {
  expect_simulated_as_interpreted(instances(2000));
}

}  // namespace
}  // namespace pfeife::testing
