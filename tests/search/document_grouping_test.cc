// Which documents share a microbatch: against brute force over all groupings and orders by another
// enumeration, with the step of 1F1B from an event loop of its own.
#include "planner/search/orders/document_grouping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "planner/cost/estimate/evaluate.h"
#include "planner/schedules/families.h"
#include "planner/search/orders/grouped_times.h"
#include "tests/search/one_f_one_b.h"

namespace pfeife {
namespace {

constexpr std::int64_t kMostTokens = 12;

/// F of a microbatch: half of what 8 tokens take is attention, which grows by squares.
double factor_of(const Documents& microbatch) {
  double factor = 0;
  for (const std::int64_t length : microbatch) {
    const auto exact = static_cast<double>(length);
    factor += exact / 16 + exact * exact / 128;
  }
  return factor;
}

std::int64_t step_of(std::size_t ranks, const DocumentLengths& grouping) {
  std::vector<double> factors;
  for (const Documents& microbatch : grouping) factors.push_back(factor_of(microbatch));
  return std::llround(one_f_one_b(ranks, factors) * 128'000);
}

std::int64_t tokens_of(const Documents& microbatch) {
  return std::accumulate(microbatch.begin(), microbatch.end(), std::int64_t{0});
}

/// Calls `visit` with every way to deal the documents to so many microbatches within the limit, in
/// every order: document d joins a microbatch that is open or opens the next, then all
/// permutations.
template <class Visit>
void for_each_grouping(const Documents& documents, std::size_t microbatches, std::size_t d,
                       DocumentLengths& open, const Visit& visit) {
  if (d == documents.size()) {
    if (open.size() != microbatches) return;
    std::vector<std::size_t> order(microbatches);
    std::iota(order.begin(), order.end(), 0U);
    do {
      DocumentLengths grouping;
      for (const std::size_t m : order) grouping.push_back(open[m]);
      visit(grouping);
    } while (std::next_permutation(order.begin(), order.end()));
    return;
  }
  for (std::size_t m = 0; m <= open.size() && m < microbatches; ++m) {
    if (m == open.size()) open.emplace_back();
    open[m].push_back(documents[d]);
    if (tokens_of(open[m]) <= kMostTokens)
      for_each_grouping(documents, microbatches, d + 1, open, visit);
    open[m].pop_back();
    if (open[m].empty()) {
      open.pop_back();
      break;
    }
  }
}

Documents random_documents(std::mt19937& random, std::size_t least, std::size_t most) {
  Documents documents(least + random() % (most - least + 1));
  for (std::int64_t& length : documents)
    length = static_cast<std::int64_t>(1 + random() % (random() % 3 == 0 ? 12 : 5));
  return documents;
}

Documents sorted_documents(const DocumentLengths& grouping) {
  Documents documents;
  for (const Documents& microbatch : grouping)
    documents.insert(documents.end(), microbatch.begin(), microbatch.end());
  std::ranges::sort(documents);
  return documents;
}

TEST(DocumentGrouping, FirstFitTakesTheFirstMicrobatchWithRoom) {
  EXPECT_EQ(first_fit({7, 6, 5, 6, 3, 2}, kMostTokens), (DocumentLengths{{7, 5}, {6, 6}, {3, 2}}));
}

TEST(DocumentGrouping, BalancedOnesStayWithinTheLimit) {
  // Tokens: 9 and 6 + 5, so 3 joins the 9. Squares: 81 and 61, but the second has no room for 3.
  EXPECT_EQ(balanced_grouping({3, 5, 9, 6}, kMostTokens, 2, false),
            (DocumentLengths{{9, 3}, {6, 5}}));
  EXPECT_EQ(balanced_grouping({3, 5, 9, 6}, kMostTokens, 2, true),
            (DocumentLengths{{9, 3}, {6, 5}}));
  // Squares of 6 are more than those of 4 and 4, tokens less.
  EXPECT_EQ(balanced_grouping({6, 4, 4, 1}, kMostTokens, 2, true),
            (DocumentLengths{{6}, {4, 4, 1}}));
  EXPECT_EQ(balanced_grouping({6, 4, 4, 1}, kMostTokens, 2, false),
            (DocumentLengths{{6, 1}, {4, 4}}));
  EXPECT_EQ(balanced_grouping({7, 7, 7}, kMostTokens, 2, false), std::nullopt);
  EXPECT_EQ(balanced_grouping({7}, kMostTokens, 2, false), std::nullopt);
}

TEST(DocumentGrouping, OfAFewIsTheBestOfAllGroupingsAndOrders) {
  std::mt19937 random(5);
  int faster = 0;
  constexpr int kRounds = 150;
  for (int round = 0; round < kRounds; ++round) {
    const Documents documents = random_documents(random, 4, 7);
    const DocumentLengths fitted = first_fit(documents, kMostTokens);
    const std::size_t ranks = 2 + random() % 3;
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    DocumentLengths open;
    for_each_grouping(documents, fitted.size(), 0, open, [&](const DocumentLengths& grouping) {
      best = std::min(best, step_of(ranks, grouping));
    });
    const GroupingSearch found = search_grouping(
        {fitted}, kMostTokens, [&](const DocumentLengths& g) { return step_of(ranks, g); });
    ASSERT_TRUE(found.exact);
    ASSERT_EQ(found.time, best) << round;
    ASSERT_EQ(step_of(ranks, found.grouping), best);
    ASSERT_EQ(found.grouping.size(), fitted.size());
    ASSERT_EQ(sorted_documents(found.grouping), sorted_documents(fitted));
    for (const Documents& microbatch : found.grouping) {
      ASSERT_FALSE(microbatch.empty());
      ASSERT_LE(tokens_of(microbatch), kMostTokens);
    }
    faster += found.time < step_of(ranks, fitted);
  }
  EXPECT_GT(faster, kRounds / 2);
}

// With too few tries for all groupings: the same outcome each time, never slower than a start, and
// within 1 % of the best of all groupings.
TEST(DocumentGrouping, OfManyIsDeterministicAndNeverSlowerThanItsStarts) {
  std::mt19937 random(9);
  constexpr std::int64_t kRoomy = 18;
  int searched = 0, faster = 0;
  constexpr int kRounds = 30;
  for (int round = 0; round < kRounds; ++round) {
    Documents documents(10);
    for (std::int64_t& length : documents) length = static_cast<std::int64_t>(1 + random() % 8);
    const DocumentLengths fitted = first_fit(documents, kRoomy);
    const auto time = [&](const DocumentLengths& g) { return step_of(3, g); };
    const GroupingSearch all = search_grouping({fitted}, kRoomy, time, {.tries = 200'000});
    ASSERT_TRUE(all.exact);
    const GroupingOptions few{.tries = 800};
    if (all.tried <= few.tries) continue;
    ++searched;
    const GroupingSearch local = search_grouping({fitted}, kRoomy, time, few);
    EXPECT_FALSE(local.exact);
    EXPECT_LE(local.tried, few.tries);
    EXPECT_EQ(local.grouping, search_grouping({fitted}, kRoomy, time, few).grouping);
    EXPECT_EQ(local.time, time(local.grouping));
    EXPECT_LE(local.time, time(fitted));
    EXPECT_GE(local.time, all.time);
    EXPECT_LE(local.time * 100, all.time * 101);
    faster += time(fitted) * 100 > all.time * 105;
  }
  EXPECT_GE(searched, kRounds / 2);
  EXPECT_GE(faster, searched / 2);  // than first-fit, by more than 5 %
}

// Layers of equal F, I and W, half of it attention, in sequences of 8 tokens: the rows of a plan
// take as long for a grouping as the event loop, and as evaluate().
TEST(DocumentGrouping, TimesAreThoseOfTheEventLoopAndOfEvaluate) {
  std::mt19937 random(2);
  const Nanoseconds unit{128'000};
  Layers layers{.name = "half", .digest = std::string(64, '0')};
  for (std::size_t l = 0; l < 3; ++l) {
    layers.layers.push_back(
        {.name = "l" + std::to_string(l),
         .times = {{.forward = unit, .backward_input = unit, .backward_weight = unit}},
         .saved = Bytes{100}});
    if (l > 0) layers.values.push_back({.producer = LayerId{l - 1}, .consumers = {LayerId{l}}});
  }
  layers.sequence = Sequence{
      .tokens = 8, .attention = {0.5, 0.5, 0.5}, .keys_values = {Bytes{0}, Bytes{0}, Bytes{0}}};
  const Cluster cluster = uniform_cluster(3, {.memory = kGiB}, {1e12}, Nanoseconds{0});
  for (int round = 0; round < 20; ++round) {
    const DocumentLengths grouping = first_fit(random_documents(random, 6, 12), kMostTokens);
    Choice choice{.spec = {.family = "1f1b", .ranks = 3, .microbatches = grouping.size()},
                  .partition = {{0, 1}},
                  .placement = {}};
    choice.placement = placement_for(choice.spec);
    GroupedTimes times(layers, cluster, choice, StepNorm::None);
    DocumentLengths reversed(grouping.rbegin(), grouping.rend());
    for (const DocumentLengths& asked : {grouping, reversed}) {
      EXPECT_EQ(times.time(asked), step_of(3, asked)) << round;
      Layers packed = layers;
      packed.microbatches = scales_of_documents(asked, 8, 1);
      EXPECT_EQ(times.time(asked),
                evaluate(packed, cluster, compute_only(choice), choice.placement, choice.partition)
                    .estimate.count());
    }
  }
}

}  // namespace
}  // namespace pfeife
