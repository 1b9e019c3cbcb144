// From evaluated plans to the record of a case: every figure worked out by hand.
#include "experiments/sweep/record.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>

#include "planner/io/plan/plan_file.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "tests/support/scratch_folder.h"

namespace pfeife {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

/// One F a rank, from `begin` to `end` (ms).
Trace trace(const std::vector<std::pair<int, int>>& spans) {
  Trace trace;
  trace.ranks = spans.size();
  for (std::size_t r = 0; r < spans.size(); ++r) {
    const RankId rank{r};
    trace.events.push_back({.rank = rank,
                            .peer = rank,
                            .cell = forward(StageId{rank.value}, MicrobatchId{0}),
                            .start = milliseconds{spans[r].first},
                            .end = milliseconds{spans[r].second}});
  }
  return trace;
}

/// Two ranks, four microbatches of three samples, three layers.
class Record : public ::testing::Test {
 protected:
  Record() {
    config.name = "devices=2,microbatches=4";
    config.devices = 2;
    config.microbatches = 4;
    layers.microbatch_size = 3;
    layers.layers = {{.name = "a"}, {.name = "b", .module_path = "block.b"}, {.name = "c"}};
    layers.notes = {"of the model"};
    cluster.notes = {"of the cluster"};
  }

  /// A plan that takes so many ms by the estimate; fits exactly.
  Evaluation plan(const std::string& name, int estimated) const {
    Evaluation plan{.inputs = {&config, &layers, &cluster}};
    plan.name = name;
    plan.plan.spec = {"zb_h1", 2, 4, 1, {}, {}};
    plan.plan.partition.cuts = {1};
    plan.plan.placement = round_robin(2, 2);
    plan.costs.stages = {{.forward = milliseconds{1},
                          .backward_input = milliseconds{2},
                          .backward_weight = milliseconds{4}},
                         {.forward = milliseconds{8},
                          .backward_input = milliseconds{16},
                          .backward_weight = milliseconds{32}}};
    plan.estimated = trace({{0, 6}, {2, estimated}});
    plan.plan.peak_memory = plan.need.allocated = {Bytes{15}, Bytes{18}};
    plan.need.limit = {Bytes{30}, Bytes{18}};
    return plan;
  }
  EvaluatedCase evaluated(std::vector<Evaluation> planned) const {
    EvaluatedCase all;
    all.config = &config;
    all.planned = std::move(planned);
    return all;
  }

  /// A bound on plans of the first one's schedule.
  static Bound bound_of(const EvaluatedCase& all, int ms) {
    const Evaluation& plan = all.planned.front();
    return {
        .time = milliseconds{ms}, .schedules = {plan.plan.spec}, .memory_limit = plan.need.limit};
  }

