// The lower bounds that proofs over all cuts reckon with, against the exact costs of every choice.
#include "planner/cost/stages/stage_bounds.h"

#include <gtest/gtest.h>

#include "planner/cost/estimate/evaluate.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

/// A random model placed on random devices.
struct Placed {
  Layers layers;
  Cluster cluster;
  ScheduleSpec spec;
  Placement placement;
};
Placed random_placed(std::mt19937& random) {
  Placed placed;
  RandomShape shape;
  shape.layers = 5 + random() % 5;
  placed.layers = random_layers(random, shape);
  const std::size_t ranks = 1 + random() % 3;
  if (random() % 2 == 0)
    for (LayerStorage& storage : placed.layers.storages)
      if (random() % 2 == 0)  // a view of what crosses, needed by the W of another layer
        storage.weight_savers = {storage.savers.back()};
  if (!placed.layers.storages.empty() && random() % 2 == 0)  // named by two
    placed.layers.storages.push_back(placed.layers.storages.front());
  if (random() % 2 == 0)  // so that I and W are among the highest moments
    for (Layer& layer : placed.layers.layers) {
      const auto bytes = [&] { return Bytes{static_cast<std::int64_t>(random() % 1500)}; };
      layer.temporary = {{}, {}, bytes(), bytes()};
      layer.weight_saved.value *= 8;
    }
  placed.cluster = random_cluster(random, ranks, true);
  for (Path& path : placed.cluster.paths) path.latency = Nanoseconds{random() % 60};
  placed.spec = random_spec(random, ranks, 1 + random() % 4, {1, 2, 3});
  placed.placement = placement_for(placed.spec);
  return placed;
}
/// The positions of the boundaries of a partition.
std::vector<std::size_t> positions(const StageBounds& bounds, const Partition& partition) {
  std::vector<std::size_t> at{0};
  for (const std::int32_t cut : partition.cuts) {
    std::size_t q = at.back() + 1;
    while (bounds.layer(q) != static_cast<std::size_t>(cut) + 1) ++q;
    at.push_back(q);
  }
  at.push_back(bounds.last());
  return at;
}

/// What one stage adds, as the bounds have it.
struct Sums {
  const StageBounds& bounds;
  std::vector<std::size_t> at;
  std::int64_t of(std::size_t s, StageBounds::Amount what) const {
    return bounds.until(at[s + 1], s, what) - bounds.until(at[s], s, what) + bounds.once(s, what);
  }
};

/// Bytes that the ranks hold at least while they run `schedule`, from its counts in flight.
std::vector<std::int64_t> peaks(const Sums& sums, const Schedule& schedule,
                                const Placement& placement, Recompute recompute) {
  const bool keeps = recompute == Recompute::None;
  std::vector<std::int64_t> highest;
  for (std::size_t r = 0; r < schedule.ranks(); ++r) {
    std::int64_t now = 0, most = 0;
    for (std::size_t s = 0; s < placement.stages(); ++s)
      if (placement.rank_of_stage[s].index() == r) now += sums.of(s, StageBounds::kFixed);
    for (const Cell& cell : schedule.rows[r])
      for_each_action(cell, [&](const Action& a) {
        const std::size_t s = a.stage.index();
        const std::int64_t saved = sums.of(s, StageBounds::kSaved);
        if (a.op == Op::Forward && keeps) now += saved;
        const auto pass = static_cast<std::size_t>(a.op);
        const std::int64_t restored = keeps || !makes_input_gradient(a.op) ? 0 : saved;
        most = std::max(most,
                        now + restored + sums.bounds.temporary(pass, sums.at[s], sums.at[s + 1]));
        if (makes_input_gradient(a.op) && keeps) now -= saved;
        if (a.op == Op::BackwardInput) now += sums.of(s, StageBounds::kWeightSaved);
        if (a.op == Op::BackwardWeight) now -= sums.of(s, StageBounds::kWeightSaved);
      });
    highest.push_back(most);
  }
  return highest;
}

/// The message between stages s - 1 and s of the exact costs; nullptr: none, or none back.
const StagePair* message(const StageCosts& costs, std::size_t s, bool back) {
  const auto id = [](std::size_t k) { return StageId{k}; };
  const StagePair* pair = find_pair(costs, id(s - 1), id(s));
  return pair == nullptr || (back && !pair->has_gradient) ? nullptr : pair;
}

