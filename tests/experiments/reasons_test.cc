// Why the chosen plan is the plan, where it need not be the fastest by estimate.
#include "experiments/plans/reasons.h"

#include <gmock/gmock.h>

namespace pfeife {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::Pair;

Trace trace_of(Nanoseconds step) {
  Trace trace{.ranks = 1};
  trace.events = {{.end = step}};
  return trace;
}

Evaluation plan_of(const std::string& family, Nanoseconds estimate, Nanoseconds simulated,
                   Nanoseconds p95) {
  Evaluation plan;
  plan.plan.spec.family = family;
  plan.estimated = trace_of(estimate);
  plan.simulated = trace_of(simulated);
  plan.simulated_spread = Spread{simulated, simulated, p95};
  plan.plan.peak_memory =
      plan.need.allocated = {Bytes{100}, Bytes{static_cast<std::int64_t>(family.size())}};
  plan.need.limit = {Bytes{200}, Bytes{200}};
  return plan;
}

/// Three plans, best estimate first, each the best by another figure, and three schedules that the
/// search rejected in comparison with the first.
struct Reasons : ::testing::Test {
  Reasons() {
    evaluated.config = &config;
    evaluated.planned = {
        plan_of("looped", milliseconds{10}, milliseconds{14}, milliseconds{18}),
        plan_of("zb_h1", milliseconds{11}, milliseconds{13}, milliseconds{17}),
        plan_of("1f1b", milliseconds{12}, milliseconds{15}, milliseconds{16}),
    };
    rejected = {{{"zbv"}, slower(3), Nanoseconds{milliseconds{9}}},
                {{"looped_bfs"}, slower(5), Nanoseconds{milliseconds{12}}},
                {{"gpipe"}, kRuledOut, Nanoseconds{milliseconds{13}}},
                {{"zb1p"}, kRuledOut, Nanoseconds{milliseconds{11}}},
                {{"zb_h2"}, kLacks}};
    pool_is_of({});
  }

  void pool_is_of(std::vector<Alternative> alternatives) {
    evaluated.pool = Pool({});
    evaluated.pool.reject(rejected);
    evaluated.pool.set_alternatives(std::move(alternatives));
  }

  void choose(SelectBy by) {
    config.select_by = by;
    evaluated.chosen = select(evaluated.planned, by, {.as_fast = 0});
  }

  std::vector<std::pair<std::string, Reason>> lost() const {
    std::vector<std::pair<std::string, Reason>> found;
    for (const LostSchedule& one : recorded_answer(evaluated).lost)
      found.emplace_back(one.family, one.reason);
    return found;
  }

