// pfeife-exp with "measure" among its engines, from the config to the files: plans that it writes
// run, and what they took is in every file that says so.
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "experiments/measure/compared.h"
#include "experiments/pfeife.h"
#include "planner/io/files/yaml.h"
#include "planner/io/model/profile_file.h"
#include "planner/io/plan/plan_file.h"
#include "planner/io/results/measurement_file.h"
#include "planner/io/results/results.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Measured : public ProgramTest {
 protected:
  Measured() {
    setenv("PFEIFE_RUN", PFEIFE_RUN, 1);
    std::filesystem::create_directories(folder_ / "tmp");
    setenv("TMPDIR", (folder_ / "tmp").c_str(), 1);
    for (const char* name : {"models/tiny_gpt.pt2", "clusters/laptop.yaml",
                             "clusters/a100_sxm4_40gb_x8.yaml", "tables/two_stage.csv"}) {
      std::filesystem::create_directories((folder_ / name).parent_path());
      std::filesystem::copy_file(configs() / name, folder_ / name);
    }
    write("m.yaml", kConfig);
  }
  ~Measured() override { unsetenv("TMPDIR"); }

  CaseRecord record(const std::string& name = kCase) const {
    return case_from_json(read(std::filesystem::path("results/m") / name / "case.json")).value();
  }
  /// The only line on standard error of a config that is refused.
  std::string refusal(const std::string& text) const {
    write("refused.yaml", text);
    const Outcome outcome = run({"refused.yaml"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "results/refused"));
    return outcome.err;
  }

  static constexpr const char* kCase = "devices=2,microbatches=3";
  static constexpr const char* kConfig =
      "version: 1\nmodel: models/tiny_gpt.pt2\ncluster: clusters/laptop.yaml\n"
      "cases: {devices: 2, microbatches: 3}\n"
      "plan: {families: [1f1b, zbv, interleaved_1f1b]}\nbaselines: [gpipe]\n"
      "engines: [estimate, simulate, measure]\nmeasurement: {steps: 4, rounds: 1}\n";
};

