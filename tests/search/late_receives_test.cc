// Messages that are received right before they are read: where only that makes a plan fit, it is
// found, and nothing that a proof says of memory excludes it.
#include <gmock/gmock.h>

#include <random>

#include "planner/cost/estimate/evaluate.h"
#include "planner/ir/judge/validate.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedule_tool/certify.h"
#include "planner/schedules/families.h"
#include "planner/search/search.h"
#include "tests/search/as_told.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

using ms = std::chrono::milliseconds;

/// A layer without parameters, in ms and MB.
struct Row {
  int forward, input, weight, output, saved, weight_saved;
};

Layers table(const std::vector<Row>& rows) {
  Layers layers;
  for (std::size_t l = 0; l < rows.size(); ++l) {
    const Row& row = rows[l];
    Layer layer;
    layer.times = {{ms{row.forward}, ms{row.input}, ms{row.weight}, ms{0}}};
    layer.saved = Bytes{row.saved * 1'000'000},
    layer.weight_saved = Bytes{row.weight_saved * 1'000'000};
    layers.layers.push_back(layer);
    const Bytes output{row.output * 1'000'000};
    if (l + 1 < rows.size())
      layers.values.push_back({"v", LayerId{l}, {LayerId{l + 1}}, output, output, {}});
  }
  return layers;
}

Cluster slow_wire(Nanoseconds latency) {
  return uniform_cluster(2, DeviceKind{}, {100e9}, latency);
}

// GPipe with rank 1 behind a wire of 20 ms: rank 0 runs ahead, and the values that wait for rank 1
// do not fit into 136 MB beside each other. Received one by one they do: worked by hand, the last
// F of rank 1 reads one buffer of 100 MB, with what four microbatches have saved, 4 x 9 MB.
TEST(LateReceives, LetAFasterPlanFitThanAnyThatReceivesAsSoonAsReady) {
  const Layers layers = table({{5, 12, 4, 1, 3, 3}, {7, 9, 14, 100, 5, 3}, {17, 13, 19, 40, 9, 4}});
  const Cluster cluster = slow_wire(ms{20});
  Problem problem{
      layers,
      cluster,
      search_set(2, 4, std::vector<std::size_t>{1}, std::vector<std::string>{"gpipe", "1f1b"}),
      {DeviceId{0}, DeviceId{1}},
      std::vector<Bytes>(2, Bytes{136'000'000})};
  const Answer late = search(problem, {.certificate = true});
  ASSERT_FALSE(late.plans.empty());
  const Priced& plan = late.plans.front();
  EXPECT_EQ(plan.estimate, ms{310});
  EXPECT_EQ(plan.spec.family, "gpipe");
  EXPECT_EQ(plan.receives, Receives::AtNeed);
  EXPECT_THAT(name_of(plan), testing::HasSubstr("receives=at_need"));
  expect_as_told(problem, plan);
  ASSERT_TRUE(late.certificate);
  Certificate certificate = *late.certificate;
  EXPECT_EQ(tool::certify(certificate).refusal, "");
  certificate.bound = plan.estimate.count() + 1;  // as if the plan did not fit
  EXPECT_NE(tool::certify(certificate).refusal, "");
  problem.receives = Receives::AsReady;
  const Answer ready = search(problem, {.certificate = true});
  EXPECT_GT(ready.plans.front().estimate, ms{370});
  EXPECT_EQ(ready.plans.front().receives, Receives::AsReady);
  EXPECT_LE(ready.bound->time, plan.estimate) << "the bound is of every way to receive";
}

/// 50 tables of which a listed schedule fits only if messages are received late.
TEST(LateReceives, AreFoundWhereverNothingElseFits) {
  std::mt19937 random(3);
  const auto any = [&](int from, int to) {
    return std::uniform_int_distribution(from, to)(random);
  };
  int needed = 0, found = 0;
  for (int round = 0; round < 3000 && needed < 50; ++round) {
    std::vector<Row> rows;
    for (int l = any(2, 3); l > 0; --l)
      rows.push_back({any(1, 20), any(1, 20), any(1, 20),
                      std::array{1, 40, 100}[std::size_t(any(0, 2))], any(1, 10), any(0, 4)});
    const Layers layers = table(rows);
    const Cluster cluster = slow_wire(ms{std::array{5, 20, 40}[std::size_t(any(0, 2))]});
    const auto specs =
        search_set(2, 4, std::vector<std::size_t>{1}, std::vector<std::string>{"gpipe", "1f1b"});
    Bytes ready_least = Bytes{std::int64_t{1} << 40}, late_least = ready_least;
    for (const ScheduleSpec& spec : specs)
      for_each_partition(layers, 2, [&](const Partition& cuts) {
        const Placement placement = placement_for(spec);
        const Prices ready = evaluate(layers, cluster, generate(spec), placement, cuts);
        ready_least = std::min(ready_least, std::ranges::max(ready.peak_memory));
        const Prices late = received_late(ready, placement);
        EXPECT_EQ(late.estimate, ready.estimate);
        late_least = std::min(late_least, std::ranges::max(late.peak_memory));
      });
    if (late_least >= ready_least) continue;
    ++needed;
    const Problem problem{
        layers, cluster, specs, {DeviceId{0}, DeviceId{1}}, std::vector<Bytes>(2, late_least)};
    const Answer outcome = search(problem, {.certificate = true});
    found += !outcome.plans.empty();
    if (outcome.plans.empty()) {
      EXPECT_FALSE(outcome.infeasible->proven) << round;
      continue;
    }
    expect_as_told(problem, outcome.plans.front());
    EXPECT_LE(outcome.bound->time, outcome.plans.front().estimate);
  }
  EXPECT_EQ(needed, 50);
  EXPECT_EQ(found, 50);
}

// A row of 1F1B: rank 0 sends F1 before it takes B0. Where SEND waits for its RECV, rank 1 must not
// take F1 behind its SEND of B0.
TEST(LateReceives, NeverMakeRowsThatHang) {
  std::mt19937 random(5);
  int passed = 0, all = 0;
  for (const Family& known : families()) {
    for (const std::size_t ranks : {2u, 3u, 4u})
      for (const std::size_t stages_per_rank : {1u, 2u, 3u}) {
        const ScheduleSpec spec{known.name, ranks, 2 * ranks, stages_per_rank, {}, {}};
        if (refusal(spec)) continue;
        const StageCosts costs = uniform_costs(spec.stages(), ms{1 + random() % 3},
                                               ms{1 + random() % 3}, ms{1}, ms{random() % 4});
        const Placement placement = placement_for(spec);
        const Schedule lowered = lower(generate(spec), costs, placement);
        const StageGraph stages = stage_graph(costs);
        const Schedule late = with_late_receives(lowered, stages, placement);
        EXPECT_TRUE(validate(late, {stages, spec.microbatches, true}).empty())
            << spec.family << " " << ranks << " " << stages_per_rank;
        ++all, passed += late == with_receives_at_need(lowered);
        for (std::size_t r = 0; r < ranks; ++r)
          EXPECT_EQ(late.rows[r].size(), lowered.rows[r].size());
      }
  }
  EXPECT_GT(all, 40);
  EXPECT_GT(passed, 0) << "some rows can take every message right before it is read";
  EXPECT_LT(passed, all) << "and some would hang";
}

}  // namespace
}  // namespace pfeife
