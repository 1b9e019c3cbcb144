// pfeife-exp calibrate: runs whose times are known, since they were made up.
#include "experiments/measure/calibrated.h"

#include <gmock/gmock.h>

#include <cmath>

#include "planner/cost/estimate/estimator.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/model/profile_file.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/io/plan/plan_file.h"
#include "planner/io/results/profiler_trace.h"
#include "planner/ir/basics/error.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

// A device of 100 GFLOP/s that takes 5 us for an operator: half of the peak for 1 GFLOP, a tenth
// for 1 MFLOP. Steps 1 and 3 are 10 % slower, less the overhead.
TEST(CalibratedCurve, FindsTheEfficiencyThatTheProductsWereMadeWith) {
  const DeviceKind kind{.name = "d",
                        .peak = {{"fp32", FlopsPerSecond{100e9}}},
                        .gemm_efficiency = {{"fp32", {{{Flops{1e6}, 1}}}}},
                        .kernel_overhead = Nanoseconds{5000}};
  std::vector<ObservedProduct> products;
  for (const std::size_t step : {0, 1, 2, 3})
    for (int i = 0; i < 4; ++i) {
      const std::int64_t slower = step % 2 == 1 ? 11 : 10;
      products.push_back({step, "fp32", Flops{1e9}, Nanoseconds{2'000'000 * slower + 5000}});
      products.push_back({step, "fp32", Flops{1e6}, Nanoseconds{10'000 * slower + 5000}});
    }
  const auto found = calibrated_curve(products, "fp32", kind);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->curve.points.size(), 2u);
  EXPECT_EQ(found->curve.points[0].work, Flops{1e6});
  EXPECT_NEAR(found->curve.points[0].fraction, 0.1, 1e-9);
  EXPECT_EQ(found->curve.points[1].work, Flops{1e9});
  EXPECT_NEAR(found->curve.points[1].fraction, 0.5, 1e-9);
  EXPECT_EQ(found->steps, 2u);
  EXPECT_EQ(found->products, 16u);
  EXPECT_NEAR(found->after, (20.1 + 0.01) / (22.11 + 0.01) - 1, 1e-6);
  EXPECT_NEAR(found->before, (10.01 + 0.01 + 0.01) / (22.11 + 0.01) - 1, 1e-3);
  products.resize(8);
  EXPECT_FALSE(calibrated_curve(products, "fp32", kind)) << "no step is left to judge it";
}

Nanoseconds us(double count) { return nanoseconds_from_seconds(1e-6 * count); }

/// Five even steps and as many odd ones of a link with a message of each of these sizes, which
/// takes 20 us and 1 ns a byte. In the third step a message is 5 ms late.
std::vector<ObservedMessage> messages_of(const std::vector<std::int64_t>& sizes) {
  std::vector<ObservedMessage> messages;
  for (std::size_t step = 0; step < 10; ++step)
    for (const std::int64_t size : sizes)
      messages.push_back({step, DeviceId{0}, DeviceId{1}, "link", Bytes{size},
                          Nanoseconds{20'000 + size + (step == 2 ? 5'000'000 : 0)}});
  return messages;
}

CalibratedLink link_of(const std::vector<ObservedMessage>& messages, bool own = true,
                       Nanoseconds overhead = {}) {
  const Cluster cluster = uniform_cluster(2, {.name = "d"}, {2e9}, us(5));
  const auto has_own = [&](const std::string&) { return own; };
  return calibrated_links(messages, cluster, overhead, has_own).at("link");
}

// By hand: 24 us for 4000 bytes and 84 us for 64000 are 1 ns a byte and 20 us, whatever one late
// message of five says. Before: 5 + 2 and 5 + 32 us.
TEST(CalibratedLink, TwoSizesTellLatencyFromBandwidth) {
  const CalibratedLink link = link_of(messages_of({4000, 64'000}));
  EXPECT_EQ(link.latency, us(20));
  EXPECT_EQ(link.latency_stays, "");
  ASSERT_EQ(link.curve.points.size(), 2u);
  for (const BandwidthCurve::Point& point : link.curve.points)
    EXPECT_NEAR(point.rate.value, 1e9, 1);
  EXPECT_EQ(link.messages, 10u);
  EXPECT_EQ(link.held_out, 10u);
  EXPECT_NEAR(link.before, (7.0 / 24 + 37.0 / 84) / 2 - 1, 1e-6);
}

// A third size between them that is slow by itself bends no line: of the three slopes, 1 ns a byte
// is in the middle.
TEST(CalibratedLink, OneSizeThatIsSlowBendsNoLine) {
  std::vector<ObservedMessage> messages = messages_of({4000, 34'000, 64'000});
  for (ObservedMessage& message : messages)
    if (message.bytes == Bytes{34'000}) message.time += us(15);
  EXPECT_EQ(link_of(messages).latency, us(20));
}

TEST(CalibratedLink, LatencyStaysWhereMessagesDoNotTellIt) {
  EXPECT_THAT(link_of(messages_of({64'000})).latency_stays, HasSubstr("two sizes"));
  EXPECT_THAT(link_of(messages_of({30'000, 64'000})).latency_stays, HasSubstr("two sizes"));
  const std::vector<ObservedMessage> messages = messages_of({4000, 64'000});
  EXPECT_THAT(link_of(messages, false).latency_stays, HasSubstr("as a sum"));
  std::vector<ObservedMessage> few = messages;
  std::erase_if(few, [](const ObservedMessage& message) {
    return message.bytes == Bytes{4000} && message.step != 0 && message.step != 4;
  });
  EXPECT_THAT(link_of(few).latency_stays, HasSubstr("two sizes"));
  std::vector<ObservedMessage> odd = messages, steep = messages;
  for (ObservedMessage& message : odd)
    if (message.bytes == Bytes{64'000}) message.time = us(23);
  EXPECT_THAT(link_of(odd).latency_stays, HasSubstr("no longer"));
  for (ObservedMessage& message : steep)
    if (message.bytes == Bytes{4000}) message.time = us(2);
  EXPECT_THAT(link_of(steep).latency_stays, HasSubstr("below 0"));
  for (const auto& some : {few, steep, messages_of({64'000})}) {
    const CalibratedLink link = link_of(some);
    EXPECT_FALSE(link.latency);
    EXPECT_NEAR(link.curve.points.back().rate.value, 64e3 / 79e-6, 1e3) << "beyond the 5 us";
  }
  const CalibratedLink link = link_of(messages_of({64'000}), true, us(3));
  EXPECT_NEAR(link.curve.points.back().rate.value, 64e3 / 82e-6, 1e3) << "beyond the link's 2 us";
  EXPECT_NEAR(link.before, 37.0 / 84 - 1, 1e-6) << "predicted with all of it";
}

class Calibrate : public ProgramTest {
 protected:
  Calibrate() {
    for (const char* name : {"models/tiny_gpt.pt2", "clusters/laptop.yaml"}) {
      std::filesystem::create_directories((folder_ / name).parent_path());
      std::filesystem::copy_file(configs() / name, folder_ / name);
    }
    write("c.yaml", kConfig);
  }
  std::filesystem::path folder() const { return folder_ / "results/c" / kCase / "planned"; }

  /// Traces of steps of the plan that take as long as estimated with these costs.
  void write_run(const std::vector<StageCosts>& steps) const {
    std::vector<Trace> traces;
    for (const StageCosts& costs : steps)
      traces.push_back(std::get<Trace>(estimate(plan().graph, costs)));
    for (const Trace& trace : traces) ASSERT_EQ(trace.ranks, 2u);
    for (std::size_t r = 0; r < 2; ++r)
      write("traces/rank" + std::to_string(r) + ".json", profiler_trace(traces, RankId{r}));
  }
  /// The plan beside a run of it: that of a trace.json, which is as estimated.
  struct Known {
    PricedPlan known;
    DependencyGraph graph;
    PlanInputs inputs;
  };
  Known plan() const {
    const Plan read = read_plan(folder() / "plan.yaml");
    Known of{.inputs = read_plan_inputs(read, folder())};
    of.known = std::get<PricedPlan>(priced_plan(read, true, of.inputs.layers, of.inputs.cluster));
    of.graph = executed_graph(of.known.plan, of.known.costs);
    return of;
  }

  static constexpr const char* kCase = "devices=2,microbatches=4";
  static constexpr const char* kConfig =
      "version: 1\nmodel: models/tiny_gpt.pt2\ncluster: clusters/laptop.yaml\n"
      "cases: {devices: 2, microbatches: 4}\nplan: {families: [zbv]}\nbaselines: []\n"
      "engines: [estimate]\n";
};

Nanoseconds times(Nanoseconds time, double factor) {
  return Nanoseconds{std::llround(static_cast<double>(time.count()) * factor)};
}

/// A machine where every stage's actions take another multiple of what was predicted.
StageCosts slower(StageCosts costs, double factor) {
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    StageCost& stage = costs.stages[s];
    const double own = factor * (1 + 0.5 * static_cast<double>(s));
    stage.forward = times(stage.forward, own);
    stage.backward_input = times(stage.backward_input, 1.2 * own);
    stage.backward_weight = times(stage.backward_weight, 0.7 * own);
    stage.optimizer = times(stage.optimizer, 3);
  }
  return costs;
}

// Then the profile predicts the very step, and so does an experiment that is given it: but for the
// rounding of each node's time.
TEST_F(Calibrate, AProfilePredictsTheRunThatItWasMadeOf) {
  ASSERT_EQ(run({"c.yaml"}).code, 0);
  const Known of = plan();
  const StageCosts costs = slower(of.known.costs, 2);
  const Nanoseconds step = step_time(std::get<Trace>(estimate(of.graph, costs)));
  std::filesystem::create_directory(folder_ / "traces");
  write_run({costs, costs, costs, costs});
  const std::vector<std::filesystem::path> traces{folder_ / "traces"};
  const Calibrated found = calibrate_by_traces(folder(), traces);
  ASSERT_TRUE(found.profile);
  EXPECT_EQ(found.profile->step, step);
  EXPECT_EQ(found.profile->step_before, step_time(of.known.estimated));
  const double rounding = 1e-3 * static_cast<double>(step.count());
  EXPECT_NEAR(static_cast<double>((found.profile->step_after - step).count()), 0, rounding);
  EXPECT_GT(static_cast<double>((step - found.profile->step_before).count()), 100 * rounding);

  const Outcome outcome =
      run({"calibrate", folder().string(), (folder_ / "traces").string(), "--out", "found"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("profile: from 2 steps, judged by 2 others"));
  std::string config = std::string(kConfig) + "profile: found/profile.yaml\n";
  config.replace(config.find("clusters/laptop.yaml"), 20, "found/cluster.yaml");
  config.replace(config.find("{families: [zbv]}"), 17,
                 "{file: \"" + (folder() / "plan.yaml").string() + "\"}");
  write("again.yaml", config);
  const Outcome again = run({"again.yaml"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_NEAR(std::stod(result("results/again", "planned", "estimate_ms")),
              milliseconds(found.profile->step_after), 1e-6);
}

// A profile says 150 us for what follows a wait; in the run messages take what the link says. What
// was measured of actions and messages has all of it, so the new files have none beside them.
TEST_F(Calibrate, AMeasuredRunLeavesNoOverheadOfMessagesBeside) {
  ASSERT_EQ(run({"c.yaml"}).code, 0);
  std::filesystem::create_directory(folder_ / "traces");
  write_run({plan().known.costs, plan().known.costs});
  const std::vector<std::string> calibrate{"calibrate", folder().string(),
                                           (folder_ / "traces").string(), "--out", "found"};
  ASSERT_EQ(run(calibrate).code, 0);
  std::string profile = read("found/profile.yaml");
  profile.insert(profile.find("nodes:"), "message_overhead: 150000 ns\n");
  write("waits.yaml", profile);
  write("c.yaml", std::string(kConfig) + "profile: waits.yaml\n");
  ASSERT_EQ(run({"c.yaml", "--force"}).code, 0);
  const Known of = plan();
  StageCosts prompt = of.known.costs;
  for (StagePair& pair : prompt.pairs)
    if (pair.forward_time > us(150)) pair.forward_time -= us(150), pair.backward_time -= us(150);
  const Nanoseconds step = step_time(std::get<Trace>(estimate(of.graph, prompt)));
  ASSERT_LT(step, step_time(of.known.estimated));
  write_run({prompt, prompt});
  const std::vector<std::filesystem::path> traces{folder_ / "traces"};
  const Calibrated found = calibrate_by_traces(folder(), traces);
  EXPECT_GT(found.links.at("socket").before, 0.5);
  EXPECT_NEAR(found.links.at("socket").after, 0, 0.05)
      << "of messages that are nearly all latency a tenth goes by bytes";
  EXPECT_THAT(found.profile->text, ::testing::Not(HasSubstr("message_overhead")));
  EXPECT_NEAR(milliseconds(found.profile->step_after), milliseconds(step),
              1e-3 * milliseconds(step));
}

// Messages of a run whose socket has another bandwidth than the plan's: those that an idle receiver
// waited for say which, the others do not count.
TEST_F(Calibrate, TheLinksOfTheClusterAreThoseOfTheRun) {
  ASSERT_EQ(run({"c.yaml"}).code, 0);
  const Known of = plan();
  StageCosts slow = of.known.costs;
  const Path& path = of.inputs.cluster.path(DeviceId{0}, DeviceId{1});
  const auto at = [&](Bytes bytes, double rate) {
    return path.latency + Nanoseconds{std::llround(1e9 * static_cast<double>(bytes.value) / rate)};
  };
  for (StagePair& pair : slow.pairs)
    if (pair.forward_time > Nanoseconds{0})
      pair.forward_time = at(pair.bytes, 0.5e9),
      pair.backward_time = at(pair.gradient_bytes, 0.5e9);
  std::filesystem::create_directory(folder_ / "traces");
  write_run({slow, slow, slow});
  const std::vector<std::filesystem::path> traces{folder_ / "traces"};
  const Calibrated found = calibrate_by_traces(folder(), traces);
  const CalibratedLink& socket = found.links.at("socket");
  EXPECT_EQ(socket.messages, 2 * socket.held_out) << "two steps make it, one judges";
  EXPECT_LT(socket.before, -0.5);
  EXPECT_NEAR(socket.after, 0, 1e-3);
  write("found.yaml", found.cluster);
  const Cluster cluster = read_cluster(folder_ / "found.yaml");
  for (const StagePair& pair : of.known.costs.pairs) {
    if (pair.forward_time == Nanoseconds{0}) continue;
    const Nanoseconds wanted = at(pair.bytes, 0.5e9),
                      now = transfer_time(cluster.path(DeviceId{1}, DeviceId{0}), pair.bytes);
    EXPECT_NEAR(seconds(now), seconds(wanted), 1e-5 * seconds(wanted));
  }
}

// Four stages on two ranks send messages of two sizes: the file then has the run's latency, where
// the shipped one has its own, and a route's where a route has it.
TEST_F(Calibrate, TheLatencyOfTheClusterIsThatOfTheRun) {
  std::string table =
      "name,forward_ms,backward_ms,output_bytes,parameter_bytes,saved_bytes,weight_saved_bytes,"
      "temporary_bytes\n";
  for (const char* name : {"a", "b", "c", "d"})
    table +=
        std::string(name) + ",0.5,1," + (name[0] == 'b' ? "16000" : "400000") + ",1000,1000,0,0\n";
  write("blocks.csv", table);
  const std::string cluster = read("clusters/laptop.yaml"), route = "{over: socket}";
  for (const bool of_route : {false, true}) {
    std::string text = cluster;
    if (of_route) text.replace(text.find(route), route.size(), "{over: socket, latency: 9 us}");
    write("clusters/laptop.yaml", text);
    write("c.yaml",
          "version: 1\nmodel: blocks.csv\ncluster: clusters/laptop.yaml\n"
          "cases: {devices: 2, microbatches: 4}\nbaselines: []\nengines: [estimate]\n"
          "plan: {families: [interleaved_1f1b], stages_per_rank: 2}\n");
    ASSERT_EQ(run({"c.yaml", "--force"}).code, 0);
    StageCosts slow = plan().known.costs;
    for (StagePair& pair : slow.pairs)
      if (pair.forward_time > Nanoseconds{0})
        pair.forward_time = us(30) + Nanoseconds{2 * pair.bytes.value},
        pair.backward_time = us(30) + Nanoseconds{2 * pair.gradient_bytes.value};
    std::filesystem::create_directory(folder_ / "traces");
    write_run({slow, slow, slow});
    const Outcome outcome =
        run({"calibrate", folder().string(), (folder_ / "traces").string(), "--out", "found"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Cluster found = read_cluster(folder_ / "found/cluster.yaml");
    const Path& path = found.path(DeviceId{0}, DeviceId{1});
    EXPECT_NEAR(milliseconds(path.latency), 0.030, 1e-4) << outcome.out;
    EXPECT_NEAR(path.bandwidth.at(Bytes{50'000}).value, 0.5e9, 2e6);
    EXPECT_THAT(found.notes, ::testing::Contains(HasSubstr("latency of socket: of the same")));
    EXPECT_EQ(read("found/cluster.yaml").find("9 us"), std::string::npos);
  }
}

// Four messages, one after the other: the middle two begin to share the link if the third sets
// out earlier; if it goes the other way they meet on none.
TEST_F(Calibrate, MessagesThatMeetOnALinkDoNotCount) {
  ASSERT_EQ(run({"c.yaml"}).code, 0);
  const Known of = plan();
  std::vector<std::size_t> there, back;
  for (std::size_t t = 0; t < of.graph.size(); ++t)
    if (const Task& task = of.graph.tasks[t]; task.kind == TaskKind::Transfer)
      (task.rank == RankId{0} ? there : back).push_back(t);
  ASSERT_GE(there.size(), 3u);
  const auto count = [&](const std::vector<std::size_t>& sent, int third) {
    ObservedRun run{.steps = {of.known.estimated}, .watched = {std::vector<bool>(of.graph.size())}};
    for (std::size_t i = 0; i < 4; ++i) {
      const Nanoseconds start{i == 2 ? third : 1000 * static_cast<int>(i)};
      run.watched[0][sent[i]] = true;
      run.steps[0].events[sent[i]].start = start;
      run.steps[0].events[sent[i]].end = start + Nanoseconds{500};
    }
    for (std::size_t t = 0; t < of.graph.size(); ++t)
      if (!run.watched[0][t])
        run.steps[0].events[t].start = run.steps[0].events[t].end = Nanoseconds{9000};
    return observed_messages(of.graph, run, of.known.costs, of.known.plan.placement,
                             of.inputs.cluster)
        .size();
  };
  EXPECT_EQ(count({there[0], there[1], there[2], back[0]}, 2000), 4u);
  EXPECT_EQ(count({there[0], there[1], there[2], back[0]}, 1400), 2u);
  EXPECT_EQ(count({there[0], there[1], back[0], there[2]}, 1400), 4u);
}

// What stages cost beyond their nodes is in a profile's nodes once, and stays in them: steps as the
// profile predicts make the same profile again.
TEST_F(Calibrate, AProfileWithOverheadsOfStagesIsMadeAgainByStepsThatItPredicts) {
  ASSERT_EQ(run({"c.yaml"}).code, 0);
  std::filesystem::create_directory(folder_ / "traces");
  write_run({plan().known.costs, plan().known.costs});
  const std::string traces = (folder_ / "traces").string();
  ASSERT_EQ(run({"calibrate", folder().string(), traces, "--out", "found"}).code, 0);
  write("profile.yaml", read("found/profile.yaml") +
                            "stage_overheads: {forward: 30 us, backward_input: 50 us, "
                            "backward_weight: 4 us}\n");
  write("c.yaml", std::string(kConfig) + "profile: profile.yaml\n");
  ASSERT_EQ(run({"c.yaml"}).code, 0);
  const Known of = plan();
  write_run({of.known.costs, of.known.costs});
  ASSERT_EQ(run({"calibrate", folder().string(), traces, "--out", "again"}).code, 0);
  const std::vector<std::filesystem::path> files{folder_ / "traces"};
  const Calibrated found = calibrate_by_traces(folder(), files);
  EXPECT_NEAR(seconds(found.profile->compute_after) / seconds(found.profile->compute), 1, 1e-3);
  const Graph graph = read_pt2(folder_ / "models/tiny_gpt.pt2");
  const Profile given = read_profile(folder_ / "profile.yaml", graph),
                made = read_profile(folder_ / "again/profile.yaml", graph);
  EXPECT_EQ(made.stage_overheads, given.stage_overheads);
  Nanoseconds more{0};
  for (std::size_t n = 0; n < given.nodes.size(); ++n) {
    const auto near = [&](Nanoseconds NodeProfile::*pass) {
      const auto left = (made.nodes[n].*pass - given.nodes[n].*pass).count();
      EXPECT_NEAR(static_cast<double>(left), 0,
                  3 + 2e-3 * static_cast<double>((given.nodes[n].*pass).count()))
          << n;
    };
    near(&NodeProfile::forward), near(&NodeProfile::backward_input);
    near(&NodeProfile::backward_weight);
    more += made.nodes[n].forward - given.nodes[n].forward;
  }
  EXPECT_LT(std::abs(more.count()), 4200) << "a tenth of an overhead";
}

// Even steps make the profile, odd ones, a fifth slower, judge it.
TEST_F(Calibrate, StepsThatMadeAProfileDoNotJudgeIt) {
  ASSERT_EQ(run({"c.yaml"}).code, 0);
  const Known of = plan();
  std::filesystem::create_directory(folder_ / "traces");
  write_run({slower(of.known.costs, 1), slower(of.known.costs, 1.2), slower(of.known.costs, 1)});
  const std::vector<std::filesystem::path> traces{folder_ / "traces"};
  const Calibrated found = calibrate_by_traces(folder(), traces);
  EXPECT_EQ(found.profile->steps, 2u);
  EXPECT_EQ(found.profile->held_out, 1u);
  const double error =
      milliseconds(found.profile->compute_after) / milliseconds(found.profile->compute) - 1;
  EXPECT_LT(error, -0.1) << "optimizer steps are as long, the rest is a fifth longer";
  EXPECT_GT(error, 1 / 1.2 - 1 - 1e-3);
}

TEST_F(Calibrate, RefusesWhatTellsTooLittle) {
  EXPECT_EQ(run({"calibrate"}).code, 2);
  ASSERT_EQ(run({"c.yaml"}).code, 0);
  std::filesystem::create_directory(folder_ / "traces");
  write_run({plan().known.costs});
  const Outcome one =
      run({"calibrate", folder().string(), (folder_ / "traces").string(), "--out", "found"});
  EXPECT_EQ(one.code, 2);
  EXPECT_THAT(one.err, HasSubstr("has one step; calibration holds out every other one"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "found"));
}

/// A model without a graph, whose traces have the sizes of its operators.
TEST_F(Calibrate, WithoutAGraphShapesMakeTheCurvesOfACluster) {
  std::string table =
      "name,forward_ms,backward_ms,output_bytes,parameter_bytes,saved_bytes,weight_saved_bytes,"
      "temporary_bytes\na,0.5,1,1000,1000,1000,0,0\nb,0.5,1,1000,1000,1000,0,0\n";
  write("blocks.csv", table);
  write("c.yaml",
        "version: 1\nmodel: blocks.csv\ncluster: clusters/laptop.yaml\n"
        "cases: {devices: 2, microbatches: 4}\nplan: {families: [gpipe]}\nbaselines: []\n"
        "engines: [estimate]\n");
  ASSERT_EQ(run({"c.yaml"}).code, 0);
  const StageCosts costs = plan().known.costs;
  std::filesystem::create_directory(folder_ / "traces");
  write_run({costs, costs});
  const auto calibrate = [&] {
    return run({"calibrate", folder().string(), (folder_ / "traces").string(), "--out", "found"});
  };
  const Outcome none = calibrate();
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_THAT(none.out, HasSubstr("record_shapes=True"));
  EXPECT_TRUE(read_cluster(folder_ / "found/cluster.yaml").kinds[0].gemm_efficiency ==
              read_cluster(folder_ / "clusters/laptop.yaml").kinds[0].gemm_efficiency)
      << "links alone";
  // A product of 2 MFLOP in 45 us in each step: 40 us of work are 50 GFLOP/s, all of the peak.
  std::string trace = read("traces/rank0.json");
  const double second =
      1e-3 * static_cast<double>((step_time(std::get<Trace>(estimate(plan().graph, costs))) +
                                  Nanoseconds{1'000'000})
                                     .count());
  for (const double start : {0.0, second})
    trace.insert(trace.rfind("\n]"),
                 ",\n{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 1, "
                 "\"tid\": 1, \"ts\": " +
                     std::to_string(start) +
                     ", \"dur\": 45, \"args\": {\"Input Dims\": [[100, 100], [100, 100]], "
                     "\"Input type\": [\"float\", \"float\"]}}");
  write("traces/rank0.json", trace);
  const Outcome outcome = calibrate();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Cluster cluster = read_cluster(folder_ / "found/cluster.yaml");
  const EfficiencyCurve& curve = cluster.kinds[0].gemm_efficiency.at("fp32");
  ASSERT_EQ(curve.points.size(), 1u);
  EXPECT_NEAR(curve.points[0].work.value, 2e6, 1);
  EXPECT_NEAR(curve.points[0].fraction, 1, 1e-6);
  EXPECT_THAT(cluster.notes,
              ::testing::Contains(HasSubstr(
                  "fp32: from 1 products of 1 steps of a traced run, +0.0 % on 1 steps")));
  EXPECT_EQ(cluster.notes.size(), read_cluster(folder_ / "clusters/laptop.yaml").notes.size() + 2);
}

}  // namespace
}  // namespace pfeife
