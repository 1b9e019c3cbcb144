#include "experiments/pfeife.h"

#include <gmock/gmock.h>

#include "planner/io/plan/plan_file.h"
#include "tests/experiments/program.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

using testing::HasSubstr;

class Pfeife : public ProgramTest {};

Model two_layers(Nanoseconds first, Nanoseconds second) {
  Layers layers{.name = "two", .digest = std::string(64, '0')};
  for (const Nanoseconds time : {first, second})
    layers.layers.push_back({.name = "layer", .times = {{time, time, time}}});
  layers.values.push_back({.name = "x",
                           .producer = LayerId{0},
                           .consumers = {LayerId{1}},
                           .bytes = Bytes{1000},
                           .gradient_bytes = Bytes{1000}});
  return model_of(std::move(layers));
}

Cluster two_devices() {
  return uniform_cluster(2, {.memory = Bytes{std::int64_t{1} << 30}}, {1e9}, Nanoseconds{0});
}

TEST_F(Pfeife, PlansWhatPfeifeExpPlans) {
  const Planned planned =
      plan(load_model(configs() / "models/tiny_gpt.pt2"),
           load_cluster(configs() / "clusters/a100_sxm4_40gb_x8.yaml"),
           {.devices = 2, .microbatches = 4, .precision = Precision::Tf32, .iterations = 20});
  write("same.yaml", "version: 1\nmodel: " + (configs() / "models/tiny_gpt.pt2").string() +
                         "\ncluster: " + (configs() / "clusters/a100_sxm4_40gb_x8.yaml").string() +
                         "\ntraining: {precision: tf32}\ncases: {devices: 2, microbatches: 4}\n"
                         "plan: {iterations: 20}\n");
  ASSERT_EQ(run({"same.yaml", "--out", "out"}).code, 0);
  save(planned, folder_ / "saved");
  const Plan ours = read_plan(folder_ / "saved/plan.yaml");
  const Plan theirs = read_plan(folder_ / "out/devices=2,microbatches=4/planned/plan.yaml");
  EXPECT_EQ(ours.schedule, theirs.schedule);
  EXPECT_EQ(ours.partition, theirs.partition);
  EXPECT_EQ(ours.estimate, theirs.estimate);
  EXPECT_EQ(ours.peak_memory, theirs.peak_memory);
  EXPECT_EQ(ours.bound, theirs.bound);
  EXPECT_TRUE(certify(folder_ / "saved").proven);
}

/// One microbatch on two devices: nothing can overlap but the last weight gradient. Forward 1 + 2,
/// input gradient of the second 2, transfers 1 us each, input and weight gradient of the first 2.
TEST_F(Pfeife, LayersAndClustersMadeInCode) {
  const auto us = [](std::int64_t count) { return Nanoseconds{1000 * count}; };
  const Planned planned = plan(two_layers(us(1), us(2)), two_devices(),
                               {.microbatches = 1, .stages_per_rank = {1}, .simulate = false});
  ASSERT_TRUE(planned.found());
  save(planned, folder_ / "saved");
  write("saved/run_in_torch.py", "of another plan");
  Planned unproven = planned;
  unproven.certificate.reset();
  save(unproven, folder_ / "saved");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "saved/certificate.txt"));
  EXPECT_THAT(read("saved/run_in_torch.py"), Not(HasSubstr("of another plan")));
  EXPECT_EQ(step_time(planned.best().estimated), us(1 + 1 + 2 + 2 + 1 + 2));
  EXPECT_EQ(planned.bound->time, us(9));
  EXPECT_FALSE(planned.files);
}

TEST_F(Pfeife, SimulatesWhatItChose) {
  const Cluster cluster = two_devices();
  const Planned planned = plan(two_layers(Nanoseconds{10'000}, Nanoseconds{10'000}), cluster,
                               {.microbatches = 2, .baselines = {"gpipe"}});
  ASSERT_TRUE(planned.contestants.front().simulated);
  EXPECT_EQ(simulate(planned.best(), cluster), *planned.contestants.front().simulated);
  ASSERT_EQ(planned.contestants.size(), 2u);
  EXPECT_EQ(planned.contestants[1].name, "gpipe");
  save(planned, folder_ / "baseline", 1);
  EXPECT_EQ(read_plan(folder_ / "baseline/plan.yaml").schedule,
            planned.contestants[1].plan().plan.schedule);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "baseline/certificate.txt"));
  const std::filesystem::path file = folder_ / "step.svg";
  write_timeline(planned.best().estimated, file);
  EXPECT_GT(std::filesystem::file_size(file), 1000u);
}

TEST_F(Pfeife, SaysWhyNothingFits) {
  Cluster cluster = two_devices();
  for (DeviceKind& kind : cluster.kinds) kind.memory = Bytes{10};
  const Planned planned = plan(two_layers(Nanoseconds{1}, Nanoseconds{1}), cluster);
  EXPECT_FALSE(planned.found());
  try {
    planned.best();
    FAIL();
  } catch (const RuntimeFault& error) {
    EXPECT_MESSAGE(error.what());
  }
}

TEST_F(Pfeife, ReportsItsProgressAndStops) {
  const Model model = load_model(configs() / "models/vit_g14.pt2");
  const Cluster cluster = load_cluster(configs() / "clusters/a100_sxm4_40gb_x8.yaml");
  std::stop_source stop;
  std::vector<double> shares;
  const PlanOptions options{.devices = 8,
                            .progress =
                                [&](double share) {
                                  shares.push_back(share);
                                  if (shares.size() == 2) stop.request_stop();
                                },
                            .stop = stop.get_token()};
  EXPECT_THROW(plan(model, cluster, options), Stopped);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_LE(shares[0], shares[1]);
  EXPECT_LT(shares[1], 1);
}

TEST_F(Pfeife, RefusesWhatCannotBe) {
  EXPECT_THROW(load_model("/no/such/model.pt2"), ConfigError);
  EXPECT_THROW(load_model(configs() / "vit_g14.yaml"), ConfigError);
  const Model model = two_layers(Nanoseconds{1}, Nanoseconds{1});
  EXPECT_THROW(plan(model, two_devices(), {.devices = 3}), ConfigError);
  EXPECT_THROW(plan(model, two_devices(), {.families = {"gpip"}}), ConfigError);
  EXPECT_THROW(plan(model, two_devices(), {.families = {}}), ConfigError);
  EXPECT_THROW(plan(model, two_devices(), {.baselines = {"gpip"}}), ConfigError);
  EXPECT_THROW(plan(model, two_devices(), {.microbatches = 0}), ConfigError);
}

}  // namespace
}  // namespace pfeife