TEST(StageBounds, AreNeverAboveWhatAnyCutsCost) {
  std::mt19937 random(53);
  int partitions = 0, sure = 0, some = 0;
  for (int round = 0; round < 400; ++round) {
    const Placed p = random_placed(random);
    const auto recompute = static_cast<Recompute>(round % 2);  // none or all
    const StageBounds bounds =
        StageBounds(p.layers, p.cluster, recompute).for_placement(p.placement, Nanoseconds{0});
    const std::vector<bool> recomputed = choices(recompute, p.spec.stages()).front();
    const Schedule schedule = generate(p.spec);
    for_each_partition(p.layers, p.spec.stages(), [&](const Partition& partition) {
      ++partitions;
      const Prices exact = evaluate(p.layers, p.cluster, schedule, p.placement, partition,
                                    MemoryRule::Lifetimes, {recomputed});
      const Sums sums{bounds, positions(bounds, partition)};
      for (std::size_t s = 0; s < p.placement.stages(); ++s) {
        const StageCost& cost = exact.costs.stages[s];
        ASSERT_EQ(sums.of(s, StageBounds::kForward), cost.forward.count());
        ASSERT_EQ(sums.of(s, StageBounds::kInput), cost.backward_input.count());
        ASSERT_EQ(sums.of(s, StageBounds::kWeight), cost.backward_weight.count());
        ASSERT_LE(sums.of(s, StageBounds::kStep), cost.optimizer.count());
        ASSERT_LE(sums.of(s, StageBounds::kFixed), cost.fixed().value);
        ASSERT_LE(sums.of(s, StageBounds::kSaved), (cost.saved + cost.recomputed).value);
        ASSERT_LE(sums.of(s, StageBounds::kWeightSaved), cost.weight_saved.value);
        for (const bool back : {false, true}) {
          // Surely for stages of these or of larger begins and ends: so for these.
          if (s == 0) continue;
          for (std::size_t begin = sums.at[s - 1]; begin < sums.at[s]; ++begin)
            for (std::size_t end = sums.at[s] + 1; end <= sums.at[s + 1]; ++end) {
              const auto least =
                  bounds.message(s, {0, begin + 1}, sums.at[s], {end, bounds.last() + 1}, back);
              const StagePair* pair = message(exact.costs, s, back);
              if (!least) continue;
              ++sure;
              ASSERT_NE(pair, nullptr);
              ASSERT_LE(*least, back ? pair->backward_time : pair->forward_time);
            }
          // A message there takes as long as any that stages of these or of smaller begins and
          // larger ends may have.
          const StagePair* pair = message(exact.costs, s, back);
          for (std::size_t begin = 0; pair && begin <= sums.at[s - 1]; ++begin)
            for (std::size_t end = sums.at[s + 1]; end <= bounds.last(); ++end) {
              // No value surely crosses where stages need not have a layer.
              const auto least = bounds.message(s, {begin, sums.at[s] + 1}, sums.at[s],
                                                {sums.at[s], end + 1}, back, true);
              ASSERT_LE(*least, back ? pair->backward_time : pair->forward_time);
              some += *least > Nanoseconds{0};
            }
          // Between just these stages it is the message itself.
          const auto time = bounds.message(s, {sums.at[s - 1], sums.at[s - 1] + 1}, sums.at[s],
                                           {sums.at[s + 1], sums.at[s + 1] + 1}, back);
          ASSERT_EQ(time.has_value(), pair != nullptr);
          if (!pair) continue;
          ASSERT_EQ(*time, back ? pair->backward_time : pair->forward_time);
        }
      }
      const std::vector<std::int64_t> least = peaks(sums, schedule, p.placement, recompute);
      for (std::size_t r = 0; r < least.size(); ++r)
        ASSERT_LE(least[r], exact.peak_memory[r].value) << round;
    });
  }
  EXPECT_GT(partitions, 2000);
  EXPECT_GT(sure, 2000);
  EXPECT_GT(some, 2000);
}

}  // namespace
}  // namespace pfeife
