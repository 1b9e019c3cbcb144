// Speed first, then memory: from a config and from a program to the plan, its row and the report.
#include <gmock/gmock.h>

#include "experiments/pfeife.h"
#include "experiments/plans/plan_case.h"
#include "experiments/plans/simulated_choice.h"
#include "planner/ir/result/result_engine.h"
#include "sim/simulator.h"
#include "tests/experiments/program.h"
#include "tests/experiments/random_hosts.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

/// Eight equal layers on two devices, cut in the middle: 1F1B holds two microbatches on the first
/// rank, and waits for messages. With a third one in flight (prefetch=1) it does not.
class AsFast : public ProgramTest {
 protected:
  AsFast() {
    std::string layers =
        "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_"
        "bytes,weight_saved_bytes,temporary_bytes\n";
    for (int l = 0; l < 8; ++l)
      layers += std::string(1, static_cast<char>('a' + l)) + ",1,1,1,9,9,900000,0,0\n";
    write("layers.csv", layers);
    write("config.yaml", "version: 1\nmodel: layers.csv\ncluster: " +
                             (configs() / "clusters" / "laptop.yaml").string() +
                             "\ncases: {devices: 2, microbatches: 8}\nbaselines: []\n"
                             "engines: [estimate]\n"
                             "plan: {families: [gpipe, 1f1b], stages_per_rank: [1]}\n");
  }
  std::string knobs(const std::string& out, const std::string& plan) const {
    return result(out, plan, "knobs");
  }
};

TEST_F(AsFast, ThePlanWithMoreRoomIsTakenOfThoseThatCountAsFast) {
  ASSERT_EQ(run({"config.yaml", "--out", "fastest", "--set", "plan.as_fast=0"}).code, 0);
  ASSERT_EQ(run({"config.yaml", "--out", "room", "--set", "plan.as_fast=0.01"}).code, 0);
  EXPECT_EQ(knobs("fastest", "planned"), "prefetch=1");
  EXPECT_EQ(knobs("room", "planned"), "prefetch=0");
  const double fastest = std::stod(result("fastest", "planned", "estimate_ms"));
  const auto peak = [&](const std::string& out) {
    return std::stod(result(out, "planned", "peak_memory_bytes"));
  };
  const double taken = std::stod(result("room", "planned", "estimate_ms"));
  EXPECT_GT(taken, fastest) << "else this shows nothing";
  EXPECT_LE(taken, 1.01 * fastest);
  EXPECT_NEAR(peak("fastest") / peak("room"), 1.5, 0.01) << "three held instead of two";
  EXPECT_EQ(result("fastest", "planned", "lower_bound_ms"),
            result("room", "planned", "lower_bound_ms"));
  EXPECT_GE(std::stod(result("room", "planned", "gap_fraction")),
            std::stod(result("fastest", "planned", "gap_fraction")));
  EXPECT_THAT(read("room/report.html"), HasSubstr("as_fast: 0.01"));
  EXPECT_THAT(run({"config.yaml", "--out", "room", "--set", "plan.as_fast=0.01", "--verbose"}).out,
              HasSubstr(", with "))
      << "why the other is not the plan";
}

