// The share of a case's searches that is done, as a user sees it.
#include "experiments/plans/search_share.h"

#include <gmock/gmock.h>

#include "experiments/plans/choices.h"
#include "experiments/show/progress.h"

namespace pfeife {
namespace {

/// Problems of one layer on one device, searched by searches that report four steps.
class Reports : public ::testing::Test {
 protected:
  Reports() : cluster_(uniform_cluster(1, DeviceKind{}, {1e9}, Nanoseconds{0})) {
    layers_.layers.emplace_back().times = {{Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{1}}};
  }
  std::vector<Problem> problems(std::size_t count) const {
    const Problem one{.layers = layers_,
                      .cluster = cluster_,
                      .schedules = {{"gpipe", 1, 2, 1, {}, {}}},
                      .device_of_rank = {DeviceId{0}},
                      .memory_limit = {Bytes{0}}};
    return std::vector<Problem>(count, one);
  }
  /// What is reported while search_alternatives searches; each plan is as fast as the one before,
  /// and no bound says anything.
  std::vector<double> reported(std::size_t count) const {
    std::vector<double> shares;
    const SearchOptions options{.progress = [&](double done) { shares.push_back(done); }};
    SearchShare share(most_work(count, options));
    const Searcher searcher = [](const Problem&, const SearchOptions& of_search) {
      for (const double done : {0.2, 0.4, 0.8, 1.0}) of_search.progress(done);
      Answer outcome;
      outcome.plans.emplace_back().estimate = Nanoseconds{1000};
      outcome.bound.emplace().time = Nanoseconds{1};
      return outcome;
    };
    search_alternatives(problems(count), options,
                        [&](const Problem& problem, const SearchOptions& of_search) {
                          return share(problem, of_search, searcher);
                        });
    return shares;
  }

  Cluster cluster_;
  Layers layers_;
};

TEST_F(Reports, NeverGoBackAndAreOfTheWholeOnlyAtTheEnd) {
  for (const std::size_t count : {1, 2, 5, 9}) {
    const std::vector<double> shares = reported(count);
    // Each is searched briefly, if there are several, and four of them again.
    ASSERT_EQ(shares.size(), 4 * ((count > 1 ? count : 0) + std::min<std::size_t>(count, 4)));
    EXPECT_TRUE(std::ranges::is_sorted(shares)) << count;
    EXPECT_NEAR(shares.back(), 1, 1e-9) << count;
    EXPECT_LT(shares[shares.size() - 2], 0.999) << count;
  }
  EXPECT_THAT(reported(1), ::testing::ElementsAre(0.2, 0.4, 0.8, 1.0));
}

// Nine of effort 30, four of 500; each takes 20 more than its effort.
TEST_F(Reports, AreInProportionToTheEffortOfEachSearch) {
  const std::vector<double> shares = reported(9);
  const double all = 9 * 50 + 4 * 520;
  EXPECT_NEAR(shares[4 * 9 - 1], 9 * 50 / all, 1e-9);
  EXPECT_NEAR(shares[4 * 10 - 1], (9 * 50 + 520) / all, 1e-9);
}

// The first has the best plan, of 1000 ns, and a bound of 900; the second's bound of 800 is that of
// both. What the first search said on its way is not all that may be said.
TEST_F(Reports, TheHistoryOfTheBestEndsAtTheBoundOfAll) {
  const std::vector<Problem> both = problems(2);
  const Searcher searcher = [&](const Problem& problem, const SearchOptions&) {
    const bool first = &problem == &both[0];
    Answer outcome;
    Priced& plan = outcome.plans.emplace_back();
    plan.estimate = Nanoseconds{first ? 1000 : 1100};
    plan.peak_memory = {Bytes{1}};
    outcome.bound.emplace().time = Nanoseconds{first ? 900 : 800};
    outcome.history = {{1, plan.estimate, Nanoseconds{700}},
                       {2, plan.estimate, outcome.bound->time}};
    return outcome;
  };
  SettledCase settled;
  settled.layers = &layers_;
  const std::vector<SettledCase> cases(2, settled);
  const Answer found = search_settled(cases, both, {}, searcher).pool.take();
  EXPECT_EQ(found.bound->time, Nanoseconds{800});
  ASSERT_EQ(found.history.size(), 2u);
  EXPECT_EQ(found.history[0].bound, Nanoseconds{700});
  EXPECT_EQ(found.history[1].bound, Nanoseconds{800});
}

TEST(ProgressShare, IsNotOfTheWholeWhileTheStepGoesOn) {
  EXPECT_EQ(share_text(0), "");
  EXPECT_EQ(share_text(0.009), ", 0 %");
  EXPECT_EQ(share_text(0.5), ", 50 %");
  EXPECT_EQ(share_text(0.999), ", 99 %");
  EXPECT_EQ(share_text(1), ", 99 %");
}

}  // namespace
}  // namespace pfeife