  CaseConfig config;
  Layers layers;
  Cluster cluster;
};

// 10 ms for 4 x 3 samples: 1,200 a second; busy 6 and 8 of 10 ms on each of two ranks: 1 - 14 / 20.
TEST_F(Record, FiguresOfAPlanThatWasOnlyEstimated) {
  const ResultRow row = record_of(evaluated({plan("planned", 10)}), config).plans.at(0).row;
  EXPECT_EQ(row.case_name, config.name);
  EXPECT_EQ(row.microbatch_size, 3);
  EXPECT_EQ(row.estimate, milliseconds{10});
  EXPECT_FALSE(row.simulate || row.measure || row.simulate_p95 || row.estimate_p95 || row.gap);
  EXPECT_DOUBLE_EQ(row.samples_per_s.value(), 1200);
  EXPECT_DOUBLE_EQ(row.bubble.value(), 0.3);
  EXPECT_THAT(row.cuts, ElementsAre(1));
  EXPECT_EQ(row.peak_memory, Bytes{18}) << "the largest";
  EXPECT_EQ(row.memory_limit, Bytes{18}) << "the smallest";
  EXPECT_TRUE(row.feasible) << "what just fits does fit";
}

// The bound is of the estimate: 10 ms over 8 is 25 %; the simulation's 12 ms are 50 % over it.
TEST_F(Record, RatesAreOfTheBestEngineAndGapsOfEach) {
  Evaluation both = plan("planned", 10);
  both.simulated = trace({{0, 6}, {2, 12}});
  both.estimated_spread = Spread{milliseconds{9}, milliseconds{10}, milliseconds{14}};
  both.simulated_spread = Spread{milliseconds{11}, milliseconds{13}, milliseconds{15}};
  EvaluatedCase all = evaluated({both});
  Claim claim{.bound = bound_of(all, 8), .covered = {{.layers = 3}}};
  claim.uncertified.device_orders = true;
  all.pool.claim(claim);
  all.pool.count(77);
  all.pool.spend(0.5);
  const CaseRecord record = record_of(all, config);
  const PlanRecord& found = record.plans.at(0);
  EXPECT_EQ(found.row.simulate, milliseconds{12});
  EXPECT_DOUBLE_EQ(found.row.samples_per_s.value(), 1000);
  EXPECT_DOUBLE_EQ(found.row.bubble.value(), 1 - 16. / 24);
  EXPECT_EQ(found.row.lower_bound, milliseconds{8});
  EXPECT_EQ(found.row.bound_class, "zb_h1");
  EXPECT_DOUBLE_EQ(found.row.gap.value(), 0.25);
  EXPECT_DOUBLE_EQ(found.row.simulate_gap.value(), 0.5);
  EXPECT_EQ(record.bound_covers,
            "all cuts of the captured order of 3 layers, within the memory limits whenever "
            "messages are received; besides, without a certificate, every order of the devices");
  EXPECT_EQ(found.row.candidates, 77u);
  EXPECT_EQ(found.row.search_s, 0.5);
  EXPECT_EQ(found.row.estimate_p5, milliseconds{9});
  EXPECT_EQ(found.row.estimate_median, milliseconds{10});
  EXPECT_EQ(found.row.estimate_p95, milliseconds{14});
  EXPECT_EQ(found.simulate_p5, milliseconds{11});
  EXPECT_EQ(found.simulate_median, milliseconds{13});
  EXPECT_EQ(found.row.simulate_p95, milliseconds{15});
  EXPECT_THAT(record.notes, ElementsAre("of the model", "of the cluster"));
}

/// The bound of a case with the claimed bound on its only plan, "" = none.
std::string bound_on(EvaluatedCase all, const Request& config) {
  const ResultRow row = record_of(all, config).plans.at(0).row;
  return row.lower_bound ? stream_all(row.lower_bound->count() / 1'000'000, " of ", row.bound_class)
                         : "";
}

// A bound is shown beside plans of its class alone. Each line leaves the class in one thing.
TEST_F(Record, ABoundIsShownWhereItCoversThePlan) {
  EvaluatedCase all = evaluated({plan("planned", 10)});
  const ScheduleSpec own = all.planned[0].plan.spec;
  Claim claim{.bound = bound_of(all, 8), .covered = {{.layers = 3}}};
  claim.bound->schedules = {{"1f1b", 2, 4, 1, {}, {}}, own};
  all.pool.claim(claim);
  EXPECT_EQ(bound_on(all, config), "8 of 1f1b and zb_h1");
  using Change = std::function<void(EvaluatedCase&, Claim&, Plan&)>;
  const auto after = [&](const Change& change) {
    EvaluatedCase changed = all;
    Claim other = claim;
    change(changed, other, changed.planned[0].plan);
    changed.pool.claim(other);
    return bound_on(changed, config);
  };
  const Change leave[]{
      [](auto&, Claim& claim, Plan&) { claim.bound->schedules.pop_back(); },
      [](auto&, Claim&, Plan& plan) { plan.spec = {"gpipe", 2, 4, 1, {}, {}}; },
      [](auto&, Claim&, Plan& plan) {
        plan.activations.stages = {true, true};
      },
      [](auto&, Claim& claim, Plan&) { claim.bound->recompute = Recompute::Full; },
      [](auto&, Claim& claim, Plan& plan) {
        claim.bound->recompute = Recompute::Choose,
        plan.activations.blocks = {{LayerId{0}, LayerId{0}}};
      },
      [](auto&, Claim& claim, Plan& plan) {
        claim.bound->recompute = Recompute::Choose, plan.activations.stages = {true, false};
        plan.activations.except_last = true;
      },
      [](auto&, Claim&, Plan& plan) {
        plan.activations.offload = {0.5, 0};
      },
      [](auto&, Claim&, Plan& plan) { plan.peak_memory[1] = Bytes{19}; },
      [](auto&, Claim& claim, Plan&) {
        claim.bound->linked = true;
      },  // the stages exchange nothing
      [](auto& of, Claim& claim, Plan&) {
        claim.bound->given_cuts = true, of.planned.push_back(of.planned[0]);
        of.planned[0].plan.partition.cuts = {0}, of.chosen = 1;
      }};
  for (std::size_t i = 0; i < std::size(leave); ++i) EXPECT_EQ(after(leave[i]), "") << i;
  const Change stay[]{
      [](auto&, Claim& claim, Plan& plan) {
        claim.bound->recompute = Recompute::Choose, plan.activations.stages = {true, false};
      },
      [](auto&, Claim& claim, Plan& plan) {
        claim.covered[0].offload = true, plan.activations.offload = {0.5, 0};
      }};
  for (std::size_t i = 0; i < std::size(stay); ++i)
    EXPECT_EQ(after(stay[i]), "8 of 1f1b and zb_h1") << i;
  EXPECT_EQ(after([](auto&, Claim& claim, Plan&) { claim.bound->given_cuts = true; }),
            "8 of 1f1b and zb_h1 with the given cuts");
}

// Where the bound covers every order of the placements of a schedule built for costs, it covers any
// schedule of whole microbatches there; orders that the search's bound leaves out have their own.
TEST_F(Record, OrdersThatTheBoundLeavesOutHaveTheirOwn) {
  EvaluatedCase all = evaluated({plan("planned", 10)});
  const ScheduleSpec listed{"1f1b", 2, 4, 1, {}, {}}, built{"zb_greedy", 2, 4, 1, {}, {}};
  Bound bound = bound_of(all, 8);
  bound.schedules = {listed};
  const auto with = [&](const ScheduleSpec& own, Covered covered) {
    EvaluatedCase changed = all;
    covered.layers = 3, covered.listed = 1, covered.bound = bound;
    changed.planned[0].plan.spec = own;
    changed.pool.claim({.bound = bound, .covered = {covered}});
    return changed;
  };
  const Covered every{.any_order = {built}},
      without{.left_out = {built}, .left_out_bound = milliseconds{5}};
  for (const char* family : {"1f1b", "gpipe", "zb_greedy", "zb_h1"})
    EXPECT_EQ(bound_on(with({family, 2, 4, 1, {}, {}}, every), config),
              "8 of 1f1b and zb_greedy in any order");
  EXPECT_EQ(bound_on(with({"zb_greedy", 2, 4, 1, {}, {}, 2}, every), config), "") << "slices";
  EXPECT_EQ(bound_on(with(listed, without), config), "8 of 1f1b");
  EXPECT_EQ(bound_on(with(built, without), config), "5 of zb_greedy");
  EXPECT_EQ(bound_on(with({"gpipe", 2, 4, 1, {}, {}}, without), config), "");
  // The gap is the plan's own: 10 over 5, and what is covered is said with it.
  const CaseRecord record = record_of(with(built, without), config);
  EXPECT_DOUBLE_EQ(record.plans[0].row.gap.value(), 1);
  EXPECT_EQ(record.bound_covers,
            "every action order of zb_greedy's placements, all cuts of the captured order of 3 "
            "layers; not 1 listed schedule, whose bound is 8 ms");
}

TEST_F(Record, BudgetsThatEndedAreKeptBesideTheNotes) {
  EvaluatedCase all = evaluated({plan("planned", 10)});
  const Unfinished open{Unfinished::What::OpenChoices, 3}, links{Unfinished::What::SharedLinks};
  all.pool.leave_unfinished(open);
  all.pool.leave_unfinished(links);
  const CaseRecord record = record_of(all, config);
  EXPECT_THAT(record.unfinished, ElementsAre(open, links));
  EXPECT_THAT(record.notes, ElementsAre("of the model", "of the cluster"));
}

// No step is simulated below 10 ms: 12 are 20 % over that. The estimate knows nothing of links. A
// bound of links that says less than the other one changes nothing.
TEST_F(Record, TheGapOfTheSimulationIsOverTheBoundThatKnowsOfLinks) {
  Evaluation both = plan("planned", 10);
  both.simulated = trace({{0, 6}, {2, 12}});
  EvaluatedCase all = evaluated({both});
  all.pool.claim({.bound = bound_of(all, 8)});
  all.pool.set_links_bound(milliseconds{10});
  CaseRecord record = record_of(all, config);
  EXPECT_DOUBLE_EQ(record.plans.at(0).row.simulate_gap.value(), 0.2);
  EXPECT_DOUBLE_EQ(record.plans.at(0).row.gap.value(), 0.25);
  EXPECT_EQ(record.links_bound, milliseconds{10});
  all.pool.set_links_bound(milliseconds{6});
  EXPECT_DOUBLE_EQ(record_of(all, config).plans.at(0).row.simulate_gap.value(), 0.5);
}

TEST_F(Record, NothingIsDividedByNothing) {
  EvaluatedCase all = evaluated({plan("planned", 10)});
  all.pool.claim({.bound = bound_of(all, 8)});
  EXPECT_FALSE(record_of(all, config).plans.at(0).row.simulate_gap) << "nothing was simulated";
  all.pool.claim({.bound = bound_of(all, 0)});
  const ResultRow row = record_of(all, config).plans.at(0).row;
  EXPECT_EQ(row.lower_bound, milliseconds{0});
  EXPECT_FALSE(row.gap || row.simulate_gap);
  all.planned[0].estimated = trace({{0, 0}, {0, 0}});
  EXPECT_FALSE(record_of(all, config).plans.at(0).row.samples_per_s);
}

TEST_F(Record, AMeasurementGivesTheRatesAndTheTraceThatIsExplained) {
  Evaluation run = plan("planned", 10);
  run.simulated = trace({{0, 6}, {2, 12}});
  run.measurement = Measurement{.steps = {{false, milliseconds{90}, 0},
                                          {true, milliseconds{20}, 0},
                                          {true, milliseconds{24}, 0},
                                          {true, milliseconds{16}, 0}},
                                .peak_memory = {Bytes{14}, Bytes{17}},
                                .trace = trace({{0, 20}, {2, 12}}),
                                .durations = {milliseconds{20}, milliseconds{10}}};
  const PlanRecord found = record_of(evaluated({run}), config).plans.at(0);
  EXPECT_EQ(found.row.measure, milliseconds{20});
  EXPECT_DOUBLE_EQ(found.row.samples_per_s.value(), 600);
  EXPECT_EQ(found.critical_rank, RankId{0});
  EXPECT_EQ(found.attribution.at(0).compute, milliseconds{20});
  EXPECT_EQ(found.attribution.at(1).compute, milliseconds{10});
  ASSERT_TRUE(found.measured);
  EXPECT_EQ(found.measured->steps, 3u) << "warm-up does not count";
  EXPECT_EQ(found.measured->p5, milliseconds{16});
  EXPECT_EQ(found.measured->p95, milliseconds{24});
  EXPECT_THAT(found.measured->peak_memory, ElementsAre(Bytes{14}, Bytes{17}));
  // The simulation's F took 6 and 10 ms: only the first is off.
  ASSERT_FALSE(found.measured->furthest.empty());
  EXPECT_EQ(found.measured->furthest[0],
            (ActionError{RankId{0}, "0F0", milliseconds{6}, milliseconds{20}}));
}

// One plan of two was measured: rates, figures and what is explained are of the simulation, which
// both have. 12 samples in 12 ms and in 16 ms; the plan's busy 16 of 24, the other's 20 of 32.
TEST_F(Record, FiguresOfPlansThatAreComparedAreOfOneEngine) {
  Evaluation run = plan("planned", 10), other = plan("1f1b", 11);
  run.simulated = trace({{0, 6}, {2, 12}});
  other.simulated = trace({{0, 6}, {2, 16}});
  run.measurement = Measurement{.steps = {{true, milliseconds{90}, 0}},
                                .peak_memory = {Bytes{14}, Bytes{17}},
                                .trace = trace({{0, 90}, {2, 12}}),
                                .durations = {milliseconds{90}, milliseconds{10}}};
  EvaluatedCase all = evaluated({run});
  all.baselines = {other};
  const CaseRecord record = record_of(all, config);
  EXPECT_EQ(record.plans[0].row.measure, milliseconds{90});
  EXPECT_DOUBLE_EQ(record.plans[0].row.samples_per_s.value(), 1000);
  EXPECT_DOUBLE_EQ(record.plans[1].row.samples_per_s.value(), 750);
  EXPECT_DOUBLE_EQ(record.plans[0].row.bubble.value(), 1 - 16. / 24);
  EXPECT_DOUBLE_EQ(record.plans[1].row.bubble.value(), 1 - 20. / 32);
  EXPECT_EQ(record.plans[0].critical_rank, RankId{1});
  EXPECT_EQ(record.plans[0].attribution.at(1).compute, milliseconds{10});
  EXPECT_EQ(record.plans[0].figures.span, milliseconds{10}) << "of rank 1: from 2 to 12 ms";
  EXPECT_EQ(record.plans[1].figures.span, milliseconds{14});
}

TEST_F(Record, AFailedRunLeavesTheReason) {
  Evaluation failed = plan("planned", 10);
  failed.measure_failure = "no room";
  const PlanRecord found = record_of(evaluated({failed}), config).plans.at(0);
  EXPECT_EQ(found.measured, MeasuredRun{.failure = "no room"});
  EXPECT_FALSE(found.row.measure);
}

TEST_F(Record, CutsAndStagesAreNamedAndPlaced) {
  Evaluation named = plan("planned", 10);
  named.plan.partition.cuts = {0, 1};
  named.plan.placement.rank_of_stage = {RankId{1}, RankId{0}};
  const PlanRecord found = record_of(evaluated({named}), config).plans.at(0);
  EXPECT_THAT(found.cut_names, ElementsAre("a", "block.b (b)"));
  EXPECT_THAT(found.stages,
              ElementsAre(StageCompute{RankId{1}, milliseconds{1}, milliseconds{6}},
                          StageCompute{RankId{0}, milliseconds{8}, milliseconds{48}}));
}

TEST_F(Record, APlanThatCannotBeHasAReasonAndNoFigures) {
  Evaluation none = plan("gpipe", 10);
  none.reason = "not possible: too few layers";
  EvaluatedCase all = evaluated({plan("planned", 10)});
  all.baselines = {plan("1f1b", 11), none};
  const CaseRecord record = record_of(all, config);
  ASSERT_EQ(record.plans.size(), 3u);
  EXPECT_EQ(record.plans[1].row.estimate, milliseconds{11});
  EXPECT_FALSE(record.plans[1].row.gap) << "the bound is of the search's plan";
  EXPECT_EQ(record.plans[2].reason, "not possible: too few layers");
  EXPECT_FALSE(record.plans[2].row.estimate || record.plans[2].row.peak_memory);
  EXPECT_EQ(record.plans[2].row.memory_limit, Bytes{18});
  EXPECT_FALSE(record.plans[2].row.feasible);
  std::vector<std::string> kept;
  for (const Evaluation* plan : kept_plans(all)) kept.push_back(plan->name);
  EXPECT_THAT(kept, ElementsAre("planned", "1f1b"));
}

TEST_F(Record, PlansAreWrittenEachInItsFolder) {
  Evaluation searched = plan("planned", 10), given = plan("1f1b", 11);
  for (Evaluation* one : {&searched, &given}) {
    const ScheduleSpec spec{"1f1b", 2, 4, 1, {}, {}};
    one->plan.spec = spec;
    const StageCosts costs =
        uniform_costs(2, milliseconds{1}, milliseconds{1}, milliseconds{1}, milliseconds{1});
    one->plan.schedule = lower(generate(spec), costs, one->plan.placement);
    one->plan.activations.stages = {one == &searched, false};
  }
  EvaluatedCase all = evaluated({searched});
  all.baselines = {given};
  const ScratchFolder scratch;
  const std::filesystem::path& folder = scratch.path();
  write_plans(folder, all, {});
  const Plan one = read_plan(folder / "planned" / "plan.yaml");
  const Plan other = read_plan(folder / "1f1b" / "plan.yaml");
  const bool for_torch = std::filesystem::exists(folder / "planned" / "schedule_torch.csv");
  const bool proof = std::filesystem::exists(folder / "planned" / "certificate.txt");
  EXPECT_TRUE(one.files.has_value());
  EXPECT_EQ(one, all.planned.front().plan);
  EXPECT_EQ(other, all.baselines.front().plan);
  EXPECT_TRUE(for_torch);
  EXPECT_FALSE(proof);
}

TEST_F(Record, OfNothingThatCanBeNoWayChooses) {
  Evaluation none = plan("planned", 10);
  none.reason = "no plan fits";
  none.estimated = {};
  EXPECT_TRUE(record_of(evaluated({none}), config).choices.empty());
}

/// Three plans; estimate, simulation and p95 each have another best one.
TEST_F(Record, EveryWayOfChoosingSaysWhatItPicks) {
  config.select_by = SelectBy::Simulate;
  std::vector<Evaluation> planned{plan("planned", 10), plan("planned", 11), plan("planned", 12)};
  const int simulated[] = {14, 13, 15}, p95[] = {21, 22, 20};
  for (std::size_t i = 0; i < 3; ++i) {
    planned[i].plan.spec.stages_per_rank = i + 1;
    planned[i].simulated = trace({{0, 6}, {2, simulated[i]}});
    planned[i].estimated_spread = Spread{{}, {}, milliseconds{p95[2 - i]}};
    planned[i].simulated_spread = Spread{{}, {}, milliseconds{p95[i]}};
  }
  planned[1].plan.spec.prefetch = {3};
  planned[1].plan.activations.stages = {true, false};
  planned[2].plan.spec.prefetch = {4};
  EvaluatedCase all = evaluated(planned);
  all.chosen = select(planned, *config.select_by, {.as_fast = 0});
  EXPECT_EQ(all.chosen, 1u);
  const CaseRecord record = record_of(all, config);
  const auto choice = [&](SelectBy by, std::size_t number, const char* schedule, int estimate,
                          bool used) {
    return PlanChoice{.by = by,
                      .number = number,
                      .schedule = schedule,
                      .estimate = milliseconds{estimate},
                      .simulate = milliseconds{simulated[number]},
                      .p95 = milliseconds{p95[number]},
                      .used = used};
  };
  EXPECT_THAT(
      record.choices,
      ElementsAre(choice(SelectBy::Estimate, 0, "zb_h1", 10, false),
                  choice(SelectBy::Simulate, 1, "zb_h1, V=2, prefetch=3, recompute=0", 11, true),
                  choice(SelectBy::P95, 2, "zb_h1, V=3, prefetch=4", 12, false)));
  EXPECT_EQ(record.plans[0].row.estimate, milliseconds{11}) << "the chosen one";
  EXPECT_EQ(record.plans[0].row.knobs, "prefetch=3, recompute=0");
  const auto slower = [](int ms) {  // by the simulator, which chose: 14 and 15 ms beside 13
    return Reason{.why = Why::Slower, .slower = milliseconds{ms}, .by = SelectBy::Simulate};
  };
  EXPECT_THAT(record.lost, ElementsAre(LostSchedule{"zb_h1", "zb_h1", slower(1), std::nullopt},
                                       LostSchedule{"zb_h1, V=3, prefetch=4", "zb_h1", slower(2),
                                                    std::nullopt}));
  all.pool.set_alternatives({{.choice = "a", .schedule = "zb_h1", .estimate = milliseconds{10}}});
  all.planned[1].plan.peak_memory = {Bytes{4}, Bytes{7}};
  const std::vector<Alternative> open = record_of(all, config).alternatives;
  EXPECT_EQ(open[0].schedule, "zb_h1, V=2, prefetch=3, recompute=0");
  EXPECT_EQ(open[0].estimate, milliseconds{11}) << "the chosen plan's";
  EXPECT_EQ(open[0].peak_memory, Bytes{7});
}

TEST_F(Record, PlansThatDoNotComeFromTheSearchSaySo) {
  const auto knobs = [&](Origin origin) {
    Evaluation one = plan("planned", 10);
    one.origin = origin;
    return record_of(evaluated({one}), config).plans[0].row.knobs;
  };
  EXPECT_EQ(knobs(Origin::Search), "");
  EXPECT_EQ(knobs(Origin::Baseline), "") << "baselines have names of their own";
  EXPECT_EQ(knobs(Origin::Reference), "search=reference");
  EXPECT_EQ(knobs(Origin::PlanFile), "search=none");
  EXPECT_EQ(knobs(Origin::ScheduleFile), "search=none");
}

TEST_F(Record, WithoutSimulationOrJitterOnlyTheEstimateChooses) {
  const CaseRecord record = record_of(evaluated({plan("planned", 10)}), config);
  ASSERT_EQ(record.choices.size(), 1u);
  EXPECT_EQ(record.choices[0].by, SelectBy::Estimate);
}

TEST_F(Record, WhatFitsIsChosenBeforeWhatIsFasterAndTheFirstOfEquals) {
  std::vector<Evaluation> planned{plan("planned", 9), plan("planned", 12), plan("planned", 11),
                                  plan("planned", 11)};
  planned[0].need.allocated[1] = Bytes{19};
  EXPECT_EQ(select(planned, SelectBy::Estimate, {.as_fast = 0}), 2u);
  EXPECT_EQ(select(planned, SelectBy::P95, {.as_fast = 0}), 2u)
      << "without any, by the time there is";
  for (Evaluation& one : planned) one.need.allocated[1] = Bytes{19};
  EXPECT_EQ(select(planned, SelectBy::Estimate, {.as_fast = 0}), 0u) << "nothing fits: the fastest";
}

}  // namespace
}  // namespace pfeife
