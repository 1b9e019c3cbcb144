// Timed stages: pipelines of 4, 8 and 16 ranks on whatever cores there are take as long as the
// simulation says. (Without contention simulator and estimator agree to the nanosecond: tests/sim.)
//
// The tolerance is 1 % of the step, always; two runs within it are enough. What a busy machine adds
// to the waits themselves is known: the longest path with every wait as long as it really was. A
// point is wrong if all of its four runs are beyond the tolerance although their waits alone took
// less than 0.8 % too long; if it is neither right nor wrong, it says nothing and is reported as
// skipped.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <mutex>
#include <thread>

#include "planner/cost/estimator.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/io/results/chrome_trace.h"
#include "planner/ir/lower.h"
#include "planner/schedules/families.h"
#include "runtime/launch/join.h"
#include "runtime/launch/rank_threads.h"
#include "runtime/timed/timed_run.h"
#include "tests/runtime/pipelines.h"

namespace pfeife {
namespace {

using std::chrono::milliseconds;

constexpr int kRuns = 4;
constexpr double kTolerance = 0.01;
constexpr double kDisturbed = 0.008;

/// Unequal stages of 48 ms and more an action (an idle virtual machine may wake 0.2 ms late), 64
/// KiB to 1 MiB a message, a skip over two stages, one parameter shared by the first and the last
/// stage if they are on two ranks.
StageCosts uneven_costs(const Placement& placement) {
  const std::size_t stages = placement.stages();
  const StageId last{stages - 1};
  StageCosts costs = uniform_costs(stages, {}, {}, {}, {});
  for (std::size_t s = 0; s < stages; ++s) {
    StageCost& cost = costs.stages[s];
    cost.forward = milliseconds(48 + 3 * (s % 3));
    cost.backward_input = milliseconds(51 + 3 * (s % 2));
    cost.backward_weight = milliseconds(48 + 3 * ((s + 1) % 2));
    cost.optimizer = milliseconds(48);
  }
  costs.pairs.push_back({StageId{1}, StageId{3}, {}, {}, {}, {}});
  std::ranges::sort(costs.pairs, {}, [](const StagePair& p) { return std::pair{p.from, p.to}; });
  if (placement.rank(StageId{0}) != placement.rank(last))
    costs.reductions.push_back({{StageId{0}, last}, Bytes{4096}, milliseconds(45)});
  for (StagePair& pair : costs.pairs) {
    pair.bytes = Bytes{65536 << (pair.from.value % 5)};
    pair.gradient_bytes = pair.bytes;
    pair.forward_time = milliseconds(2 + pair.from.value % 3);
    pair.backward_time = milliseconds(3);
  }
  return costs;
}

struct Point {
  TimedPipeline pipeline;
  Nanoseconds predicted{0};
};

Point point_of(const ScheduleSpec& spec) {
  const Placement placement = placement_for(spec);
  const StageCosts costs = uneven_costs(placement);
  Point point{{dependencies(lower(generate(spec), costs, placement), stage_graph(costs), placement,
                            Semantics{}),
               placement,
               costs,
               {}},
              {}};
  const DependencyGraph& graph = point.pipeline.tasks;
  const auto by_slot = slot_durations(graph.slots, costs);
  for (const Task& task : graph.tasks) point.pipeline.durations.push_back(by_slot[task.slot]);
  point.predicted = step_time(std::get<Trace>(estimate(graph, costs)));
  return point;
}

Trace run_on_threads(const TimedPipeline& pipeline) {
  Trace trace;
  run_ranks(pipeline.placement.ranks(), at::kCPU, [&](RankId rank, Transport& transport) {
    TimedMeasurement own = measure_timed(pipeline, rank, 1, {}, transport);
    if (rank == RankId{0}) trace = std::move(own.trace);
  });
  return trace;
}

/// Every rank by itself, its messages through sockets.
Trace run_over_sockets(const TimedPipeline& pipeline) {
  testing::MeetingOfThreads meeting;
  Trace trace;
  run_ranks(pipeline.placement.ranks(), at::kCPU, [&](RankId rank, Transport&) {
    const auto transport = join_by_sockets(meeting, rank, pipeline.placement.ranks());
    TimedMeasurement own = measure_timed(pipeline, rank, 1, {}, *transport);
    if (rank == RankId{0}) trace = std::move(own.trace);
  });
  return trace;
}

/// How long the step would have taken with every wait as long as it really was.
Nanoseconds replayed(const DependencyGraph& graph, const Trace& trace) {
  std::vector<Nanoseconds> ends(graph.size());
  for (const TaskId t : task_order(graph).order) {
    Nanoseconds start{0};
    for (const Edge& edge : graph.edges_into(t)) start = std::max(start, ends[edge.from.index()]);
    const Event& event = trace.events[t.index()];
    ends[t.index()] = start + (event.end - event.start);
  }
  return *std::ranges::max_element(ends);
}

double beyond(Nanoseconds measured, Nanoseconds predicted) {
  return static_cast<double>((measured - predicted).count()) /
         static_cast<double>(predicted.count());
}

enum class Verdict { Right, Wrong, Disturbed };

using Run = Trace (*)(const TimedPipeline&);

Verdict judge(const std::string& name, const Point& point, Run run) {
  int right = 0, wrong = 0;
  for (int i = 0; i < kRuns; ++i) {
    const Trace trace = run(point.pipeline);
    const double error = beyond(step_time(trace), point.predicted);
    const double in_waits = beyond(replayed(point.pipeline.tasks, trace), point.predicted);
    std::printf("%s: measured %.3f ms, estimated %.3f ms: %+.2f %%, of which waits %+.2f %%\n",
                name.c_str(), seconds(step_time(trace)) * 1e3, seconds(point.predicted) * 1e3,
                error * 100, in_waits * 100);
    EXPECT_EQ(broken_edge(point.pipeline.tasks, trace), "") << name;
    EXPECT_GE(error, 0) << name << " took less than its waits";
    right += error <= kTolerance;
    wrong += error > kTolerance && in_waits <= kDisturbed;
    if (right == 2) return Verdict::Right;
  }
  return wrong == kRuns ? Verdict::Wrong : Verdict::Disturbed;
}

/// A point of each family: twice as many microbatches as ranks; above 8 ranks as many as ranks,
/// where the family accepts that.
std::vector<ScheduleSpec> points(std::size_t ranks) {
  std::vector<ScheduleSpec> found;
  for (const Family& family : families()) {
    ScheduleSpec spec{family.name, ranks, ranks <= 8 ? 2 * ranks : ranks, 1, {}, {}};
    while (refusal(spec) && spec.loops < 2) ++spec.loops;
    if (refusal(spec)) spec.microbatches = 2 * ranks;
    if (spec.family == "1f1b" || spec.family == "looped") spec.prefetch = {1};
    EXPECT_FALSE(refusal(spec)) << family.name;
    found.push_back(spec);
  }
  return found;
}

/// Two points at a time: they sleep nearly always.
std::map<std::string, Verdict> judge_all(const std::vector<ScheduleSpec>& specs, Run run) {
  std::map<std::string, Verdict> verdicts;
  std::mutex mutex;
  std::size_t next = 0;
  const auto work = [&] {
    for (std::unique_lock lock(mutex); next < specs.size();) {
      const ScheduleSpec& spec = specs[next++];
      lock.unlock();
      const Verdict verdict = judge(testing::name_of(spec), point_of(spec), run);
      lock.lock();
      verdicts[testing::name_of(spec)] = verdict;
    }
  };
  std::thread other(work);
  work();
  other.join();
  return verdicts;
}

void expect_right(const std::map<std::string, Verdict>& verdicts) {
  std::string disturbed;
  for (const auto& [name, verdict] : verdicts) {
    EXPECT_NE(verdict, Verdict::Wrong) << name;
    if (verdict == Verdict::Disturbed) disturbed += " " + name + ";";
  }
  if (!disturbed.empty()) GTEST_SKIP() << "this machine was too busy to wait:" << disturbed;
}

class TimedStages : public ::testing::TestWithParam<std::size_t> {};

TEST_P(TimedStages, TakeAsLongAsSimulatedInEveryFamily) {
  expect_right(judge_all(points(GetParam()), run_on_threads));
}

INSTANTIATE_TEST_SUITE_P(Ranks, TimedStages, ::testing::Values(4, 8, 16));

TEST(TimedStagesOverSockets, TakeAsLongAsSimulated) {
  expect_right(judge_all({{"1f1b", 8, 8, 1, {}, {}}, {"zbv", 4, 8, 2, {}, {}}}, run_over_sockets));
}

/// The figure in front of `what`.
double figure(const std::string& text, const std::string& what) {
  const std::size_t end = text.find(" " + what), begin = text.rfind(' ', end - 1) + 1;
  return end == std::string::npos ? 0 : std::stod(text.substr(begin, end - begin));
}

// As a user does it: a trace.json with estimated times, ranks that are processes.
TEST(PfeifeRunTimed, TakesAsLongAsTheTraceEstimatesOnProcesses) {
  const ScheduleSpec spec{"1f1b", 8, 16, 1, {}, {}};
  const testing::Model model("tiny_gpt");
  const Pipeline pipeline = model.pipeline(spec);
  StageCosts costs = unit_costs(pipeline.graph, pipeline.split, pipeline.placement);
  for (StageCost& cost : costs.stages)
    cost.forward = cost.backward_input = cost.backward_weight = cost.optimizer = milliseconds(48);
  for (StagePair& pair : costs.pairs) pair.forward_time = pair.backward_time = milliseconds(2);
  const Trace estimated = std::get<Trace>(estimate(pipeline.tasks, costs));

  std::string folder = ::testing::TempDir() + "timed_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream trace(folder + "/trace.json");
  write_chrome_trace(trace, estimated, "waits");
  trace.close();
  write_file(folder + "/schedule.csv", write_schedule(generate(spec)));
  std::string command = PFEIFE_RUN " train --model " + testing::model_path("tiny_gpt").string() +
                        " --schedule " + folder + "/schedule.csv --timed=" + folder +
                        "/trace.json --steps 3 --cuts '";
  for (const NodeId cut : model.even_cuts(spec.stages())) command += to_string(cut) + " ";
  const double expected = seconds(step_time(estimated)) * 1e3;
  double measured = 0;
  std::string text;
  for (int attempt = 0; attempt < kRuns && !(measured > 0 && measured <= 1.01 * expected);
       ++attempt) {
    text.clear();
    FILE* pipe = popen((command + "' 2>&1").c_str(), "r");
    char line[512];
    while (fgets(line, sizeof line, pipe) != nullptr) text += line;
    ASSERT_EQ(pclose(pipe), 0) << text;
    std::printf("%s", text.c_str());
    EXPECT_NEAR(figure(text, "ms estimated"), expected, 1e-3) << text;
    measured = figure(text, "ms measured");
    EXPECT_GE(measured, expected);
  }
  std::filesystem::remove_all(folder);
  if (measured > 1.01 * expected && figure(text, "us late") > 80)
    GTEST_SKIP() << "this machine was too busy to wait: " << text;
  EXPECT_LE(measured, 1.01 * expected) << text;
}

}  // namespace
}  // namespace pfeife
