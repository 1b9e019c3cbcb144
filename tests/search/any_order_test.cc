// What no order of the actions goes below, against the best of all orders of small pipelines, and
// against orders that reach it.
#include "planner/search/bound/any_order.h"

#include <gtest/gtest.h>

#include "planner/schedules/families.h"
#include "planner/schedules/zb_greedy.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

/// F, I and W of each stage, and transfers between neighbours on different ranks: all times ns.
struct Pipeline {
  std::size_t ranks, stages_per_rank, microbatches;
  std::vector<std::int64_t> forward, input, weight;  // [stage]
  std::vector<std::int64_t> transfer;                // [boundary], both ways
  bool folded = false;                               // rank r has r and 2 ranks - 1 - r

  std::size_t stages() const { return ranks * stages_per_rank; }
  std::size_t rank(std::size_t s) const {
    return folded && s >= ranks ? 2 * ranks - 1 - s : s % ranks;
  }
  /// ns from the stage before s to s.
  std::int64_t sent(std::size_t s) const {
    return s == 0 || rank(s - 1) == rank(s) ? 0 : transfer[s];
  }
};

/// The best step of all orders: starts never go back in time, each action at once when its rank and
/// what it needs allow, and whatever cannot be better than the best so far is left out.
class BestOrder {
 public:
  BestOrder(const Pipeline& pipeline, std::int64_t known)
      : p_(pipeline),
        best_(known),
        free_(p_.ranks, 0),
        left_(p_.ranks, 0),
        end_(3, std::vector<std::vector<std::int64_t>>(
                    p_.stages(), std::vector<std::int64_t>(p_.microbatches, -1))) {
    const auto n = static_cast<std::int64_t>(p_.microbatches);
    for (std::size_t s = 0; s < p_.stages(); ++s)
      left_[p_.rank(s)] += n * (p_.forward[s] + p_.input[s] + p_.weight[s]);
    go_on(0, p_.stages() * p_.microbatches * 3);
  }
  std::int64_t best() const { return best_; }

 private:
  static constexpr std::int64_t kNot = -1;
  std::int64_t sent(std::size_t op, std::size_t s, std::size_t boundary, std::size_t m) const {
    const std::int64_t end = end_[op][s][m];
    return end == kNot ? kNot : end + p_.sent(boundary);
  }
  /// When what the action needs is there; kNot = not yet scheduled.
  std::int64_t ready(std::size_t op, std::size_t s, std::size_t m) const {
    if (op == 0) {
      if (m > 0 && end_[0][s][m - 1] == kNot) return kNot;  // microbatches are alike
      return s == 0 ? 0 : sent(0, s - 1, s, m);
    }
    if (op == 2) return end_[1][s][m];
    return s + 1 == p_.stages() ? end_[0][s][m] : sent(1, s + 1, s + 1, m);
  }
  void go_on(std::int64_t now, std::size_t actions) {
    if (actions == 0) {
      best_ = std::min(best_, *std::ranges::max_element(free_));
      return;
    }
    for (std::size_t r = 0; r < p_.ranks; ++r)
      if (left_[r] > 0 && std::max(free_[r], now) + left_[r] >= best_) return;
    const std::vector<std::int64_t>* const times[] = {&p_.forward, &p_.input, &p_.weight};
    for (std::size_t op = 0; op < 3; ++op)
      for (std::size_t s = 0; s < p_.stages(); ++s)
        for (std::size_t m = 0; m < p_.microbatches; ++m) {
          if (end_[op][s][m] != kNot) continue;
          const std::int64_t needs = ready(op, s, m);
          const std::size_t r = p_.rank(s);
          const std::int64_t start = std::max(needs, free_[r]);
          if (needs == kNot || start < now) continue;
          const std::int64_t time = (*times[op])[s], was_free = free_[r];
          end_[op][s][m] = free_[r] = start + time, left_[r] -= time;
          go_on(start, actions - 1);
          end_[op][s][m] = kNot, free_[r] = was_free, left_[r] += time;
        }
  }

  const Pipeline& p_;
  std::int64_t best_;
  std::vector<std::int64_t> free_, left_;                    // [rank]
  std::vector<std::vector<std::vector<std::int64_t>>> end_;  // [F, I, W][stage][microbatch]
};

