// Bytes price a message and do not decide whether there is one: with values of no bytes, all
// schedules, times and bounds are those of values of a byte that links carry in no time.
#include <gmock/gmock.h>

#include <numeric>
#include <random>
#include <set>

#include "experiments/pfeife.h"
#include "planner/cost/estimate/evaluate.h"
#include "planner/io/model/imported_layers.h"
#include "planner/schedule_tool/verbs.h"
#include "planner/schedules/families.h"
#include "sim/simulator.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHead =
    "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_bytes,"
    "weight_saved_bytes,temporary_bytes";

class EmptyGradients : public ProgramTest {
 protected:
  /// Four layers of F = I = W = 1 ms on 2 devices, 4 microbatches, and `skips` among the layers.
  void write_equal_layers(const std::string& head, const std::string& row_end,
                          const std::string& skips) const {
    std::string table = head + "\n";
    for (const char* name : {"a", "b", "c", "d"})
      table += std::string(name) + ",1,1,1,0,1000,1000,0,0" + row_end + "\n";
    write("layers.csv", table);
    write("skips.csv", "value,from,to,bytes\n" + skips);
    write("cluster.yaml",
          "version: 1\nname: four\ndevice_kinds: {a: {type: gpu, memory: 100 GiB, "
          "memory_bandwidth: 1000 GB/s, peak: {fp32: 20 TFLOP/s}}}\n"
          "devices: [{kind: a, count: 4}]\n"
          "links: [{name: port, per: device, bandwidth: 1 GB/s, latency: 0 us}]\n"
          "routes: [{over: port}]\n");
    write("c.yaml",
          "version: 1\nmodel: layers.csv\ncluster: cluster.yaml\n" +
              std::string(skips.empty() ? "" : "skips: skips.csv\n") +
              "cases: {devices: 2, microbatches: 4}\n"
              "plan: {families: [1f1b], stages_per_rank: [1]}\n"
              "simulation: {launch_overhead: 0 us}\n"
              "baselines: [gpipe, zb_h1, {name: loops, family: interleaved_1f1b, cuts: [0, 1, 2], "
              "stages_per_rank: 2}]\n");
  }
  /// Microbatches fill the pipeline in D - 1 stages' times: stages of F + B = 6 ms, or of 3 ms if
  /// each rank has two. ZB-H1 fills F + I - W = 2 ms of that (Qi et al. 2024, table 1).
  void expect_the_textbooks_steps() const {
    const Outcome outcome = run({"c.yaml", "--out", "out", "--force"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const auto& [plan, step] : {std::pair{"planned", (4 + 1) * 6},
                                     {"gpipe", (4 + 1) * 6},
                                     {"loops", 4 * 6 + 3},
                                     {"zb_h1", 4 * 6 + 2}})
      for (const char* engine : {"estimate_ms", "simulate_ms"})
        EXPECT_EQ(std::stod(result("out", plan, engine)), step) << plan << " " << engine;
    const std::filesystem::path planned = folder_ / "out/devices=2,microbatches=4/planned";
    EXPECT_THAT(read(planned / "schedule.csv"), HasSubstr("SEND_B"));
    const Judgement judgement = certify(planned);
    EXPECT_TRUE(judgement.proven) << judgement.text;
    EXPECT_THAT(judgement.text, HasSubstr("30 ms"));
  }
};

TEST_F(EmptyGradients, OutputsOfNoBytesAreWaitedForBothWays) {
  if (!simulator_available()) GTEST_SKIP() << "built without SimGrid";
  write_equal_layers(kHead, "", "");
  expect_the_textbooks_steps();
}

TEST_F(EmptyGradients, AlsoWithPublishedTimesAndSkips) {
  if (!simulator_available()) GTEST_SKIP() << "built without SimGrid";
  write_equal_layers(std::string(kHead) + ",output_ms", ",0", "");
  expect_the_textbooks_steps();
  write_equal_layers(kHead, "", "s,a,c,0\ns,a,d,0\nt,b,d,0\n");
  expect_the_textbooks_steps();
}

/// A random table whose outputs and skips all have so many bytes; whole ms.
Layers random_table(unsigned seed, bool skips, int bytes) {
  std::mt19937 random(seed);
  const int count = 9;
  std::string table = std::string(kHead) + "\n", skipped = "value,from,to,bytes\n";
  const auto number = [&](unsigned most) { return std::to_string(1 + random() % most); };
  for (int l = 0; l < count; ++l) {
    table += "l" + std::to_string(l) + "," + number(9) + "," + number(9) + "," + number(9) + "," +
             std::to_string(bytes) + "," + number(100) + ",8,8,0\n";
    if (skips && l + 2 < count && random() % 2 == 0)
      skipped += "s" + std::to_string(l) + ",l" + std::to_string(l) + ",l" +
                 std::to_string(l + 2 + static_cast<int>(random() % unsigned(count - l - 2))) +
                 "," + std::to_string(bytes) + "\n";
  }
  return layers_of_table({"t.csv", table}, TextFile{"s.csv", skipped});
}

Partition random_cuts(std::mt19937& random, std::size_t layers, std::size_t stages) {
  std::vector<std::int32_t> cuts(layers - 1);
  std::iota(cuts.begin(), cuts.end(), 0);
  std::ranges::shuffle(cuts, random);
  cuts.resize(stages - 1);
  std::ranges::sort(cuts);
  return {cuts};
}

Cluster prompt_cluster(std::size_t devices) {
  return uniform_cluster(devices, {.memory = Bytes{1 << 30}}, {1e18}, Nanoseconds{0});
}

/// pfeife-schedule time --costs f=...,transfer=0
Nanoseconds timed_by_the_tool(const Schedule& compute_only, const StageCosts& costs) {
  tool::UnitCosts units{.forward = {}, .backward_input = {}, .backward_weight = {}};
  for (const StageCost& stage : costs.stages) {
    units.forward.push_back(milliseconds(stage.forward));
    units.backward_input.push_back(milliseconds(stage.backward_input));
    units.backward_weight.push_back(milliseconds(stage.backward_weight));
  }
  return step_time(tool::time_schedule(compute_only, units, {}, {}).trace);
}

TEST(EmptyMessages, LeaveEveryFamilysScheduleAndStepAsTheyAre) {
  std::set<std::string> seen;
  std::size_t points = 0;
  std::mt19937 random(1);
  for (const Family& known : families())
    for (const std::size_t ranks : {2, 3})
      for (const std::size_t microbatches : {1, 3, 6})
        for (const std::size_t stages : {1, 2, 3}) {
          const ScheduleSpec spec{.family = known.name,
                                  .ranks = ranks,
                                  .microbatches = microbatches,
                                  .stages_per_rank = stages};
          if (refusal(spec)) continue;
          ++points, seen.insert(known.name);
          const unsigned seed = static_cast<unsigned>(random());
          const bool skips = random() % 2 == 0;
          const Layers empty = random_table(seed, skips, 0), prompt = random_table(seed, skips, 1);
          const Cluster cluster = prompt_cluster(ranks);
          const Placement placement = placement_for(spec);
          const Schedule compute_only = generate(spec);
          const Partition cuts = random_cuts(random, empty.size(), spec.stages());
          const Prices none = evaluate(empty, cluster, compute_only, placement, cuts),
                       one = evaluate(prompt, cluster, compute_only, placement, cuts);
          const std::string name = known.name + " D " + std::to_string(ranks) + " N " +
                                   std::to_string(microbatches) + " V " + std::to_string(stages) +
                                   (skips ? " skips" : "");
          EXPECT_EQ(none.lowered, one.lowered) << name;
          EXPECT_EQ(none.estimate, one.estimate) << name;
          EXPECT_EQ(none.estimate, timed_by_the_tool(compute_only, none.costs)) << name;
          if (!simulator_available()) continue;
          const auto simulated = [&](const Prices& plan) {
            const auto graph = dependencies(plan.lowered, stage_graph(plan.costs), placement,
                                            {.queues = Queues::None, .links = Links::Shared});
            return step_time(std::get<Trace>(simulate(graph, plan.costs, placement, cluster)));
          };
          EXPECT_EQ(simulated(none), simulated(one)) << name;
          EXPECT_EQ(simulated(none), none.estimate) << name;
        }
  EXPECT_EQ(seen.size(), families().size());
  EXPECT_GT(points, 100u);
}

TEST(EmptyMessages, LeaveTheBestPlanAndItsBoundAsTheyAre) {
  std::size_t bounds = 0;
  for (const char* const families : {"1f1b", "all", "zb_greedy"})
    for (const unsigned seed : {1, 2}) {
      const Request options{
          .microbatches = 4,
          .plan = {.families = {families}, .stages_per_rank = {1, 2}, .iterations = 10},
          .baselines = {},
          .simulate = false};
      const auto planned = [&](int bytes) {
        return plan(model_of(random_table(seed, seed % 2 == 0, bytes)), prompt_cluster(2), options);
      };
      const Planned empty = planned(0), prompt = planned(1);
      const std::string name = std::string(families) + " " + std::to_string(seed);
      EXPECT_EQ(step_time(empty.best().estimated), step_time(prompt.best().estimated)) << name;
      EXPECT_EQ(empty.best().plan.partition, prompt.best().plan.partition) << name;
      EXPECT_EQ(empty.best().plan.schedule, prompt.best().plan.schedule) << name;
      ASSERT_EQ(empty.bound.has_value(), prompt.bound.has_value()) << name;
      if (!empty.bound) continue;
      EXPECT_EQ(empty.bound->time, prompt.bound->time) << name;
      ++bounds;
    }
  EXPECT_GT(bounds, 2u);
}

}  // namespace
}  // namespace pfeife
