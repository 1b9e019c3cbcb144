#include "experiments/pfeife.h"

#include <gmock/gmock.h>

#include <random>
#include <set>

#include "planner/io/plan/plan_file.h"
#include "planner/ir/basics/decimals.h"
#include "tests/experiments/program.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

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
  const Planned planned = plan(load_model(configs() / "models/tiny_gpt.pt2"),
                               load_cluster(configs() / "clusters/a100_sxm4_40gb_x8.yaml"),
                               {.devices = 2,
                                .microbatches = 4,
                                .training = {.precision = Precision::Tf32},
                                .plan = {.iterations = 20}});
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
  const Planned planned =
      plan(two_layers(us(1), us(2)), two_devices(),
           {.microbatches = 1, .plan = {.stages_per_rank = {1}}, .simulate = false});
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
                               {.microbatches = 2, .baselines = {{"gpipe"}}});
  ASSERT_TRUE(planned.contestants.front().simulated);
  EXPECT_EQ(simulate(planned.best(), cluster), *planned.contestants.front().simulated);
  ASSERT_EQ(planned.contestants.size(), 2u);
  EXPECT_EQ(planned.contestants[1].name, "gpipe");
  save(planned, folder_ / "baseline", 1);
  EXPECT_EQ(read_plan(folder_ / "baseline/plan.yaml").schedule,
            planned.contestants[1].priced().plan.schedule);
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
  const RunOptions options{.progress =
                               [&](double share) {
                                 shares.push_back(share);
                                 if (shares.size() == 2) stop.request_stop();
                               },
                           .stop = stop.get_token()};
  EXPECT_THROW(plan(model, cluster, {.devices = 8}, options), Stopped);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_LE(shares[0], shares[1]);
  EXPECT_LT(shares[1], 1);
}

TEST_F(Pfeife, RefusesWhatCannotBe) {
  EXPECT_THROW(load_model("/no/such/model.pt2"), ConfigError);
  EXPECT_THROW(load_model(configs() / "vit_g14.yaml"), ConfigError);
  const Model model = two_layers(Nanoseconds{1}, Nanoseconds{1});
  EXPECT_THROW(plan(model, two_devices(), {.devices = 3}), ConfigError);
  EXPECT_THROW(plan(model, two_devices(), {.plan = {.families = {"gpip"}}}), ConfigError);
  EXPECT_THROW(plan(model, two_devices(), {.plan = {.families = {}}}), ConfigError);
  EXPECT_THROW(plan(model, two_devices(), {.baselines = {{"gpip"}}}), ConfigError);
}

// What a program needs for wishes of every kind: nothing recomputed, given cuts, a global batch
// whose microbatches are to be found, and a mesh.
TEST_F(Pfeife, AProgramAsksForWhatAConfigCan) {
  const Model model = load_model(configs() / "models/tiny_gpt.pt2");
  const Cluster cluster = load_cluster(configs() / "clusters/3090_x8.yaml");

  Request request{.devices = 2, .plan = {.families = {"1f1b"}, .iterations = 1}, .baselines = {}};
  request.plan.recompute = Recompute::None;
  request.plan.cuts = PlanSettings::Cuts::Given;
  request.plan.given_cuts = {12};
  request.training.global_batch = 8;
  const Plan chosen = plan(model, cluster, request).best().plan;
  EXPECT_EQ(chosen.partition.cuts, request.plan.given_cuts);
  EXPECT_FALSE(chosen.activations.recomputes());
  EXPECT_EQ(static_cast<std::int64_t>(chosen.spec.microbatches) * chosen.training.microbatch_size,
            8);

  Request of_mesh{.plan = {.iterations = 1}};
  MeshSettings& mesh = of_mesh.mesh.emplace();
  mesh.network = load_hosts(configs() / "clusters/3090_hosts.yaml");
  mesh.question.devices = 8;
  mesh.question.tp = {2};
  mesh.question.run.global_batch = 32;
  mesh.question.run.architecture = load_architecture(configs() / "architectures/gpt2_large.yaml");
  const Planned planned = plan(of_mesh);
  ASSERT_TRUE(planned.found());
  EXPECT_EQ(planned.mesh->mesh.devices(), 8);
  EXPECT_EQ(planned.mesh->mesh.size(Axis::Tensor), 2);
}