Layers layers_of(const Pipeline& p) {
  Layers layers;
  for (std::size_t s = 0; s < p.forward.size(); ++s) {
    Layer layer;
    layer.times = {{Nanoseconds{p.forward[s]}, Nanoseconds{p.input[s]}, Nanoseconds{p.weight[s]},
                    Nanoseconds{0}}};
    layers.layers.push_back(layer);
    const auto l = static_cast<std::int64_t>(s);
    if (s > 0)
      layers.values.push_back(
          {"v", LayerId{l - 1}, {LayerId{l}}, Bytes{1}, Bytes{1}, Nanoseconds{p.transfer[s]}});
  }
  return layers;
}

Problem problem_of(const Pipeline& p, const Layers& layers, const Cluster& cluster) {
  Problem problem{.layers = layers, .cluster = cluster};
  for (std::size_t r = 0; r < p.ranks; ++r) {
    problem.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
    problem.memory_limit.emplace_back(std::int64_t{1} << 40);
  }
  return problem;
}

std::int64_t any_order_bound(const Pipeline& p) {
  const Layers layers = layers_of(p);
  const Cluster cluster = uniform_cluster(p.ranks, DeviceKind{}, {1e15}, Nanoseconds{0});
  const Problem problem = problem_of(p, layers, cluster);
  const CutModel model(layers, cluster, MemoryRule::Lifetimes);
  return static_cast<std::int64_t>(AnyOrder(model, problem,
                                            {p.folded ? "zbv_greedy" : "zb_greedy",
                                             p.ranks,
                                             p.microbatches,
                                             p.stages_per_rank,
                                             {},
                                             {}})
                                       .bound());
}

/// The stages that neighbouring layers make: all ways to cut into ranks * stages_per_rank.
void for_each_cut(const Pipeline& p, const std::function<void(const Pipeline&)>& visit) {
  const Layers layers = layers_of(p);
  for_each_partition(layers, p.stages(), [&](const Partition& cuts) {
    Pipeline cut{p.ranks, p.stages_per_rank, p.microbatches, {0}, {0}, {0}, {0}, p.folded};
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const bool begins = l > 0 && std::ranges::count(cuts.cuts, static_cast<std::int32_t>(l) - 1);
      if (begins)
        for (auto* times : {&cut.forward, &cut.input, &cut.weight}) times->push_back(0);
      if (begins) cut.transfer.push_back(p.transfer[l]);
      cut.forward.back() += p.forward[l], cut.input.back() += p.input[l];
      cut.weight.back() += p.weight[l];
    }
    visit(cut);
  });
}

/// The longest chain that every order of these stages has. Before: the first microbatch comes to a
/// stage of the rank, on its way forward or back. Then what the rank must do after that, of stages
/// that it cannot have begun with before. After: nothing, or the last microbatch goes back from a
/// stage of the rank to the first one.
std::int64_t longest_chain(const Pipeline& p) {
  const auto n = static_cast<std::int64_t>(p.microbatches);
  std::int64_t longest = 0, turn = 0;  // turn: one microbatch forward through all stages
  for (std::size_t s = 0; s < p.stages(); ++s) turn += p.forward[s] + p.sent(s);
  for (std::size_t r = 0; r < p.ranks; ++r)
    for (std::size_t leave = 0; leave < p.stages(); ++leave) {
      if (leave > 0 && p.rank(leave) != r) continue;
      std::int64_t after = leave == 0 ? 0 : p.weight[0];
      for (std::size_t s = 0; s < leave; ++s) after += p.input[s] + p.sent(s + 1);
      for (std::size_t comes = 0; comes < p.stages(); ++comes) {
        if (p.rank(comes) != r) continue;
        std::int64_t forward = p.sent(comes), back = turn;
        for (std::size_t s = 0; s < comes; ++s) forward += p.forward[s] + p.sent(s);
        for (std::size_t s = comes + 1; s < p.stages(); ++s) back += p.input[s] + p.sent(s);
        for (std::size_t s = 0; s < p.stages(); ++s) {
          if (p.rank(s) != r) continue;
          if (s >= comes) forward += n * p.forward[s];
          if (s >= leave) forward += n * (p.input[s] + (leave == 0 ? p.weight[s] : 0));
          if (s >= leave && s <= comes) back += n * (p.input[s] + (leave == 0 ? p.weight[s] : 0));
        }
        longest = std::max(longest, forward + after);
        if (leave <= comes) longest = std::max(longest, back + after);
      }
    }
  return longest;
}