TEST_F(Measured, EveryFileSaysWhatWasMeasured) {
  const Outcome outcome = run({"m.yaml", "--verbose"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("errors, predicted / measured - 1"));
  EXPECT_THAT(outcome.out, HasSubstr("furthest from their prediction (simulated)"));
  const std::string csv = read("results/m/results.csv");
  for (const char* plan : {"planned", "gpipe"}) {
    const double ms = std::stod(result("results/m", plan, "measure_ms"));
    EXPECT_GT(ms, 0);
    EXPECT_LT(ms, 60'000);
    const double samples = std::stod(result("results/m", plan, "microbatch_size"));
    EXPECT_NEAR(std::stod(result("results/m", plan, "samples_per_s")), 3 * samples / ms * 1e3,
                1e-3 * samples / ms * 1e3);
    const std::filesystem::path folder = std::filesystem::path("results/m") / kCase / plan;
    EXPECT_THAT(read(folder / "timeline.svg"), HasSubstr("easured"));
    EXPECT_THAT(read(folder / "trace.json"), HasSubstr("measured"));
  }
  EXPECT_THAT(read("results/m/report.html"), HasSubstr("Accuracy: predicted against measured"));
  for (const PlanRecord& plan : record().plans) {
    ASSERT_TRUE(plan.measured);
    EXPECT_EQ(plan.measured->steps, 2u) << "the first two only warm up";
    EXPECT_LE(plan.measured->p5, *plan.row.measure);
    EXPECT_GE(plan.measured->p95, *plan.row.measure);
    EXPECT_EQ(plan.measured->furthest.size(), 5u);
    Nanoseconds total{0};
    for (const Attribution& rank : plan.attribution) total += rank.total();
    EXPECT_EQ(total, 2 * *plan.row.measure) << "of the measured step";
  }
  EXPECT_THAT(files("tmp"), IsEmpty()) << "ranks leave nothing behind";
}

TEST_F(Measured, TheTraceKeepsEveryEdgeOfTheGraph) {
  ASSERT_EQ(run({"m.yaml"}).code, 0);
  for (const char* name : {"planned", "gpipe"}) {
    const std::filesystem::path folder = folder_ / "results/m" / kCase / name;
    const Plan plan = read_plan(folder / "plan.yaml");
    // The stages of the plan, as its transfers and reductions show them.
    StageGraph stages{plan.placement.stages(), {}, {}};
    for (std::size_t s = 0; s + 1 < stages.stages; ++s)
      stages.edges.push_back({StageId{s}, StageId{s + 1}, true});
    std::vector<StageId> tied;
    for (const auto& row : plan.schedule.rows)
      for (const Cell& cell : row)
        for_each_action(cell, [&](const Action& a) {
          if (a.op == Op::ReduceGrad) tied.push_back(a.stage);
        });
    std::ranges::sort(tied);
    if (!tied.empty()) stages.tied = {tied};
    const DependencyGraph graph = dependencies(plan.schedule, stages, plan.placement, Semantics{});
    const Measurement measurement = read_measurement(folder / "measurement.csv", graph);
    for (std::size_t t = 0; t < graph.size(); ++t)
      for (const Edge& edge : graph.edges_into(TaskId{t}))
        EXPECT_GE(measurement.trace.events[t].start,
                  measurement.trace.events[edge.from.index()].end)
            << to_string(graph.tasks[t].cell) << " after "
            << to_string(graph.tasks[edge.from.index()].cell);
  }
}

TEST_F(Measured, WhatIsThereIsNotMeasuredAgain) {
  ASSERT_EQ(run({"m.yaml"}).code, 0);
  const auto before = files("results");
  const Outcome again = run({"m.yaml"});
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, HasSubstr("0 of 1 cases computed"));
  EXPECT_EQ(files("results"), before);
  EXPECT_THAT(run({"m.yaml", "--list"}).out, HasSubstr("done"));
}

/// In the place of pfeife-run: notes which plan is run, and gives what the first run of it has
/// taken, so that all its rounds are alike.
void repeat_first_runs(const std::filesystem::path& folder) {
  std::ofstream(folder / "repeat")
      << "#!/bin/sh\nname=$(basename $(dirname \"$2\"))\nwhile [ $# -gt 0 ]; do case $1 in --out) "
         "out=$2;; esac; all=\"$all $1\"; shift; done\n[ -f "
      << (folder / "kept").string() << ".$name ] || " << PFEIFE_RUN << " $all || exit 4\n[ -f "
      << (folder / "kept").string() << ".$name ] || cp $out " << (folder / "kept").string()
      << ".$name\ncp " << (folder / "kept").string() << ".$name $out\necho $name >> "
      << (folder / "order").string() << "\n";
  std::filesystem::permissions(folder / "repeat", std::filesystem::perms::owner_all);
  setenv("PFEIFE_RUN", (folder / "repeat").c_str(), 1);
}

// 95 % take six rounds at least (the smallest and the largest of five cover 15 of 16); these are
// enough where all are alike.
TEST_F(Measured, PlansTakeTurnsUntilTheirMediansAreKnown) {
  repeat_first_runs(folder_);
  const Outcome outcome = run({"m.yaml", "--set", "measurement.rounds=20"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read("order"),
            "planned\ngpipe\ngpipe\nplanned\nplanned\ngpipe\ngpipe\nplanned\nplanned\ngpipe\n"
            "gpipe\nplanned\n");
  for (const PlanRecord& plan : record().plans) {
    EXPECT_EQ(plan.measured->rounds, std::vector<Nanoseconds>(6, *plan.row.measure));
    EXPECT_EQ(plan.measured->steps, 12u);
    EXPECT_FALSE(misses_goal(*plan.measured));
  }
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex(" is faster than .*: [0-9.]+ \\+- 0\\.0 %"));
  EXPECT_THAT(outcome.out, HasSubstr("1 of 1 pairs are told apart"));
  EXPECT_THAT(read("results/m/report.html"), HasSubstr("Told apart"));
}

TEST_F(Measured, RoundsThatSayTooLittleSaySo) {
  repeat_first_runs(folder_);
  const Outcome outcome = run({"m.yaml", "--set", "measurement.rounds=2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("? the median is not known to 2.0 % after 2 rounds"));
}

TEST_F(Measured, AFailureIsReportedLosesNothingAndIsTriedAgain) {
  write("broken", "#!/bin/sh\necho rank 1 failed at 1F0: no more room\nexit 4\n");
  std::filesystem::permissions(folder_ / "broken", std::filesystem::perms::owner_all);
  setenv("PFEIFE_RUN", (folder_ / "broken").c_str(), 1);
  const Outcome failed = run({"m.yaml"});
  EXPECT_EQ(failed.code, 4);
  EXPECT_THAT(failed.err, HasSubstr("case devices=2,microbatches=3, plan planned was not measured: "
                                    "rank 1 failed at 1F0: no more room (exit code 4"));
  EXPECT_GT(std::stod(result("results/m", "planned", "simulate_ms")), 0);
  EXPECT_EQ(result("results/m", "planned", "measure_ms"), "");
  EXPECT_THAT(read("results/m/report.html"), HasSubstr(R"("failure":"rank 1 failed)"));
  EXPECT_THAT(run({"m.yaml", "--list"}).out, HasSubstr("to do"));
  setenv("PFEIFE_RUN", PFEIFE_RUN, 1);
  EXPECT_EQ(run({"m.yaml"}).code, 0);
  EXPECT_GT(std::stod(result("results/m", "planned", "measure_ms")), 0);
}

TEST_F(Measured, ThePlanRunsByItself) {
  ASSERT_EQ(run({"m.yaml"}).code, 0);
  const std::string command = std::string(PFEIFE_RUN) + " check " +
                              (folder_ / "results/m" / kCase / "planned/plan.yaml").string() +
                              " --model " + (folder_ / "models/tiny_gpt.pt2").string() +
                              " --fp64 >" + (folder_ / "check.txt").string() + " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << read("check.txt");
  EXPECT_THAT(read("check.txt"), HasSubstr("equal those of the unsplit model"));
}

// The same steps as measurement.csv and as ranges of torch.profiler, which compare reads.
TEST_F(Measured, TracesInTorchsFormatSayWhatTheMeasurementSays) {
  ASSERT_EQ(run({"m.yaml", "--set", "engines=[estimate]"}).code, 0);
  const std::filesystem::path plan = folder_ / "results/m" / kCase / "planned";
  const std::string command = std::string(PFEIFE_RUN) + " train " + (plan / "plan.yaml").string() +
                              " --model " + (folder_ / "models/tiny_gpt.pt2").string() +
                              " --steps 7 --out " + (folder_ / "m.csv").string() + " --traces " +
                              (folder_ / "traces").string() + " >" +
                              (folder_ / "train.txt").string() + " 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << read("train.txt");
  const std::vector<std::filesystem::path> traces{folder_ / "traces"};
  const RunOfPlan of = run_of_plan(plan, traces);
  const Measurement measured = read_measurement(folder_ / "m.csv", of.graph);
  const Comparison comparison = compare_with_traces(plan, traces);
  EXPECT_EQ(comparison.measurement.steps.size(), 5u);
  // The ranks share a clock, which the reader cannot know: it may shift one by the error it states.
  Nanoseconds clocks{0};
  for (const ClockOffset& clock : comparison.run.clocks) clocks = std::max(clocks, clock.error);
  EXPECT_LE(abs(comparison.measurement.step() - measured.step()), clocks);
  EXPECT_EQ(comparison.measurement.durations, measured.durations);
}

/// [step] the loss, of a measurement's file.
std::vector<double> losses_in(const std::string& csv) {
  std::vector<double> losses;
  std::istringstream lines(csv.substr(csv.find("step,counts,time_ns,loss,round\n")));
  std::string line;
  for (std::getline(lines, line); std::getline(lines, line) && !line.empty();) {
    std::istringstream cells(line);
    for (int column = 0; column < 4; ++column) std::getline(cells, line, ',');
    losses.push_back(std::stod(line));
  }
  return losses;
}

/// In the place of pfeife-run: a share of a profile is the first profile with all times doubled.
void slow_down_after_profile(const std::filesystem::path& folder) {
  const std::string first = (folder / "first_profile").string();
  std::ofstream(folder / "slower")
      << "#!/bin/sh\nout=; share=; all=\"$*\"\nwhile [ $# -gt 0 ]; do case $1 in --out) out=$2;; "
         "--samples) share=yes;; esac; shift; done\nif [ -n \"$share\" ]; then awk '{ "
         "made=\"\"; while (match($0, /[0-9]+ ns/)) { made = made substr($0, 1, RSTART - 1) 2 * "
         "substr($0, RSTART, RLENGTH - 3) \" ns\"; $0 = substr($0, RSTART + RLENGTH) } print made "
         "$0 }' "
      << first << " > $out; exit; fi\n"
      << PFEIFE_RUN << " $all || exit 4\ncase $all in profile*) cp $out " << first << ";; esac\n";
  std::filesystem::permissions(folder / "slower", std::filesystem::perms::owner_all);
  setenv("PFEIFE_RUN", (folder / "slower").c_str(), 1);
}

// On a machine that became half as fast after it was profiled a step takes twice as long but for
// the messages. The plan stays the one of the first profile.
TEST_F(Measured, AProfileOfTheSameRoundsSaysWhatTheMachineHasBecome) {
  slow_down_after_profile(folder_);
  const Outcome outcome =
      run({"m.yaml", "--set", "profile=measure", "--set", "measurement.rounds=2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("anew: estimated with a profile"));
  for (const PlanRecord& plan : record().plans) {
    ASSERT_TRUE(plan.measured && plan.measured->anew && plan.row.estimate);
    const double slower = milliseconds(*plan.measured->anew) / milliseconds(*plan.row.estimate);
    EXPECT_GT(slower, 1.7);
    EXPECT_LE(slower, 2.0);
  }
  ASSERT_EQ(run({"m.yaml", "--set", "profile=measure"}).code, 0);
  EXPECT_FALSE(record().plans.front().measured->anew) << "one round has no profile of its own";
}

// From a profile to the table. One device has the unsplit model; the norm of both ranks together is
// that of its gradients, so their losses are its losses to the rounding of sums in another order.
TEST_F(Measured, ClippingIsPlannedMeasuredAndThatOfTheUnsplitModel) {
  write("clip.yaml",
        "version: 1\nmodel: models/tiny_gpt.pt2\ncluster: clusters/laptop.yaml\n"
        "training: {clip_norm: 0.1, optimizer: sgd}\nprofile: measure\n"
        "cases: {devices: [1, 2], microbatches: 3}\n"
        "plan: {families: [1f1b]}\nbaselines: []\n"
        "engines: [estimate, simulate, measure]\nmeasurement: {steps: 5, rounds: 1}\n");
  const Outcome outcome = run({"clip.yaml"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::filesystem::path folder = folder_ / "results/clip" / kCase / "planned";
  std::istringstream rows(read(folder / "schedule.csv"));
  std::size_t count = 0;
  for (std::string row; std::getline(rows, row); ++count) {
    ASSERT_NE(row.find("REDUCE_NORM"), std::string::npos) << row;
    EXPECT_LT(row.find("REDUCE_NORM"), row.find("OPTIMIZER_STEP")) << row;
  }
  EXPECT_EQ(count, 2u);
  EXPECT_THAT(read(folder / "measurement.csv"), HasSubstr("REDUCE_NORM"));
  const Judgement judged = certify(folder);
  EXPECT_TRUE(judged.proven) << judged.text;
  const auto losses = losses_in(read(folder / "measurement.csv"));
  const auto unsplit =
      losses_in(read(folder_ / "results/clip/devices=1,microbatches=3/planned/measurement.csv"));
  ASSERT_EQ(losses.size(), 5u);
  ASSERT_EQ(unsplit.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(losses[i], unsplit[i], 1e-5) << i;
  const std::string command =
      std::string(PFEIFE_RUN) + " train " + (folder / "plan.yaml").string() + " --model " +
      (folder_ / "models/tiny_gpt.pt2").string() + " --clip-norm 0 --steps 5 --out " +
      (folder_ / "free.csv").string() + " >" + (folder_ / "train.txt").string() + " 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << read("train.txt");
  EXPECT_GT(std::abs(losses_in(read("free.csv")).back() - losses.back()), 1e-4) << "it clips";
}

TEST_F(Measured, WithoutPfeifeRunItSaysWhatToDoBeforeAnythingStarts) {
  setenv("PFEIFE_RUN", "/nowhere/pfeife-run", 1);
  EXPECT_THAT(refusal(kConfig), HasSubstr("PFEIFE_RUN: is \"/nowhere/pfeife-run\""));
}

TEST_F(Measured, WhatThisMachineCannotRunIsRefusedBeforeAnythingStarts) {
  const std::string model = "version: 1\nmodel: models/tiny_gpt.pt2\n";
  EXPECT_THAT(refusal(model + "cluster: clusters/a100_sxm4_40gb_x8.yaml\ncases: {devices: 1}\n"
                              "engines: [measure]\n"),
              HasSubstr("has devices of kind a100"));
  std::string wide = read("clusters/laptop.yaml");
  wide.replace(wide.find("count: 2"), 8, "count: 1024");
  wide.replace(wide.find("between: [[0, 1]]"), 17, "per: device");
  write("wide.yaml", wide);
  EXPECT_THAT(refusal(model + "cluster: wide.yaml\ncases: {devices: 1024}\nengines: [measure]\n"),
              HasSubstr("a process on a processor of its own"));
}

/// What the only profile in the folder says; above 0.
Nanoseconds executor_overhead_of(const std::filesystem::path& folder) {
  Nanoseconds found{0};
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (const std::string name = entry.path().filename().string();
        name.starts_with("tiny_gpt") && name.ends_with(".yaml"))
      found = read_profiled_runtime(entry.path()).executor_overhead;
  EXPECT_GT(found, Nanoseconds{0});
  return found;
}

// The shipped config, from nothing: profile and links of this machine, plan, run, comparison.
TEST_F(Measured, TheTinyGptIsProfiledPlannedRunAndCompared) {
  const Outcome outcome =
      run({(configs() / "tiny_gpt_cpu.yaml").string(), "--set", "cases.microbatches=4", "--set",
           "measurement.steps=4", "--set", "measurement.rounds=1", "--out", "tiny"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("measuring links between processes on this machine"));
  EXPECT_THAT(outcome.err, HasSubstr("measuring the operators of models/tiny_gpt.pt2 in fp32"));
  const CaseRecord found = case_from_json(read("tiny/devices=2,microbatches=4/case.json")).value();
  EXPECT_THAT(found.notes, ::testing::Contains(HasSubstr("times measured, ")));
  EXPECT_EQ(YamlDocument::parse(found.resolved, "resolved")
                .root()
                .at("simulation")
                .at("launch_overhead")
                .as_duration(),
            executor_overhead_of(folder_ / "tiny/measured"));
  for (const PlanRecord& plan : found.plans) {
    ASSERT_EQ(plan.measured->peak_memory.size(), 2u);
    ASSERT_TRUE(plan.row.simulate_p95) << "by the variation that the profile has found";
    EXPECT_GT(*plan.row.simulate_p95, *plan.row.simulate);
    for (std::size_t r = 0; r < 2; ++r)
      // What the allocator counts is within a factor of two of what was planned.
      EXPECT_LT(std::abs(relative_error(static_cast<double>(plan.need.allocated[r].value),
                                        static_cast<double>(plan.measured->peak_memory[r].value))),
                0.5)
          << plan.row.plan << ", rank " << r;
  }
  const Outcome again =
      run({(configs() / "tiny_gpt_cpu.yaml").string(), "--set", "cases.microbatches=4", "--set",
           "measurement.steps=4", "--set", "measurement.rounds=1", "--out", "tiny"});
  EXPECT_THAT(again.err, Not(HasSubstr("measuring")));
  EXPECT_THAT(again.err, HasSubstr("0 of 1 cases computed"));
}

/// Processes that are ranks of a training whose files are in `folder`.
std::size_t running_ranks(const std::filesystem::path& folder) {
  std::size_t ranks = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    ranks += text.find(folder.string()) != std::string::npos &&
             text.find("PFEIFE_MEETING=") != std::string::npos;
  }
  return ranks;
}

// Ctrl-C: pfeife-exp, the launcher and the ranks end, and no file of theirs is left.
TEST_F(Measured, AnInterruptionEndsTheRanks) {
  write("long.yaml", kConfig);
  const int process = start({"long.yaml", "--set", "measurement.steps=100000"});
  for (int i = 0; i < 600 && running_ranks(folder_) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_GT(running_ranks(folder_), 0u);  // and the program is stopped all the same
  kill(process, SIGINT);
  EXPECT_EQ(wait(process).signal, SIGINT);
  EXPECT_THAT(read("stderr"), HasSubstr("interrupted; finished cases are kept"));
  EXPECT_THAT(files("tmp"), IsEmpty());
  EXPECT_EQ(running_ranks(folder_), 0u);
}

}  // namespace
}  // namespace pfeife