  static Reason slower(int ms, SelectBy by = SelectBy::Estimate) {
    return {.why = Why::Slower, .slower = milliseconds{ms}, .by = by};
  }
  static Reason beside_least(Reason reason) {
    reason.beside_least = true;
    return reason;
  }
  const Reason kRuledOut{.why = Why::RuledOut};
  const Reason kLacks{.why = Why::LacksMemory, .rank = RankId{0}, .lacking = kGiB};
  Request config;
  EvaluatedCase evaluated;
  std::vector<Rejected> rejected;
};

TEST_F(Reasons, BesideTheFastestTheyAreTheSearchsOwn) {
  choose(SelectBy::Estimate);
  EXPECT_THAT(lost(),
              ElementsAre(Pair("zb_h1", slower(1)), Pair("1f1b", slower(2)), Pair("zbv", slower(3)),
                          Pair("looped_bfs", slower(5)), Pair("gpipe", kRuledOut),
                          Pair("zb1p", kRuledOut), Pair("zb_h2", kLacks)));
}

// The plan's p95 is 16 ms, those of the other two 18 and 17; they have the shorter estimates. The
// others have none: a bound of 16 ms rules out that one could be better, one of 15 ms does not.
TEST_F(Reasons, AreOfWhatThePlanWasChosenBy) {
  choose(SelectBy::P95);
  ASSERT_EQ(evaluated.chosen, 2u);
  rejected[1].bound = milliseconds{16};
  rejected[2].bound = milliseconds{15};
  pool_is_of({});
  EXPECT_THAT(
      lost(),
      ElementsAre(Pair("looped", slower(2, SelectBy::P95)), Pair("zb_h1", slower(1, SelectBy::P95)),
                  Pair("zbv", beside_least(slower(3))), Pair("looped_bfs", kRuledOut),
                  Pair("gpipe", beside_least(kRuledOut)), Pair("zb1p", beside_least(kRuledOut)),
                  Pair("zb_h2", kLacks)));
  for (Evaluation& plan : evaluated.planned) plan.simulated_spread.reset();
  choose(SelectBy::Simulate);  // 14, 13 and 15 ms
  ASSERT_EQ(evaluated.chosen, 1u);
  EXPECT_THAT(lost()[0], Pair("looped", slower(1, SelectBy::Simulate)));
  EXPECT_THAT(lost()[1], Pair("1f1b", slower(2, SelectBy::Simulate)));
}

// One plan of three lacks a simulation: estimates are what all have.
TEST_F(Reasons, PlansAreChosenByWhatAllOfThemHave) {
  evaluated.planned[2].simulated.reset();
  EXPECT_EQ(select(evaluated.planned, SelectBy::P95, {.as_fast = 0}), 2u);
  evaluated.planned[1].simulated_spread.reset();
  EXPECT_EQ(compared_by(evaluated.planned, SelectBy::P95), SelectBy::Estimate);
  EXPECT_EQ(select(evaluated.planned, SelectBy::P95, {.as_fast = 0}), 0u);
  EXPECT_EQ(select(evaluated.planned, SelectBy::Simulate, {.as_fast = 0}), 0u);
}

// Steps of 10, 11 and 12 ms in which 5, 8 and 9 ms are computed: bubbles of 50, 27.3 and 25 %.
TEST_F(Reasons, ALimitOfTheBubbleCostsWhatTheFastestWouldSave) {
  const int computed[] = {5, 8, 9};
  for (std::size_t i = 0; i < 3; ++i) {
    Trace& trace = evaluated.planned[i].estimated;
    trace.events[0].kind = TaskKind::Transfer;
    trace.events.push_back({.kind = TaskKind::Compute, .end = milliseconds{computed[i]}});
  }
  config.select_by = SelectBy::Estimate;
  config.plan.max_bubble = 0.3;
  evaluated.chosen = select(evaluated.planned, SelectBy::Estimate, config.plan.rule());
  EXPECT_EQ(evaluated.chosen, 1u);
  EXPECT_THAT(lost()[0],
              Pair("looped", Reason{.why = Why::Impossible,
                                    .words = "its bubble of 50.0 % is above plan.max_bubble"}));
  EXPECT_THAT(lost()[1], Pair("1f1b", slower(1)));
  const std::vector<Alternative> limit = recorded_answer(evaluated).alternatives;
  ASSERT_EQ(limit.size(), 2u);
  EXPECT_EQ(limit[0].choice, "a bubble of at most 30.0 %");
  EXPECT_EQ(limit[0].estimate, milliseconds{11});
  EXPECT_EQ(limit[1].choice, "any bubble");
  EXPECT_EQ(limit[1].estimate, milliseconds{10});
  EXPECT_EQ(to_string(limit[1].reason),
            "1 ms (10.0 %) faster, but its bubble of 50.0 % is above plan.max_bubble");
  config.plan.max_bubble = 0.6;
  evaluated.chosen = select(evaluated.planned, SelectBy::Estimate, config.plan.rule());
  EXPECT_EQ(evaluated.chosen, 0u);
  EXPECT_TRUE(recorded_answer(evaluated).alternatives.empty()) << "it costs nothing";
}

// The simulator may have chosen another plan of a schedule, or one of a schedule that the search
// put aside.
TEST_F(Reasons, AScheduleIsNamedOnceAndTheChosenOneNever) {
  evaluated.planned[1].plan.spec.family = "looped";
  evaluated.planned.push_back(plan_of("zbv", milliseconds{13}, milliseconds{12}, milliseconds{19}));
  choose(SelectBy::Simulate);
  ASSERT_EQ(evaluated.chosen, 3u);
  std::vector<std::string> names;
  for (const LostSchedule& one : recorded_answer(evaluated).lost) names.push_back(one.family);
  EXPECT_THAT(names, ElementsAre("looped", "1f1b", "looped_bfs", "gpipe", "zb1p", "zb_h2"));
}

TEST_F(Reasons, EachWayOfChoosingPicksItsOwn) {
  choose(SelectBy::Simulate);
  std::vector<std::pair<SelectBy, std::string>> picked;
  for (const PlanChoice& choice : choices_of(evaluated)) {
    picked.emplace_back(choice.by, choice.schedule);
    EXPECT_EQ(choice.used, choice.by == SelectBy::Simulate);
  }
  EXPECT_THAT(picked, ElementsAre(Pair(SelectBy::Estimate, "looped"),
                                  Pair(SelectBy::Simulate, "zb_h1"), Pair(SelectBy::P95, "1f1b")));
  for (Evaluation& plan : evaluated.planned) plan.simulated_spread.reset();
  EXPECT_EQ(choices_of(evaluated).size(), 2u) << "no p95 without jitter";
  for (Evaluation& plan : evaluated.planned) plan.simulated.reset();
  EXPECT_EQ(choices_of(evaluated).size(), 1u) << "nothing is simulated";
  evaluated.planned[0].reason = "nothing fits";
  EXPECT_TRUE(choices_of(evaluated).empty());
}

TEST_F(Reasons, OfWhatWasOpenTheChosenOneHasThePlansFigures) {
  pool_is_of({{.choice = "4 of 3", .schedule = "looped", .estimate = milliseconds{10}},
              {.choice = "6 of 2", .bound = milliseconds{9}, .reason = slower(5)},
              {.choice = "3 of 4", .bound = milliseconds{11}, .reason = kRuledOut},
              {.choice = "2 of 6", .bound = milliseconds{13}, .reason = kRuledOut},
              {.choice = "1 of 12", .reason = kLacks}});
  const auto reasons = [&] {
    std::vector<Reason> found;
    for (const Alternative& one : recorded_answer(evaluated).alternatives)
      found.push_back(one.reason);
    return found;
  };
  choose(SelectBy::Estimate);
  EXPECT_THAT(reasons(), ElementsAre(Reason{}, slower(5), kRuledOut, kRuledOut, kLacks));
  choose(SelectBy::P95);
  EXPECT_THAT(reasons(), ElementsAre(Reason{}, beside_least(slower(5)), beside_least(kRuledOut),
                                     kRuledOut, kLacks));
  const Alternative first = recorded_answer(evaluated).alternatives.front();
  EXPECT_EQ(first.schedule, "1f1b");
  EXPECT_EQ(first.estimate, Nanoseconds{milliseconds{12}});
  EXPECT_EQ(first.peak_memory, Bytes{100});
}

}  // namespace
}  // namespace pfeife