/// What is planned with `asked` and by a config with these keys: the same plan.
struct SameAsAConfig : Pfeife {
  void is_planned(const Request& asked, const std::string& keys, const std::string& folder) {
    const Planned planned =
        plan(load_model(configs() / "models/tiny_gpt.pt2"),
             load_cluster(configs() / "clusters/a100_sxm4_40gb_x8.yaml"), asked);
    write("same.yaml", "version: 1\nmodel: " + (configs() / "models/tiny_gpt.pt2").string() +
                           "\ncluster: " +
                           (configs() / "clusters/a100_sxm4_40gb_x8.yaml").string() + "\n" + keys);
    const Outcome outcome = run({"same.yaml", "--out", "out", "--force"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    save(planned, folder_ / "saved");
    const Plan ours = read_plan(folder_ / "saved/plan.yaml");
    const Plan theirs = read_plan(folder_ / "out" / folder / "planned/plan.yaml");
    EXPECT_EQ(ours.schedule, theirs.schedule) << keys;
    EXPECT_EQ(ours.partition, theirs.partition) << keys;
    EXPECT_EQ(ours.placement, theirs.placement) << keys;
    EXPECT_EQ(ours.activations, theirs.activations) << keys;
    EXPECT_EQ(ours.linear_order, theirs.linear_order) << keys;
    EXPECT_EQ(ours.training, theirs.training) << keys;
    EXPECT_EQ(ours.estimate, theirs.estimate) << keys;
    EXPECT_EQ(ours.peak_memory, theirs.peak_memory) << keys;
    EXPECT_EQ(ours.bound, theirs.bound) << keys;
    ASSERT_EQ(planned.contestants.size(), 2u);
    EXPECT_EQ(result("out", "1f1b", "estimate_ms"),
              fixed(milliseconds(step_time(planned.contestants[1].priced().estimated)), 6));
  }
};

TEST_F(SameAsAConfig, WhateverAConfigCanAskFor) {
  const std::vector<BaselineSettings> only{{"1f1b"}};
  is_planned({.devices = 2,
              .training = {.global_batch = 8},
              .plan = {.families = {"1f1b", "zb1p"}, .iterations = 1, .recompute = Recompute::None},
              .baselines = only},
             "cases: {devices: 2}\ntraining: {global_batch: 8}\nbaselines: [1f1b]\n"
             "plan: {families: [1f1b, zb1p], iterations: 1, recompute: none}\n",
             "devices=2,global_batch=8");
  is_planned({.devices = 2,
              .microbatches = 4,
              .replicas = {.count = 2, .zero = 1},
              .plan = {.cuts = PlanSettings::Cuts::Given,
                       .given_cuts = {12},
                       .recompute = Recompute::Full,
                       .recompute_except_last = true,
                       .devices = {DeviceId{1}, DeviceId{0}}},
              .baselines = only},
             "cases: {devices: 2, microbatches: 4}\nparallel: {dp: 2, zero: 1}\n"
             "baselines: [1f1b]\nplan: {cuts: [12], recompute: full, recompute_except_last: true, "
             "devices: [1, 0]}\n",
             "devices=2,microbatches=4");
  is_planned(
      {.devices = 2,
       .microbatches = 4,
       .plan = {.families = {"gpipe"}, .iterations = 1, .cuts_at = PlanSettings::CutsAt::Blocks},
       .baselines = only,
       .calibration = {{.compute = 1.25, .stage_overhead = Nanoseconds{200'000}}},
       .simulation = {.jitter = JitterSettings{.cv = 0.02, .repetitions = 10}},
       .select_by = SelectBy::P95},
      "cases: {devices: 2, microbatches: 4}\nbaselines: [1f1b]\n"
      "plan: {families: gpipe, iterations: 1, cuts_at: blocks}\n"
      "calibration: {compute: 1.25, stage_overhead: 200 us}\n"
      "simulation: {jitter: {cv: 0.02, repetitions: 10}}\nselect_by: p95\n",
      "devices=2,microbatches=4");
}

// A given plan is taken as it is, and a given schedule on given cuts.
TEST_F(Pfeife, TakesAGivenPlan) {
  const Model model = load_model(configs() / "models/tiny_gpt.pt2");
  const Cluster cluster = load_cluster(configs() / "clusters/3090_x8.yaml");
  const Planned first =
      plan(model, cluster, {.devices = 2, .microbatches = 4, .plan = {.iterations = 1}});
  save(first, folder_ / "first");
  const Planned again =
      plan(model, cluster, {.plan = {.file = folder_ / "first/plan.yaml"}, .baselines = {}});
  EXPECT_EQ(again.best().plan.schedule, first.best().plan.schedule);
  EXPECT_EQ(again.best().plan.estimate, first.best().plan.estimate);
  const Planned rows = plan(model, cluster,
                            {.plan = {.schedule = folder_ / "first/schedule.csv",
                                      .cuts = PlanSettings::Cuts::Given,
                                      .given_cuts = first.best().plan.partition.cuts},
                             .baselines = {}});
  EXPECT_EQ(rows.best().plan.schedule, first.best().plan.schedule);
}

TEST_F(Pfeife, ChoosesAMeshAndPlansItsPipeline) {
  Request request{.plan = {.iterations = 1}};
  MeshQuestion& question = request.mesh.emplace().question;
  request.mesh->network = load_hosts(configs() / "clusters/3090_hosts.yaml");
  question.devices = 16;
  question.tp = {1};
  question.run.architecture = load_architecture(configs() / "architectures/gpt2_large.yaml");
  question.run.architecture.sequence = 1024;
  question.run.global_batch = 128;
  const Planned planned = plan(request);
  ASSERT_TRUE(planned.found() && planned.mesh);
  write("same.yaml",
        "version: 1\nmodel: " + (configs() / "architectures/gpt2_large.yaml").string() +
            "\ncluster: " + (configs() / "clusters/3090_hosts.yaml").string() +
            "\ntraining: {global_batch: 128, sequence: 1024}\nparallel: {devices: 16, tp: 1}\n"
            "plan: {iterations: 1}\n");
  const Outcome outcome = run({"same.yaml", "--out", "out"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::size_t ranks = planned.best().plan.placement.ranks();
  EXPECT_EQ(ranks, static_cast<std::size_t>(planned.mesh->mesh.size(Axis::Pipeline)));
  EXPECT_EQ(result("out", "planned", "devices"), std::to_string(ranks));
  EXPECT_NEAR(std::stod(result("out", "planned", "estimate_ms")),
              milliseconds(planned.best().plan.estimate), 1e-3);
}

/// The refusal of the wishes, without a place.
std::string refused(const Request& request) {
  try {
    plan(two_layers(Nanoseconds{1}, Nanoseconds{1}), two_devices(), request);
  } catch (const RefusedWish& refusal) {
    return refusal.key() + " | " + refusal.what();
  }
  return "";
}

// A search of one's own in a few lines, priced as plan() prices: random cuts of every schedule.
// None of its plans is below the bound, and plan()'s own choice is priced as plan() said.
TEST_F(Pfeife, PricesTheChoicesOfOtherSearches) {
  const Model model = load_model(configs() / "models/tiny_gpt.pt2");
  const Cluster cluster = load_cluster(configs() / "clusters/a100_sxm4_40gb_x8.yaml");
  const Request request{.devices = 2,
                        .microbatches = 4,
                        .plan = {.families = {"1f1b", "zb_h1", "zbv"}, .iterations = 20},
                        .simulate = false};
  const Pricer pricer(model, cluster, request);
  std::mt19937 random(1);
  std::vector<Choice> choices;
  const auto last = static_cast<std::int32_t>(pricer.layers().size()) - 2;
  while (choices.size() < 200) {
    Choice choice{.spec = pricer.schedules()[random() % pricer.schedules().size()]};
    std::set<std::int32_t> cuts;
    while (cuts.size() + 1 < choice.spec.stages())
      cuts.insert(std::uniform_int_distribution(0, last)(random));
    choice.partition.cuts.assign(cuts.begin(), cuts.end());
    if (illegal_because(pricer.layers(), choice.partition).empty()) choices.push_back(choice);
  }
  std::vector<Priced> priced = pricer.price(choices, 2);
  std::erase_if(priced,
                [&](const Priced& p) { return !fits(p.peak_memory, pricer.memory_limit()); });
  const Planned planned = plan(model, cluster, request);
  ASSERT_FALSE(priced.empty());
  for (const Priced& found : priced) EXPECT_GE(found.estimate, planned.bound->time);
  const PricedPlan& best = planned.best();
  const Priced again = pricer.price({static_cast<const Choice&>(best.plan)}).front();
  EXPECT_EQ(again.estimate, best.plan.estimate);
  EXPECT_EQ(again.peak_memory, best.plan.peak_memory);
  EXPECT_EQ(pricer.price(choices), pricer.price(choices, 3));

  choices.front().partition.cuts.push_back(last + 1);
  EXPECT_THROW(pricer.price(choices), ConfigError);
}

TEST_F(Pfeife, RefusesWishesAsAConfigDoes) {
  EXPECT_EQ(refused({.plan = {.recompute = Recompute::None, .recompute_except_last = true}}),
            "plan.recompute_except_last | plan.recompute_except_last: nothing is recomputed; leave "
            "it out, or set recompute");
  EXPECT_EQ(refused({.devices = 3}), "devices | the cluster has 2 devices, asked for 3");
  EXPECT_EQ(refused({.microbatches = 3, .training = {.global_batch = 8}}),
            "microbatches | a global batch of 8 cannot be divided into 3 microbatches; 2 or 4 "
            "would do");
  EXPECT_EQ(refused({.baselines = {{"gpipe"}, {"gpipe"}}}),
            "baselines[1] | baselines[1]: \"gpipe\" is here twice; a name of its own tells one "
            "from the other");
  EXPECT_EQ(refused({.plan = {.cuts = PlanSettings::Cuts::Given, .given_cuts = {7}}}),
            "plan.cuts | plan.cuts: cut 7 is outside 0..0: a cut lies between two of the 2 layers");
  EXPECT_EQ(refused({.select_by = SelectBy::P95}),
            "select_by | select_by: p95 needs simulation.jitter, for example {cv: 0.02, "
            "repetitions: 100, seed: 1}");
}

/// A config of a small search, with paths that are whole.
std::string small_config(const std::string& more) {
  return "version: 1\nmodel: " + (configs() / "models/tiny_gpt.pt2").string() +
         "\ncluster: " + (configs() / "clusters/a100_sxm4_40gb_x8.yaml").string() +
         "\nplan: {iterations: 20}\nbaselines: [1f1b]\n" + more;
}

// What a program asks for in a config's words, and shows of the answer, is what pfeife-exp does.
TEST_F(Pfeife, ReadsAConfigsTextAndShowsItsTable) {
  const std::string config =
      small_config("training: {precision: tf32}\ncases: {devices: 2, microbatches: 4}\n");
  const AskedCase asked = request_of(config, "same.yaml");
  EXPECT_EQ(asked.request.training.precision, Precision::Tf32);
  const Planned planned = plan(load_model(asked.request.model), asked.cluster, asked.request);
  write("same.yaml", config);
  const Outcome outcome = run({"same.yaml", "--out", "out"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string shown = table(planned, {.digits = 3});
  EXPECT_THAT(outcome.out, HasSubstr(shown.substr(0, shown.rfind("\n\n"))));
  EXPECT_EQ(
      record_of(planned).plans.front().row.knobs,
      case_from_json(read("out/devices=2,microbatches=4/case.json"))->plans.front().row.knobs);
  // The traces are those of its page.
  const std::string page = report(planned), theirs = read("out/report.html");
  const std::string traces = "\"traces\":" + read("out/devices=2,microbatches=4/traces.json");
  EXPECT_GT(traces.size(), 1000u);
  EXPECT_THAT(theirs, HasSubstr(traces));
  EXPECT_THAT(page, HasSubstr(traces));
}

TEST_F(Pfeife, RefusesAConfigsTextWithItsPlace) {
  const auto refusal = [](const std::string& config) -> std::string {
    try {
      request_of(config, "some/wish.yaml");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(small_config("training: {precision: tf33}\n")),
              ::testing::AllOf(::testing::StartsWith("wish.yaml:6:23: "), HasSubstr("tf32")));
  EXPECT_THAT(refusal(small_config("cases: {devices: [1, 2]}\n")), HasSubstr("2 cases"));
  EXPECT_THAT(refusal(small_config("engines: [measure]\n")), HasSubstr("pfeife-exp does"));
  EXPECT_EQ(cases_of(small_config("cases: {devices: [1, 2]}\n"), "wish.yaml").size(), 2u);
  const std::vector<std::string> keys = request_keys();
  for (const char* key : {"devices", "training.precision", "plan.families", "simulation.queues"})
    EXPECT_THAT(keys, ::testing::Contains(key));
}

// Two layers of 1 ms forward, 1 + 1 ms backward on two devices, one microbatch, messages for free:
// 1 + 1 forward, input gradients 1, and 1 + 1 of the first stage's, beside the second's own.
TEST_F(Pfeife, FilesInMemoryAndPlansFromFolders) {
  const MemoryFile table(
      "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,"
      "saved_bytes,weight_saved_bytes,temporary_bytes,output_ms\n"
      "a,1,1,1,0,0,0,0,0,0\nb,1,1,1,0,0,0,0,0,0\n");
  const Model model = load_model({.file = table.path(), .format = ModelFormat::Table});
  const Cluster cluster = load_cluster(configs() / "clusters/laptop.yaml");
  Request request{.microbatches = 1, .baselines = {}};
  request.simulation.launch_overhead = Nanoseconds{0};
  const Planned planned = plan(model, cluster, request);
  EXPECT_EQ(step_time(planned.best().estimated), Nanoseconds{5'000'000});
  EXPECT_EQ(simulate(planned), *planned.contestants.front().simulated);
  save(planned, folder_ / "saved");
  EXPECT_EQ(read("saved/model.csv"), read(table.path()));
  EXPECT_TRUE(certify(folder_ / "saved").proven);
  const Planned again = load_plan(folder_ / "saved");
  EXPECT_EQ(again.best().plan.schedule, planned.best().plan.schedule);
  EXPECT_EQ(again.best().estimated, planned.best().estimated);
  EXPECT_EQ(again.bound, planned.bound);
  EXPECT_THROW(load_plan(folder_ / "nowhere"), ConfigError);
}

// The planner counts the bytes that layers hand on, and the runtime's rule cuts a graph: of the
// same cuts they say the same messages, and the same bytes of parameters.
TEST_F(Pfeife, SaysWhatRunsInWhichStage) {
  for (const char* name : {"tiny_gpt", "tiny_unet", "tiny_shared", "tiny_convnet"}) {
    SCOPED_TRACE(name);
    const Planned planned =
        plan(load_model(configs() / "models" / (std::string(name) + ".pt2")),
             load_cluster(configs() / "clusters/3090_x8.yaml"),
             {.devices = 3,
              .microbatches = 4,
              .plan = {.stages_per_rank = {1}, .iterations = 1, .recompute = Recompute::None},
              .baselines = {{"1f1b"}},
              .simulate = false});
    for (std::size_t c = 0; c < planned.contestants.size(); ++c) {
      const PricedPlan& priced = planned.contestants[c].priced();
      const PlannedStages stages = stages_of(planned, c);
      ASSERT_EQ(stages.split.stages.size(), priced.costs.stages.size());
      std::size_t pairs = 0;
      for (const StagePair& pair : priced.costs.pairs) {
        Bytes there{0}, back{0};
        for (const Crossing& crossing : stages.split.between(pair.from, pair.to)) {
          const Bytes bytes = stages.graph.value(crossing.value).type.bytes();
          there += bytes;
          if (crossing.gradient) back += bytes;
        }
        EXPECT_EQ(there, pair.bytes);
        EXPECT_EQ(back, pair.gradient_bytes);
        pairs += stages.split.between(pair.from, pair.to).size();
      }
      EXPECT_EQ(pairs, stages.split.crossings.size()) << "every message has its pair";
      std::set<NodeId> executed;
      std::set<ParameterId> held;
      for (const StageSlice& slice : stages.split.stages) {
        executed.insert(slice.nodes.begin(), slice.nodes.end());
        held.insert(slice.parameters.begin(), slice.parameters.end());
      }
      EXPECT_EQ(held.size(), stages.graph.parameters.size());
      EXPECT_LE(executed.size(), stages.graph.nodes.size());
    }
  }
  const Planned of_layers = plan(two_layers(Nanoseconds{1}, Nanoseconds{1}), two_devices());
  EXPECT_THROW(stages_of(of_layers), ConfigError);
}

}  // namespace
}  // namespace pfeife