TEST_F(AsFast, APlanThatIsNearlyAsFastWithMuchLessMemoryIsARow) {
  const Outcome outcome = run({"config.yaml", "--out", "row", "--set", "plan.as_fast=0"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(knobs("row", "less_memory"), "prefetch=0");
  EXPECT_THAT(outcome.out, HasSubstr("1f1b prefetch=0 -"));
  EXPECT_THAT(outcome.out, HasSubstr("- nearly as fast with less memory"));
  EXPECT_THAT(read("row/devices=2,microbatches=8/less_memory/plan.yaml"), HasSubstr("1f1b"));
  ASSERT_EQ(run({"config.yaml", "--out", "row", "--set", "plan.as_fast=0.01"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "row/devices=2,microbatches=8/less_memory"));
}

TEST_F(AsFast, AProgramAsksForTheSame) {
  const Model model = load_model(folder_ / "layers.csv");
  const Cluster cluster = load_cluster(configs() / "clusters" / "laptop.yaml");
  Request request{.devices = 2,
                  .microbatches = 8,
                  .plan = {.families = {"gpipe", "1f1b"}, .stages_per_rank = {1}, .as_fast = 0},
                  .baselines = {},
                  .simulate = false};
  const Planned fastest = plan(model, cluster, request);
  EXPECT_EQ(pfeife::knobs(fastest.best().plan), "prefetch=1");
  ASSERT_EQ(fastest.contestants.size(), 2u);
  EXPECT_EQ(fastest.contestants[1].name, "less_memory");
  EXPECT_EQ(pfeife::knobs(fastest.contestants[1].plan), "prefetch=0");
  request.plan.as_fast = 0.01;
  EXPECT_EQ(pfeife::knobs(plan(model, cluster, request).best().plan), "prefetch=0");
  request.plan.as_fast = 2;
  EXPECT_THROW(plan(model, cluster, request), RefusedWish);
}

/// Everything that planning a small case looked at and that fits.
TEST(AsFastPlans, NoneThatCountsAsFastNeedsLessThanTheChosen) {
  std::size_t slower = 0;
  for (unsigned seed = 0; seed < 6; ++seed) {
    std::mt19937 random(seed);
    RandomShape shape;
    shape.layers = 8 + random() % 4;
    const Layers layers = random_layers(random, shape);
    Request config;
    config.name = "seed " + std::to_string(seed);
    config.devices = 2;
    config.microbatches = 3 + random() % 5;
    Cluster cluster = random_hosts(random, config.devices);
    cluster.kinds[0].memory = Bytes{1 << 30};
    config.plan.iterations = 1;
    config.plan.as_fast = 0.1;
    config.plan.allocator.reset();  // of some bytes, in segments of 2 MiB, all reserve the same
    config.plan.families = {"gpipe", "1f1b", "zb_greedy"};
    config.baselines = {};
    config.simulate = seed % 2 == 0 && simulator_available();
    EvaluatedCase found = plan_case({&config, &layers, &cluster}, {}, 5, 1);
    const std::vector<Priced> all = found.answer().all, front = found.answer().front;
    simulate_cases(std::span(&found, 1), 1);
    const Evaluation& chosen = found.planned[found.chosen];
    ASSERT_TRUE(chosen.fits()) << chosen.reason;
    const SelectBy by = compared_by(found.planned, chosen_by(config));
    const auto full = [&](const std::vector<Bytes>& peaks) {
      return fullness(peaks, chosen.need.limit);
    };
    Nanoseconds least = Nanoseconds::max();
    for (const Evaluation& plan : found.planned)
      if (plan.fits()) least = std::min(least, time_by(plan, by));
    const auto counts = [&](Nanoseconds time) {
      return static_cast<double>(time.count()) <= 1.1 * static_cast<double>(least.count());
    };
    EXPECT_TRUE(counts(time_by(chosen, by))) << config.name;
    for (const Evaluation& plan : found.planned)
      if (plan.fits() && counts(time_by(plan, by))) {
        EXPECT_LE(full(chosen.plan.peak_memory), full(plan.plan.peak_memory)) << config.name;
      }
    for (const std::vector<Priced>& examined : {all, front})
      for (const Priced& plan : examined)
        if (by == SelectBy::Estimate && counts(plan.estimate)) {
          EXPECT_LE(full(chosen.plan.peak_memory), full(plan.peak_memory))
              << config.name << ", " << name_of(plan);
        }
    if (found.answer().bound) {
      EXPECT_LE(found.answer().bound->time, chosen.plan.estimate);
    }
    slower += time_by(chosen, by) > least;
  }
  EXPECT_GT(slower, 0u) << "where the fastest is the least full this shows nothing";
}

}  // namespace
}  // namespace pfeife
