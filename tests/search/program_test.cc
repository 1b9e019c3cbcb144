// The compiled form that the search prices cuts with, against the full way: cost the stages, lower,
// build the dependency graph, take its longest path.
#include "planner/search/price/program.h"

#include <gtest/gtest.h>

#include "planner/cost/estimate/evaluate.h"
#include "planner/search/price/candidate.h"
#include "planner/search/price/cut_costs.h"
#include "planner/search/price/live_memory.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

double length(const PathCounts<std::int32_t>& path, const Program& program,
              const std::vector<double>& durations) {
  double sum = 0;
  for (std::size_t w = 0; w < kWorks; ++w)
    for (std::size_t s = 0; s < program.stages(); ++s)
      sum += path.work[w][s] * durations[program.work(static_cast<Work>(w), s)];
  for (std::size_t i = 1; i < program.stages(); ++i) {
    if (path.forward[i]) sum += path.forward[i] * durations[program.forward_latency(i)];
    if (path.backward[i]) sum += path.backward[i] * durations[program.backward_latency(i)];
  }
  return sum;
}

TEST(Program, EqualsTheFullEstimateOnRandomCutsOfRandomModelsWithEveryFamily) {
  std::mt19937 random(11);
  int exact = 0, skipped = 0, tails = 0, paths = 0;
  for (int round = 0; round < 400; ++round) {
    RandomShape shape;
    shape.layers = 6 + random() % 10;
    const Layers layers = random_layers(random, shape);
    const std::size_t ranks = 1 + random() % 4, microbatches = 1 + random() % 6;
    const Cluster cluster = random_cluster(random, ranks, true);
    const ScheduleSpec spec = random_spec(random, ranks, microbatches, {1, 2, 3});
    const Schedule schedule = generate(spec);
    const Placement placement = placement_for(spec);
    const CutModel model(layers, cluster, MemoryRule::Lifetimes);
    CutCosts costs(model, placement);
    const Program program(schedule, placement);
    const LiveMemory live(schedule, placement);
    std::vector<Partition> all;
    for_each_partition(layers, spec.stages(), [&](const Partition& p) { all.push_back(p); });
    std::vector<double> ends;
    Program::Lanes<double> lanes(program.lane_rows());
    Program::Lanes<Program::Narrow> narrow(program.lane_rows());
    std::vector<double> expected;
    for (std::size_t i = 0; i < Program::kLanes && !all.empty(); ++i) {
      const Partition partition = all[random() % all.size()];
      const Cuts cuts = *model.cuts(partition);
      ASSERT_EQ(model.partition(cuts), partition);
      std::vector<double> durations(program.durations());
      const CutCosts::Priced priced = costs.price(cuts, program, durations.data(), 1);
      program.complete(durations.data(), 1);
      const double found = program.makespan(durations, ends, priced.tail);
      const Prices full = evaluate(layers, cluster, schedule, placement, partition);
      if (priced.exact) {
        EXPECT_EQ(found, static_cast<double>(full.estimate.count())) << round;
        ++exact;
      } else {
        EXPECT_LE(found, static_cast<double>(full.estimate.count())) << round;
        ++skipped;
      }
      tails += priced.tail != nullptr;
      for (std::size_t r = 0; r < ranks; ++r) {
        EXPECT_LE(live.peak(model, cuts, r), static_cast<double>(full.peak_memory[r].value));
        double highest = 0;
        for (const LiveMoment& moment : live.moments(r))
          highest = std::max(highest, live.held(model, moment, cuts, r));
        EXPECT_EQ(live.peak(model, cuts, r), highest);
      }
      const double bare = program.makespan(durations, ends);
      const auto path = program.critical_path(durations, ends);
      EXPECT_EQ(length(path, program, durations), bare);
      ++paths;
      expected.push_back(bare);
      for (std::size_t d = 0; d < durations.size(); ++d) lanes[d].lane[i] = durations[d];
      ASSERT_TRUE(costs.is_narrow());
      const CutCosts::Priced again =
          costs.price(cuts, program, narrow.data()->lane.data() + i, Program::kLanes);
      EXPECT_EQ(again.exact, priced.exact);
      EXPECT_EQ(again.tail, priced.tail);
    }
    if (all.empty()) continue;
    double out[Program::kLanes];
    program.makespans(lanes, out);
    for (std::size_t i = 0; i < Program::kLanes; ++i) EXPECT_EQ(out[i], expected[i]) << round;
    program.complete(narrow.data()->lane.data(), Program::kLanes);
    ASSERT_TRUE(program.makespans(narrow, out));
    for (std::size_t i = 0; i < Program::kLanes; ++i) EXPECT_EQ(out[i], expected[i]) << round;
  }
  EXPECT_GT(exact, 3000);
  EXPECT_GT(skipped, 50);
  EXPECT_GT(tails, 100);
}

Program::Lanes<Program::Narrow> narrowed(const Program::Lanes<double>& lanes) {
  Program::Lanes<Program::Narrow> narrow(lanes.size());
  for (std::size_t i = 0; i < lanes.size(); ++i)
    std::ranges::transform(lanes[i].lane, narrow[i].lane.begin(), Program::narrow);
  return narrow;
}

