// The order of microbatches that differ: against a table of the best and the worst orders that all
// permutations of an event loop of its own gave, against brute force over random ones, and the
// rule that the longest go to the middle.
#include "planner/search/orders/microbatch_permutation.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "planner/cost/estimate/evaluate.h"
#include "planner/ir/judge/validate.h"
#include "planner/ir/schedule/lower.h"
#include "planner/ir/schedule/microbatch_costs.h"
#include "planner/schedules/families.h"
#include "tests/search/one_f_one_b.h"

namespace pfeife {
namespace {

constexpr std::int64_t kUnit = 1000;  // ns of F of a microbatch of factor 1

/// F = c, B = 2 c (I = W = c) of a microbatch of factor c on every rank, transfers of 0.
StageCosts costs_of(std::size_t ranks, const std::vector<double>& factors) {
  std::vector<MicrobatchScale> scales;
  for (const double factor : factors) scales.push_back({factor, factor});
  const Nanoseconds unit{kUnit};
  const std::vector<double> linear{1};
  return with_microbatches(uniform_costs(ranks, unit, unit, unit, Nanoseconds{0}), scales, linear);
}

std::vector<double> loads(const StageCosts& costs) {
  std::vector<double> load;
  for (const StageCosts::Slice& kind : costs.kinds)
    load.push_back(static_cast<double>(kind.stages.front().forward.count()));
  return load;
}

struct Searched {
  OrderSearch search;
  std::vector<double> best;  // [position] factor
};

Searched searched(const std::string& family, std::size_t ranks, const std::vector<double>& factors,
                  const OrderSearchOptions& options = {}) {
  const ScheduleSpec spec{.family = family, .ranks = ranks, .microbatches = factors.size()};
  const StageCosts costs = costs_of(ranks, factors);
  const Placement placement = placement_for(spec);
  PermutedTimes times(lower(generate(spec), costs, placement), costs, placement);
  Searched found{search_microbatch_order(times, costs.kind_of, loads(costs), options), {}};
  for (const std::uint32_t m : found.search.best.front().order) found.best.push_back(factors[m]);
  return found;
}

TEST(MicrobatchOrder, BestAndWorstAreThoseOfAllPermutations) {
  struct Row {
    std::size_t ranks;
    std::vector<double> factors, best_order;  // an order that takes least
    double best, worst;
  };
  // By brute force over all permutations (1F1B, F = c, B = 2 c, no transfers).
  const std::vector<Row> table{{2, {1, 2, 3, 4}, {1, 2, 4, 3}, 37, 47},
                               {4, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 6, 5, 4}, 96, 143},
                               {4, {1, 1, 1, 1, 1, 1, 1, 8}, {}, 111, 117},
                               {4, {4, 4, 4, 4, 1, 1, 1, 1}, {1, 1, 4, 4, 4, 4, 1, 1}, 90, 132},
                               {3, {1, 1, 2, 2, 6}, {}, 63, 78},
                               {8, {1, 1, 1, 1, 1, 1, 1, 9}, {}, 224, 230}};
  for (const Row& row : table) {
    const Searched found = searched("1f1b", row.ranks, row.factors);
    EXPECT_TRUE(found.search.exact);
    EXPECT_EQ(found.search.best.front().time, static_cast<std::int64_t>(row.best * kUnit));
    EXPECT_EQ(found.search.worst.time, static_cast<std::int64_t>(row.worst * kUnit));
    EXPECT_EQ(one_f_one_b(row.ranks, found.best), row.best);
    if (!row.best_order.empty()) {
      EXPECT_EQ(one_f_one_b(row.ranks, row.best_order), row.best);
    }
  }
  // The longest, where it is alone: as the fourth of eight.
  EXPECT_EQ(one_f_one_b(4, {1, 1, 1, 8, 1, 1, 1, 1}), 111);
}

// 1,000 random batches of 4 to 7 microbatches, as the issue of all permutations.
TEST(MicrobatchOrder, OfAFewIsTheBestOfAllAndNeverSlowerThanTheLongestInTheMiddle) {
  std::mt19937 random(7);
  for (int round = 0; round < 1000; ++round) {
    const std::size_t n = 4 + random() % (round % 20 == 0 ? 4 : 3), ranks = 2 + random() % 4;
    std::vector<double> factors;
    for (std::size_t i = 0; i < n; ++i) factors.push_back(static_cast<double>(1 + random() % 9));
    const Searched found = searched("1f1b", ranks, factors);
    std::vector<double> order = factors;
    std::ranges::sort(order);
    double best = 1e300, worst = 0;
    do {
      const double time = one_f_one_b(ranks, order);
      best = std::min(best, time), worst = std::max(worst, time);
    } while (std::next_permutation(order.begin(), order.end()));
    ASSERT_TRUE(found.search.exact);
    ASSERT_EQ(found.search.best.front().time, static_cast<std::int64_t>(best * kUnit)) << round;
    ASSERT_EQ(found.search.worst.time, static_cast<std::int64_t>(worst * kUnit)) << round;
    const StageCosts costs = costs_of(ranks, factors);
    std::vector<double> middle;
    for (const std::uint32_t m : longest_in_the_middle(costs.kind_of, loads(costs)))
      middle.push_back(factors[m]);
    ASSERT_LE(best, one_f_one_b(ranks, middle));
  }
}

// With too little work for all orders: a local search, of the same outcome each time, which reaches
// what all orders reach in most cases and never stays behind the simple orders.
TEST(MicrobatchOrder, OfManyIsDeterministicAndNeverSlowerThanSimpleOrders) {
  std::mt19937 random(11);
  int reached = 0;
  constexpr int kRounds = 40;
  for (int round = 0; round < kRounds; ++round) {
    const std::size_t ranks = 2 + random() % 3;
    std::vector<double> factors;
    for (std::size_t i = 0; i < 8; ++i) factors.push_back(static_cast<double>(1 + random() % 30));
    const Searched all = searched("1f1b", ranks, factors, {.work = 400'000'000});
    const OrderSearchOptions little{.work = 300'000};
    const Searched local = searched("1f1b", ranks, factors, little);
    ASSERT_TRUE(all.search.exact);
    ASSERT_FALSE(local.search.exact);
    EXPECT_LT(local.search.tried, all.search.tried);
    EXPECT_EQ(local.search.best, searched("1f1b", ranks, factors, little).search.best);
    EXPECT_GE(local.search.best.front().time, all.search.best.front().time);
    reached += local.search.best.front().time == all.search.best.front().time;
    std::vector<double> sorted = factors;
    std::ranges::sort(sorted);
    const auto least = static_cast<double>(local.search.best.front().time) / kUnit;
    EXPECT_LE(least, one_f_one_b(ranks, factors));
    EXPECT_LE(least, one_f_one_b(ranks, sorted));
    std::ranges::reverse(sorted);
    EXPECT_LE(least, one_f_one_b(ranks, sorted));
  }
  EXPECT_GE(reached, kRounds * 3 / 4);
}

// The rows with other microbatches in them are a valid schedule, and evaluate() takes as long for
// them as PermutedTimes says, of every family.
TEST(MicrobatchOrder, TimesAreThoseOfTheRelabelledRows) {
  std::mt19937 random(3);
  for (const char* family : {"gpipe", "1f1b", "interleaved_1f1b", "zb1p", "zbv", "dualpipev"}) {
    const bool single = std::string(family) == "gpipe" || std::string(family) == "1f1b";
    const ScheduleSpec spec{
        .family = family, .ranks = 2, .microbatches = 6, .stages_per_rank = single ? 1U : 2U};
    const std::vector<double> factors{1, 5, 2, 2, 7, 3};
    const StageCosts costs = costs_of(spec.stages(), factors);
    const Placement placement = placement_for(spec);
    const Schedule rows = generate(spec);
    PermutedTimes times(lower(rows, costs, placement), costs, placement);
    MicrobatchOrder order(factors.size());
    std::iota(order.begin(), order.end(), 0U);
    EXPECT_EQ(relabelled(rows, order), rows);
    EXPECT_EQ(forward_order(rows).size(), factors.size());
    for (int round = 0; round < 10; ++round) {
      std::ranges::shuffle(order, random);
      const Schedule changed = relabelled(rows, order);
      const Schedule lowered = lower(changed, costs, placement);
      EXPECT_TRUE(validate(lowered, {stage_graph(costs), factors.size()}).empty()) << family;
      std::vector<std::uint32_t> kinds;
      for (const std::uint32_t m : order) kinds.push_back(costs.kind_of[m]);
      const Prices priced = evaluate_lowered(costs, lowered, placement);
      EXPECT_EQ(times.time(kinds), priced.estimate.count()) << family;
    }
  }
}

}  // namespace
}  // namespace pfeife