TEST(AnyOrder, IsNotAboveTheBestOfAllOrdersAndOftenEqual) {
  std::mt19937 random(5);
  int equal = 0, close = 0, all = 0;
  for (int round = 0; round < 270; ++round) {
    static constexpr std::array<std::array<std::size_t, 3>, 9> kSizes{{{2, 1, 2},
                                                                       {2, 1, 3},
                                                                       {3, 1, 2},
                                                                       {3, 1, 3},
                                                                       {4, 1, 1},
                                                                       {2, 2, 1},
                                                                       {2, 2, 2},
                                                                       {3, 2, 1},
                                                                       {2, 3, 1}}};
    const auto [ranks, stages_per_rank, microbatches] = kSizes[static_cast<std::size_t>(round) % 9];
    Pipeline p{ranks,        stages_per_rank,
               microbatches, {},
               {},           {},
               {},           stages_per_rank == 2 && round % 2 == 0};
    for (std::size_t l = 0; l < p.stages() + random() % 2; ++l) {
      p.forward.push_back(1 + random() % 9), p.input.push_back(1 + random() % 9);
      p.weight.push_back(random() % 9), p.transfer.push_back(random() % 4);
    }
    if (round % 4 == 0)  // one layer that decides
      for (const std::size_t l = random() % p.forward.size();
           auto* times : {&p.forward, &p.input, &p.weight})
        (*times)[l] *= 5;
    std::int64_t best = std::numeric_limits<std::int64_t>::max() / 2, chain = best;
    for_each_cut(p, [&](const Pipeline& cut) {
      best = BestOrder(cut, best).best(), chain = std::min(chain, longest_chain(cut));
    });
    const std::int64_t bound = any_order_bound(p);
    ASSERT_LE(bound, best) << round;
    // Where there is but one way to cut, it is the longest chain to the nanosecond.
    ASSERT_LE(bound, chain) << round;
    ASSERT_TRUE(p.forward.size() > p.stages() || bound == chain) << round;
    ++all, equal += bound == best, close += bound * 10 >= best * 9;
  }
  EXPECT_GT(close * 10, all * 9);  // within 10 % in nine of ten cases
  EXPECT_GT(equal * 3, all);
}

// Equal stages, one layer each, transfers for nothing: orders built for them end with the bound to
// the nanosecond, with more microbatches than ranks and with fewer. With fewer it is the way back
// that counts: 8 ranks, 4 microbatches, one stage a rank: 8 F and 7 I until the first gradient is
// at rank 0, then 4 I and 4 W are left.
TEST(AnyOrder, IsReachedByOrdersOfEqualStages) {
  for (const std::size_t stages_per_rank : {1, 2, 3})
    for (const std::size_t microbatches : {2, 4, 8, 16}) {
      const std::size_t ranks = 8, stages = ranks * stages_per_rank;
      const std::vector<std::int64_t> one(stages, 1);
      Pipeline p{ranks,
                 stages_per_rank,
                 microbatches,
                 one,
                 one,
                 one,
                 std::vector<std::int64_t>(stages, 0)};
      const auto n = static_cast<std::int64_t>(microbatches),
                 v = static_cast<std::int64_t>(stages_per_rank);
      const std::int64_t expected =
          std::max({7 + 3 * n * v, 8 * v + 7 + 2 * n * v, 8 * v + (8 * v - 1) + 2 * n});
      EXPECT_EQ(any_order_bound(p), expected) << stages_per_rank << " " << microbatches;
      const StageCosts costs =
          uniform_costs(stages, Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{0});
      const ScheduleSpec spec{"zb_greedy", ranks, microbatches, stages_per_rank, {}, {}};
      const TimedOrder order = zero_bubble_order(costs, placement_for(spec), microbatches, {});
      EXPECT_EQ(order.time, expected) << stages_per_rank << " " << microbatches;
    }
}

// The same in the shape of a V: the longest chain of all is what an order takes.
TEST(AnyOrder, IsReachedByOrdersOfEqualStagesInAV) {
  for (const std::size_t microbatches : {1, 2, 4, 8, 16}) {
    const std::size_t ranks = 8, stages = 2 * ranks;
    const std::vector<std::int64_t> one(stages, 1), none(stages, 0);
    const Pipeline p{ranks, 2, microbatches, one, one, one, none, true};
    EXPECT_EQ(any_order_bound(p), longest_chain(p)) << microbatches;
    const StageCosts costs =
        uniform_costs(stages, Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{0});
    EXPECT_EQ(zero_bubble_order(costs, v_shape(ranks), microbatches, {}).time, longest_chain(p))
        << microbatches;
  }
}

}  // namespace
}  // namespace pfeife