TEST(Program, LanesOfEitherWidthEqualTheScalarFormWhateverTheScaleOfTheDurations) {
  std::mt19937 random(5);
  int narrow_batches = 0, wide_batches = 0, upper_half = 0, missing = 0;
  for (int round = 0; round < 1000; ++round) {
    const std::size_t ranks = 1 + random() % 5;
    const ScheduleSpec spec = random_spec(random, ranks, 1 + random() % 8, {1, 2, 3});
    const Program program(generate(spec), placement_for(spec));
    std::vector<double> durations(program.durations()), ends, expected;
    Program::Lanes<double> lanes(program.lane_rows());
    // Some longest paths are near 2^31 or 2^32 ns, where the narrow form must give up.
    std::uniform_int_distribution<int> time(0, 100'000'000 << random() % 3);
    const bool some_missing = random() % 2 == 0;
    const int work_shift = random() % 3 == 0 ? 6 : 0, transfer_shift = random() % 2 == 0 ? 3 : 0;
    for (std::size_t i = 0; i < Program::kLanes; ++i) {
      for (std::size_t d = 0; d < 6 * program.stages(); ++d) {
        const bool transfer = d >= 4 * program.stages();
        durations[d] =
            static_cast<double>(time(random) >> (transfer ? transfer_shift : work_shift));
        if (transfer && some_missing && random() % 8 == 0) durations[d] = Program::kNever;
      }
      program.complete(durations.data(), 1);
      expected.push_back(program.makespan(durations, ends));
      for (std::size_t d = 0; d < durations.size(); ++d) lanes[d].lane[i] = durations[d];
    }
    auto narrow = narrowed(lanes);
    std::vector<double> out(Program::kLanes);
    program.makespans(lanes, out.data());
    EXPECT_EQ(out, expected);
    if (!program.makespans(narrow, out.data())) {
      ++wide_batches;
      continue;
    }
    EXPECT_EQ(out, expected);
    ++narrow_batches, missing += some_missing;
    upper_half += std::ranges::max(expected) > 0x1p31;
  }
  EXPECT_GT(narrow_batches, 200);
  EXPECT_GT(wide_batches, 200);
  EXPECT_GT(upper_half, 20);
  EXPECT_GT(missing, 50);
}

TEST(Program, NarrowLanesReckonToTheLastNumberAndGiveUpAtTheNext) {
  const ScheduleSpec spec{"gpipe", 1, 3, 1, {}, {}};  // one rank: its work in a row
  const Program program(generate(spec), placement_for(spec));
  /// Three microbatches of `each` ns and the optimizer: true if narrow lanes could tell.
  const auto tells = [&](double each, double total, double latency) {
    Program::Lanes<double> lanes(program.lane_rows());
    for (std::size_t k = 0; k < Program::kLanes; ++k) {
      const double backward = 1e6 * static_cast<double>(k);
      lanes[program.work(Work::Forward, 0)].lane[k] = each - backward;
      lanes[program.work(Work::BackwardInput, 0)].lane[k] = backward;
      lanes[program.work(Work::Optimizer, 0)].lane[k] = total - 3 * each;
      lanes[program.forward_latency(0)].lane[k] = latency;
    }
    program.complete(lanes.data()->lane.data(), Program::kLanes);
    auto narrow = narrowed(lanes);
    std::vector<double> out(Program::kLanes);
    const bool done = program.makespans(narrow, out.data());
    if (done) {
      EXPECT_EQ(out, std::vector<double>(Program::kLanes, total));
    }
    return done;
  };
  for (const double limit : {0x1p31, 0x1p32})
    for (const double step : {-1e8, -2.0, -1.0, 0.0, 1.0, 1e8})
      EXPECT_EQ(tells(limit / 4, limit + step, limit == 0x1p31 ? Program::kNever : 0), step < 0)
          << limit << " + " << step;
  // The largest number of all may stand for any that is larger.
  EXPECT_TRUE(tells(5e8, 1.5e9 + Program::kNarrowMost - 1, 0));
  EXPECT_FALSE(tells(5e8, 1.5e9 + Program::kNarrowMost, 0));
}

/// Layers that take `times` as long.
Layers slowed(Layers layers, int times) {
  for (Layer& layer : layers.layers)
    for (LayerTimes& t : layer.times)
      t.forward *= times, t.backward_input *= times, t.backward_weight *= times;
  return layers;
}

TEST(Candidates, TimesOfManyEqualTimesOfEachHoweverLongTheyTake) {
  std::mt19937 random(17);
  int short_ones = 0, long_ones = 0;
  for (int round = 0; round < 60; ++round) {
    RandomShape shape;
    shape.layers = 9;
    const Layers layers = slowed(random_layers(random, shape), 1 << random() % 22);
    const std::size_t ranks = 1 + random() % 4;
    const ScheduleSpec spec = random_spec(random, ranks, 1 + random() % 6, {1, 2});
    const Cluster cluster = random_cluster(random, ranks, true);
    Problem problem{.layers = layers, .cluster = cluster, .schedules = {spec}};
    for (std::size_t r = 0; r < ranks; ++r) {
      problem.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
      problem.memory_limit.emplace_back(std::int64_t{1} << 40);
    }
    const CutModel model(layers, cluster, MemoryRule::Lifetimes);
    if (model.last() < static_cast<std::int32_t>(spec.stages())) continue;
    std::vector<Cuts> cuts;
    for_each_partition(layers, spec.stages(),
                       [&](const Partition& p) { cuts.push_back(*model.cuts(p)); });
    Candidates candidates(model, problem, spec);
    std::vector<double> times;
    candidates.times(cuts, times, std::numeric_limits<double>::infinity());
    ASSERT_EQ(times.size(), cuts.size());
    for (std::size_t k = 0; k < cuts.size(); ++k) {
      EXPECT_EQ(times[k], candidates.time(cuts[k])) << round;
      ++(times[k] < 0x1p31 ? short_ones : long_ones);
    }
  }
  EXPECT_GT(short_ones, 200);
  EXPECT_GT(long_ones, 100);
}

}  // namespace
}  // namespace pfeife
