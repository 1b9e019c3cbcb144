// What is made of several searches: made-up ones, whose answers are said here.
#include <gtest/gtest.h>

#include "planner/search/choices/alternatives.h"

namespace pfeife {
namespace {

/// What a made-up search says (ns). No time: nothing fits, `lacks` bytes of it.
struct Told {
  std::optional<std::int64_t> time;
  std::int64_t bound = 0;
  bool built = false;   ///< the plan's order is built for its costs
  bool proven = false;  ///< that nothing fits
  std::int64_t lacks = 1;

  Answer outcome() const {
    Answer found;
    found.candidates = 7;
    if (!time) {
      found.infeasible = Infeasible{.needed = Bytes{lacks}, .proven = proven};
      return found;
    }
    Priced& plan = found.plans.emplace_back();
    plan.estimate = Nanoseconds{*time};
    if (built) plan.order = Schedule{};
    found.bound.emplace().time = Nanoseconds{bound};
    return found;
  }
};

/// Problems of one layer on one device: two microbatches of F, I and W of `work` each.
class MadeUp {
 public:
  explicit MadeUp(const std::vector<std::int64_t>& work)
      : cluster_(uniform_cluster(1, DeviceKind{}, {1e9}, Nanoseconds{0})), layers_(work.size()) {
    for (std::size_t i = 0; i < work.size(); ++i) {
      const Nanoseconds time{work[i]};
      layers_[i].layers.emplace_back().times = {{time, time, time, Nanoseconds{0}}};
      problems_.push_back({.layers = layers_[i],
                           .cluster = cluster_,
                           .schedules = {{"gpipe", 1, 2, 1, {}, {}}},
                           .device_of_rank = {DeviceId{0}},
                           .memory_limit = {Bytes{0}}});
    }
  }
  /// [problem][search of it]; the last is said of all further ones.
  BestAlternative choose(const std::vector<std::vector<Told>>& told,
                         const SearchOptions& options = {}, const Finals& finals = {}) {
    asked.assign(problems_.size(), 0), effort.assign(problems_.size(), 0);
    return search_alternatives(
        problems_, options,
        [&](const Problem& problem, const SearchOptions& of_search) {
          const std::size_t i = number_of(problem);
          effort[i] += of_search.effort();
          return told[i][std::min(asked[i]++, told[i].size() - 1)].outcome();
        },
        finals);
  }
  std::size_t number_of(const Problem& problem) const {
    return static_cast<std::size_t>(&problem - problems_.data());
  }
  std::vector<std::size_t> asked;   ///< [problem] searches
  std::vector<std::size_t> effort;  ///< [problem] of all of them

 private:
  Cluster cluster_;
  std::vector<Layers> layers_;
  std::vector<Problem> problems_;
};

std::int64_t bound_of(const std::vector<std::vector<Told>>& told) {
  return MadeUp(std::vector<std::int64_t>(told.size(), 10))
      .choose(told)
      .outcome.bound->time.count();
}

// No order does 2 x (10 + 10 + 10) in less than 60; that is all that is known of other orders where
// the bound is of listed schedules, and of all plans where nothing is said of them.
TEST(Alternatives, TakeBoundsForWhatTheyHold) {
  EXPECT_EQ(bound_of({{{100, 90}}, {{110, 95}}}), 90);
  EXPECT_EQ(bound_of({{{100, 95}}, {{110, 90}}}), 90);
  EXPECT_EQ(bound_of({{{100, 90, true}}, {{110, 95, true}}}), 90);
  EXPECT_EQ(bound_of({{{100, 90, true}}, {{110, 95, false}}}), 60);
  EXPECT_EQ(bound_of({{{100, 90}}, {{{}, 0, false, true}}}), 90);
  EXPECT_EQ(bound_of({{{100, 90}}, {{{}, 0, false, false}}}), 60);
  // What the first search has proven is not forgotten.
  EXPECT_EQ(bound_of({{{100, 90}, {100, 80}}, {{110, 95}}}), 90);
}

TEST(Alternatives, ProveThatNothingFitsOnlyIfNoneOfThemDoes) {
  const auto proven = [](bool first, bool second) {
    const BestAlternative found =
        MadeUp({10, 10}).choose({{{{}, 0, false, first, 5}}, {{{}, 0, false, second, 3}}});
    EXPECT_EQ(found.best, 1U) << "it lacks least";
    EXPECT_EQ(why_not(found, 1).why, Why::Chosen);
    return found.outcome.infeasible->proven;
  };
  EXPECT_TRUE(proven(true, true));
  EXPECT_FALSE(proven(true, false));
  EXPECT_FALSE(proven(false, true));
}

// The work of the second is 600: it is not searched.
TEST(Alternatives, LeaveOutWhatCannotBeBestAndCountAllSearches) {
  MadeUp two({10, 100});
  const BestAlternative found = two.choose({{{100, 90}}, {{700, 650}}});
  EXPECT_EQ(two.asked, (std::vector<std::size_t>{2, 0}));
  EXPECT_EQ(found.outcome.candidates, 14U);
  EXPECT_EQ(found.outcome.bound->time, Nanoseconds{90});
  EXPECT_EQ(why_not(found, 1), Reason{.why = Why::RuledOut});
}

// Four are searched with all effort; of the others those count whose bound is below the best plan.
TEST(Alternatives, CountThoseThatMayYetBeBestAndWereSearchedBrieflyAlone) {
  const auto left = [](std::size_t problems, std::int64_t last_bound) {
    std::vector<std::vector<Told>> told(problems, {Told{100, 90}});
    told.back() = {Told{200, last_bound}};
    std::size_t count = 0;
    for (const Unfinished& one :
         MadeUp(std::vector<std::int64_t>(problems, 10)).choose(told).outcome.unfinished)
      count += one.left;
    return count;
  };
  EXPECT_EQ(left(1, 90), 0U);
  EXPECT_EQ(left(4, 90), 0U);
  EXPECT_EQ(left(5, 90), 1U);
  EXPECT_EQ(left(5, 100), 0U) << "no plan of it is faster";
  EXPECT_EQ(left(6, 100), 1U);
  EXPECT_EQ(left(6, 99), 2U);
}

// The second has the better estimate, and waits for links.
TEST(Alternatives, AreComparedByTheTimesThatTheCallerKnows) {
  MadeUp two({10, 10});
  SearchOptions options;
  options.times = [&](const Problem& problem, std::span<const Priced> plans) {
    return std::vector(plans.size(), Nanoseconds{two.number_of(problem) == 0 ? 110 : 150});
  };
  EXPECT_EQ(two.choose({{{100, 70}}, {{90, 70}}}).best, 1U);
  const BestAlternative found = two.choose({{{100, 70}}, {{90, 70}}}, options);
  EXPECT_EQ(found.best, 0U);
  EXPECT_EQ(why_not(found, 1),
            (Reason{.why = Why::Slower, .slower = Nanoseconds{40}, .by = SelectBy::Simulate}));
  EXPECT_EQ(found.outcome.bound->time, Nanoseconds{70}) << "a bound is of estimates";
}

// All with an effort of 30, the best two with a fourth of 400, the best of all with 400.
TEST(Alternatives, SpendMostOnTheBestWhereFewFinalsAreAsked) {
  MadeUp four({10, 10, 10, 10});
  four.choose({{{130, 60}}, {{120, 60}}, {{100, 60}}, {{110, 60}}}, {.iterations = 400},
              {.short_ones = 2, .full = 1});
  EXPECT_EQ(four.effort, (std::vector<std::size_t>{30, 30, 530, 130}));
}

}  // namespace
}  // namespace pfeife
