// A sweep that is killed, split, interrupted or repeated ends with the same bytes as one that is
// not.
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <regex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "experiments/show/progress.h"
#include "experiments/sweep/first_answer.h"
#include "planner/io/files/part_locks.h"
#include "planner/ir/result/case_files.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

class Sweep : public ProgramTest {
 protected:
  static constexpr std::size_t kCases = 40;
  Sweep() {
    std::filesystem::copy_file(configs() / "tables" / "two_stage.csv", folder_ / "layers.csv");
    std::filesystem::copy_file(configs() / "clusters" / "laptop.yaml", folder_ / "laptop.yaml");
    std::string sizes;
    for (std::size_t n = 1; n <= kCases; ++n) sizes += (n > 1 ? ", " : "") + std::to_string(n);
    write("sweep.yaml",
          "version: 1\nmodel: layers.csv\ncluster: laptop.yaml\n"
          "cases: {devices: 2, microbatches: 2, training.microbatch_size: [" +
              sizes + "]}\nplan: {stages_per_rank: 1}\n");
  }

  std::size_t finished_cases(const std::string& out) const {
    std::size_t count = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / out, error))
      count += std::filesystem::exists(entry.path() / "files.sha256") ? 1 : 0;
    return count;
  }

  /// Starts a sweep into `out` and sends `signal` once the first case is finished; again, should
  /// the sweep have been faster than this test.
  Outcome disturb(const std::string& out, int signal) const {
    for (int attempt = 0; attempt < 50; ++attempt) {
      std::filesystem::remove_all(folder_ / out);
      const int process = start({"sweep.yaml", "--out", out, "--jobs", "1"});
      while (finished_cases(out) == 0) std::this_thread::sleep_for(std::chrono::microseconds(500));
      kill(process, signal);
      const Outcome outcome = wait(process);
      if (outcome.signal == signal && finished_cases(out) < kCases) return outcome;
    }
    ADD_FAILURE() << "never caught in the middle";
    return {};
  }

  void expect_equal(const std::string& a, const std::string& b) const {
    const auto left = files(a), right = files(b);
    ASSERT_EQ(left.size(), right.size());
    for (const auto& [name, text] : left) {
      const auto other = right.find(name);
      ASSERT_NE(other, right.end()) << name;
      // Not EXPECT_EQ, which would look for the shortest edit between two long pages.
      const auto at =
          std::mismatch(text.begin(), text.end(), other->second.begin(), other->second.end()).first;
      EXPECT_TRUE(text == other->second) << name << " differs at byte " << at - text.begin();
    }
  }
};

TEST_F(Sweep, KilledInTheMiddleIsCompletedByTheNextRunByteForByte) {
  ASSERT_EQ(disturb("killed", SIGKILL).signal, SIGKILL);
  const std::size_t before = finished_cases("killed");
  ASSERT_LT(before, kCases);
  write("killed/.pfeife-tmp-1-results.csv", "what a killed process may leave");
  const Outcome again = run({"sweep.yaml", "--out", "killed"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr(std::to_string(kCases - before) + " of 40 cases computed"));
  ASSERT_EQ(run({"sweep.yaml", "--out", "whole"}).code, 0);
  expect_equal("killed", "whole");
}

TEST_F(Sweep, InterruptedSaysHowToGoOn) {
  const Outcome outcome = disturb("out", SIGINT);
  EXPECT_EQ(outcome.signal, SIGINT);
  EXPECT_THAT(
      read("stderr"),
      HasSubstr("interrupted; finished cases are kept, the same command goes on with the rest"));
  ASSERT_EQ(run({"sweep.yaml", "--out", "out"}).code, 0);
  EXPECT_EQ(finished_cases("out"), kCases);
}

/// The processes that `process` has started.
std::vector<int> children_of(int process) {
  const std::string id = std::to_string(process);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  return {std::istream_iterator<int>(file), {}};
}

TEST_F(Sweep, ACaseWhoseProcessDiesHasFailedAndTheOthersGoOn) {
  const std::vector<std::string> arguments{"sweep.yaml",
                                           "--out",
                                           "out",
                                           "--set",
                                           "cases.microbatches=2000",
                                           "--set",
                                           "cases.training.microbatch_size=[1, 2, 3]",
                                           "--jobs",
                                           "1"};
  const int process = start(arguments);
  std::vector<int> children;
  for (int k = 0; k < 20000 && (children = children_of(process)).empty(); ++k)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_FALSE(children.empty());
  kill(children.front(), SIGSEGV);
  const Outcome outcome = wait(process);
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(finished_cases("out"), 2U);
  EXPECT_THAT(read("stderr"),
              HasSubstr("pfeife-exp: case devices=2,microbatches=2000,training.microbatch_size=1 "
                        "failed: its process was killed by signal 11"));
  const std::string csv = read("out/results.csv");
  EXPECT_THAT(csv, HasSubstr("microbatch_size=2"));
  EXPECT_THAT(csv, HasSubstr("microbatch_size=3"));
  // The next call has only that one to do, and then all is as if nothing had happened.
  const Outcome again = run(arguments);
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, HasSubstr("1 of 3 cases computed"));
}

TEST_F(Sweep, RunAgainComputesAndWritesNothing) {
  ASSERT_EQ(run({"sweep.yaml", "--out", "out"}).code, 0);
  std::map<std::string, std::filesystem::file_time_type> times;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "out"))
    times[entry.path().string()] = entry.last_write_time();
  const Outcome again = run({"sweep.yaml", "--out", "out"});
  EXPECT_THAT(again.err, HasSubstr("0 of 40 cases computed"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "out"))
    EXPECT_EQ(times.at(entry.path().string()), entry.last_write_time()) << entry.path();
}

// Watched: a table with little effort, then the bytes that a call has which nobody watches. What is
// there already needs no first table, nor does a config that says how much effort is meant.
TEST_F(Sweep, WatchedItShowsATableFirstAndEndsWithTheSameBytes) {
  const Outcome plain = run({"sweep.yaml", "--out", "plain"});
  const Outcome watched = run({"sweep.yaml", "--out", "watched", "--watch"});
  EXPECT_EQ(watched.code, 0);
  const std::size_t note = watched.out.find("so far, after ");
  ASSERT_NE(note, std::string::npos) << watched.out;
  EXPECT_LT(watched.out.find("step ms"), note);
  EXPECT_LT(watched.out.find("~ planned so far"), note) << "marks what may still get faster";
  EXPECT_NE(watched.out.find("step ms", note), std::string::npos);
  EXPECT_TRUE(watched.out.ends_with(std::regex_replace(plain.out, std::regex("plain"), "watched")));
  EXPECT_THAT(watched.err, HasSubstr("no plan is faster than after "));
  expect_equal("plain", "watched");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"sweep.yaml", "--out", "watched", "--watch"},
        {"sweep.yaml", "--out", "given", "--watch", "--set", "plan.iterations=20"}})
    EXPECT_EQ(run(arguments).out.find("so far"), std::string::npos);
}

// The first case has its final plan when Ctrl-C comes: it keeps that, the others those of the first
// table, and results.csv and the report are of what stands in the folders.
TEST_F(Sweep, InterruptedWhileBetterPlansAreSearchedItWritesWhatIsThere) {
  const auto arguments = [](const std::string& out, const std::string& more) {
    std::vector<std::string> words{"sweep.yaml",
                                   "--out",
                                   out,
                                   "--jobs",
                                   "1",
                                   "--set",
                                   "cases.microbatches=500",
                                   "--set",
                                   "cases.training.microbatch_size=[1, 2, 3]"};
    if (more == "--watch") words.push_back(more);
    if (more.starts_with("plan.")) words.insert(words.end(), {"--set", more});
    return words;
  };
  const auto folder = [](const std::string& out, int size) {
    return out + "/devices=2,microbatches=500,training.microbatch_size=" + std::to_string(size);
  };
  ASSERT_EQ(run(arguments("whole", "")).code, 0);
  ASSERT_EQ(run(arguments("brief", "plan.iterations=150")).code, 0);
  Outcome outcome;
  for (int attempt = 0; attempt < 50 && outcome.signal != SIGINT; ++attempt) {
    std::filesystem::remove_all(folder_ / "out");
    const int process = start(arguments("out", "--watch"));
    const auto written = [&](const std::string& in) {
      std::error_code missing;
      return std::filesystem::last_write_time(folder_ / in / "files.sha256", missing);
    };
    const auto a_moment = std::chrono::milliseconds(1);
    while (!std::filesystem::exists(folder_ / "out" / "files.sha256"))
      std::this_thread::sleep_for(a_moment);
    const auto gathered = written("out");
    while (written(folder("out", 1)) < gathered && written("out") == gathered)
      std::this_thread::sleep_for(a_moment);
    kill(process, SIGINT);
    outcome = wait(process);
  }
  ASSERT_EQ(outcome.signal, SIGINT);
  EXPECT_THAT(read("stderr"), HasSubstr("interrupted; 2 of 3 plans may become faster"));
  const std::string csv = read("out/results.csv"), page = read("out/report.html");
  for (int size = 1; size <= 3; ++size) {
    const std::string from = size == 1 ? "whole" : "brief";
    EXPECT_TRUE(files(folder("out", size)) == files(folder(from, size))) << size;
    EXPECT_THAT(csv, HasSubstr("training.microbatch_size=" + std::to_string(size)));
  }
  for (const char* effort : {"iterations: 150", "iterations: default"})
    EXPECT_NE(page.find(effort), std::string::npos) << effort;
  ASSERT_EQ(run(arguments("out", "--watch")).code, 0);
  expect_equal("out", "whole");
}

/// A case whose plan takes so long, simulated, and is so far above its bound.
CaseRecord timed_case(const std::string& name, int milliseconds, double gap) {
  CaseRecord record;
  record.name = name;
  record.plans.resize(1);
  ResultRow& row = record.plans[0].row;
  row.family = "zb_greedy", row.stages_per_rank = 3, row.feasible = true;
  row.estimate = row.simulate = std::chrono::milliseconds(milliseconds);
  row.gap = row.simulate_gap = gap;
  return record;
}

// 1010 ms after 20 s, 1000 ms at the end: 1.0 %.
TEST(FirstAnswer, SaysWhatFurtherEffortWasWorth) {
  SweepResult first, last;
  first.cases = {timed_case("a", 1010, 0.02)};
  last.cases = {timed_case("a", 1000, 0.01)};
  EXPECT_EQ(gained(first, last, 20.2), "zb_greedy V=3: 1.0 % since 20 s");
  EXPECT_EQ(gained(last, last, 20.2), "no plan is faster than after 20 s");
  first.cases.push_back(timed_case("b", 1002, 0));
  last.cases.push_back(timed_case("b", 1000, 0));
  EXPECT_EQ(gained(first, last, 20.2),
            "zb_greedy V=3 (a): 1.0 % since 20 s; 2 of 2 plans are faster, none by more");
}

// Nothing more can come of a case that is at its bound, nor of one that had all effort.
TEST(FirstAnswer, MarksWhatMayStillGetFaster) {
  SweepResult result;
  result.cases = {timed_case("a", 1010, 0.02), timed_case("b", 1000, 0), timed_case("c", 900, 0.1)};
  Experiment whole, first;
  for (const CaseRecord& record : result.cases) {
    whole.cases.emplace_back().name = record.name;
    first.cases.emplace_back().name = record.name;
    first.cases.back().plan.iterations = record.name == "c" ? 0 : kFirstEffort;
  }
  EXPECT_THAT(still_moving(result, first, whole), testing::ElementsAre("a"));
}

TEST_F(Sweep, ComputesAgainWhatAnInputChanged) {
  ASSERT_EQ(run({"sweep.yaml", "--out", "out", "--set", "cases.microbatches=[3, 4]", "--set",
                 "cases.training.microbatch_size=1"})
                .code,
            0);
  write("laptop.yaml", read("laptop.yaml") + "# another byte\n");
  EXPECT_THAT(run({"sweep.yaml", "--out", "out", "--set", "cases.microbatches=[3, 4]", "--set",
                   "cases.training.microbatch_size=1"})
                  .err,
              HasSubstr("2 of 2 cases computed"));
  EXPECT_THAT(run({"sweep.yaml", "--out", "out", "--set", "cases.microbatches=[4, 5]", "--set",
                   "cases.training.microbatch_size=1"})
                  .err,
              HasSubstr("1 of 2 cases computed"));
  EXPECT_THAT(run({"sweep.yaml", "--out", "out", "--set", "cases.microbatches=[4, 5]", "--set",
                   "cases.training.microbatch_size=1", "--force"})
                  .err,
              HasSubstr("2 of 2 cases computed"));
}

TEST_F(Sweep, ShardsAreGatheredByteForByte) {
  for (const char* shard : {"1/3", "3/3", "2/3"}) {
    const Outcome outcome = run({"sweep.yaml", "--out", "shards", "--shard", shard});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "shards" / "results.csv"));
  }
  EXPECT_THAT(run({"sweep.yaml", "--out", "shards"}).err, HasSubstr("0 of 40 cases computed"));
  ASSERT_EQ(run({"sweep.yaml", "--out", "whole"}).code, 0);
  expect_equal("shards", "whole");
}

TEST_F(Sweep, GivesTheSameBytesWithAnyNumberOfJobs) {
  ASSERT_EQ(run({"sweep.yaml", "--out", "one", "--jobs", "1"}).code, 0);
  ASSERT_EQ(run({"sweep.yaml", "--out", "five", "--jobs", "5"}).code, 0);
  expect_equal("one", "five");
}

TEST_F(Sweep, ListsWhatIsDoneAndWhatIsToDo) {
  ASSERT_EQ(run({"sweep.yaml", "--out", "out", "--set", "cases.training.microbatch_size=7"}).code,
            0);
  EXPECT_EQ(run({"sweep.yaml", "--out", "out", "--set", "cases.training.microbatch_size=[7, 8]",
                 "--list"})
                .out,
            "done      devices=2,microbatches=2,training.microbatch_size=7\n"
            "to do     devices=2,microbatches=2,training.microbatch_size=8\n");
}

TEST(ProgressBar, ShowsTheTimeTheRestAndTheCaseAndKeepsToTheLine) {
  using Seconds = TimeLeft::Seconds;
  EXPECT_EQ(progress_bar(0, 4, Seconds(0.2), {}, "a", "", 80),
            "[........................] 0/4 cases  a");
  EXPECT_EQ(progress_bar(0, 4, Seconds(12), {}, "a", "planning", 80),
            "[........................] 0/4 cases, 12 s  a: planning");
  EXPECT_EQ(progress_bar(1, 4, Seconds(40), Seconds(125), "a and 1 more", "planning, 30 %", 80),
            "[######..................] 1/4 cases, 40 s, 2:05 min left  planning, 30 %");
  EXPECT_EQ(progress_bar(2, 4, Seconds(89.4), Seconds(89.5), "a", "", 80),
            "[############............] 2/4 cases, 89 s, 1:30 min left  a");
  EXPECT_EQ(progress_bar(4, 4, Seconds(12'000), {}, "a long name of a case", "planning", 60),
            "[########] 4/4 cases, 3:20 h  a long name of a ..: planning");
  EXPECT_EQ(progress_bar(4, 4, Seconds(600), {}, "a long name of a case", "planning", 40),
            "[########] 4/4 cases, 10:00 min  plan..");
  for (std::size_t width = 20; width < 120; ++width)
    for (const char* doing : {"", "planning, 30 % (a smaller plan.iterations is faster)"})
      EXPECT_LT(
          progress_bar(7, 100, Seconds(600), Seconds(9000), std::string(200, 'x'), doing, width)
              .size(),
          width);
}

/// Second, and the share that was done by then.
using Recorded = std::vector<std::pair<double, double>>;

/// Searches that were recorded: the last fifth of one is half of its time, another rests at 42 %.
const Recorded kVitG14{{2, 0.0173},   {4, 0.052},    {5, 0.0944},   {7, 0.104},    {9, 0.1386},
                       {13, 0.1733},  {23, 0.1926},  {25, 0.2152},  {25, 0.346},   {33, 0.36},
                       {35, 0.409},   {39, 0.4226},  {45, 0.4716},  {51, 0.4771},  {53, 0.4798},
                       {59, 0.4852},  {63, 0.4989},  {65, 0.5309},  {66, 0.7158},  {71, 0.7356},
                       {76, 0.8049},  {77, 0.8088},  {80, 0.8319},  {81, 0.8358},  {85, 0.8435},
                       {87, 0.9128},  {115, 0.9205}, {122, 0.9243}, {136, 0.9282}, {146, 0.932},
                       {149, 0.9773}, {150, 0.9867}, {150, 1}};
const Recorded kGpt2Large{{1, 0.0186},  {2, 0.0418},  {3, 0.1441},  {5, 0.265},
                          {6, 0.3115},  {7, 0.3347},  {10, 0.4184}, {20, 0.4649},
                          {22, 0.5196}, {22, 0.9613}, {32, 0.9773}, {32, 1}};

/// What is said each half second of the second half of the time: how often, and the worst ratio to
/// what is left in truth.
struct Said {
  double share = 0, worst = 1;
};
Said said_of(const Recorded& recorded) {
  using Seconds = TimeLeft::Seconds;
  const double all = recorded.back().first;
  TimeLeft left;
  Said said;
  int looks = 0, shown = 0;
  auto next = recorded.begin();
  for (double now = 0.5; now < all - 1; now += 0.5) {
    for (; next != recorded.end() && next->first <= now; ++next)
      left.reached(next->second, Seconds(next->first));
    if (now < all / 2) continue;
    ++looks;
    const auto seconds = left.at(Seconds(now));
    if (!seconds) continue;
    ++shown;
    const double ratio = seconds->count() / (all - now);
    said.worst = std::max({said.worst, ratio, 1 / ratio});
  }
  said.share = static_cast<double>(shown) / looks;
  return said;
}

TEST(TimeLeft, IsSaidOfCasesThatTakeTheirTimeEachAndNotOfASearchThatRests) {
  EXPECT_LT(said_of(kVitG14).worst, 1.5);
  EXPECT_LT(said_of(kGpt2Large).worst, 1.5);
  for (const std::size_t cases : {30U, 100U}) {
    std::mt19937 random(static_cast<unsigned>(cases));
    Recorded recorded;
    double second = 0;
    for (std::size_t k = 1; k <= cases; ++k) {
      second += 2 + static_cast<double>(random() % 200) / 100;
      recorded.emplace_back(second, static_cast<double>(k) / static_cast<double>(cases));
    }
    const Said said = said_of(recorded);
    EXPECT_LT(said.worst, 1.5) << cases;
    EXPECT_GT(said.share, 0.5) << cases;
  }
}

// A twentieth every 15 s: after 150 s 150 are left, a second later 149, until what has been done by
// then no longer agrees with it.
TEST(TimeLeft, FallsWithTheClockWhileNothingIsDone) {
  using Seconds = TimeLeft::Seconds;
  TimeLeft left;
  EXPECT_FALSE(left.at(Seconds(5)));
  for (int part = 1; part <= 10; ++part) left.reached(0.05 * part, Seconds(15 * part));
  EXPECT_NEAR(left.at(Seconds(150))->count(), 150, 1e-9);
  EXPECT_NEAR(left.at(Seconds(151))->count(), 149, 1e-9);
  left.reached(0.5, Seconds(152));
  EXPECT_NEAR(left.at(Seconds(152))->count(), 148, 1e-9);
  EXPECT_FALSE(left.at(Seconds(200))) << "it took longer than was thought";
}

TEST_F(Sweep, QuietSaysNothingButTheTable) {
  const Outcome outcome =
      run({"sweep.yaml", "--out", "out", "--set", "cases.training.microbatch_size=7", "--quiet"});
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("gpipe"));
}

TEST_F(Sweep, ALogOfBothOutputsEndsWithTheClosingLine) {
  const std::string command =
      "cd '" + folder_.string() + "' && " + PFEIFE_EXP + " sweep.yaml --out out > both.txt 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  const std::string text = read("both.txt");
  EXPECT_LT(text.find("all are in out/results.csv"), text.find("cases computed in"));
  EXPECT_NE(text.find("cases computed in"), std::string::npos);
}

TEST_F(Sweep, WritesNowhereButInItsFolder) {
  std::filesystem::create_directories(folder_ / "deep");
  std::filesystem::rename(folder_ / "sweep.yaml", folder_ / "deep" / "...yaml");
  write("deep/..layers.csv", read("layers.csv"));
  std::filesystem::copy_file(folder_ / "laptop.yaml", folder_ / "deep" / "laptop.yaml");
  const auto before = files("");
  ASSERT_EQ(run({"deep/...yaml", "--set", "model=../layers.csv", "--set",
                 "cases.training.microbatch_size=7", "--set",
                 "cases.model=[../deep/../layers.csv, ..layers.csv]"})
                .code,
            0);
  for (const auto& [name, text] : files(""))
    EXPECT_TRUE(before.contains(name) || name.starts_with("results/_./")) << name;
}

TEST_F(Sweep, OneWriterAtATimeInAFolder) {
  std::filesystem::create_directories(folder_ / "out");
  {
    const FolderLock lock(folder_ / "out", true, "taken");
    const Outcome outcome = run({"sweep.yaml", "--out", "out"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("another pfeife-exp is writing to this folder"));
    EXPECT_EQ(finished_cases("out"), 0u);
  }
  const FolderLock shard(folder_ / "out", false, "taken");
  EXPECT_EQ(run({"sweep.yaml", "--out", "out", "--shard", "1/20"}).code, 0)
      << "shards may share a folder";
}

// Both ended with an error before: each removed what the other was writing.
TEST_F(Sweep, TheSameShardTwiceAtOnceIsComputedOnce) {
  const std::vector<std::string> shard{"sweep.yaml", "--out", "twice", "--shard", "1/2"};
  const int one = start(shard), other = start(shard);
  EXPECT_EQ(wait(one).code, 0);
  EXPECT_EQ(wait(other).code, 0) << read("stderr");
  EXPECT_EQ(finished_cases("twice"), 20u);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "twice" / ".pfeife-locks"));
  EXPECT_THAT(run(shard).err, HasSubstr("0 of 20 cases computed"));
}

TEST_F(Sweep, PlansThatACaseNoLongerHasGoAndNothingElseDoes) {
  const auto plan = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> arguments{"sweep.yaml", "--out", "out", "--set",
                                       "cases.training.microbatch_size=7"};
    for (const std::string& setting : settings)
      arguments.insert(arguments.end(), {"--set", setting});
    return run(arguments).code;
  };
  const std::filesystem::path folder = "out/devices=2,microbatches=2,training.microbatch_size=7";
  const std::string nothing_fits = "plan.reserve=4095.99 MiB";
  ASSERT_EQ(plan({"baselines=[gpipe, 1f1b]"}), 0);
  const auto both = files(folder);
  ASSERT_TRUE(both.contains("planned/schedule_torch.csv") && both.contains("gpipe/plan.yaml"));
  write(folder / "gpipe" / "notes.txt", "the user's");
  write(folder / "mine" / "plan.yaml", "the user's");
  write(folder / "planned" / "measurement.csv", "of an earlier run");

  ASSERT_EQ(plan({"baselines=1f1b", nothing_fits, "plan.recompute=none"}), 3);
  std::vector<std::string> names;
  for (const auto& [name, text] : files(folder)) names.push_back(name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre(
                         "case.json", "files.sha256", "traces.json", "plans.svg", "rank_times.svg",
                         "memory.svg", "partition.svg", "gpipe/notes.txt", "mine/plan.yaml",
                         "1f1b/plan.yaml", "1f1b/schedule.csv", "1f1b/stages.csv",
                         "1f1b/schedule_torch.csv", "1f1b/split_points.json", "1f1b/timeline.svg",
                         "1f1b/trace.json", "planned/certificate.txt"));

  // Back again, it is all there, byte for byte.
  ASSERT_EQ(plan({"baselines=[gpipe, 1f1b]"}), 0);
  auto again = files(folder);
  again.erase("gpipe/notes.txt"), again.erase("mine/plan.yaml");
  EXPECT_TRUE(again == both);
}

TEST_F(Sweep, ABaselineThatIsRenamedLeavesNothingBehind) {
  const auto plan = [&](const std::string& name) {
    return run({"sweep.yaml", "--out", "out", "--set", "cases.training.microbatch_size=7", "--set",
                "baselines=[{family: 1f1b, cuts: equal_layers, name: " + name + "}]"});
  };
  const std::filesystem::path folder = "out/devices=2,microbatches=2,training.microbatch_size=7";
  EXPECT_THAT(plan("Megatron").out, HasSubstr(" Megatron "));
  EXPECT_TRUE(files(folder).contains("Megatron/plan.yaml"));
  ASSERT_EQ(plan("ours").code, 0);
  EXPECT_TRUE(files(folder).contains("ours/plan.yaml"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / folder / "Megatron"));
}

/// A plan that is the input of the next run is not taken from under it.
TEST_F(Sweep, APlanThatIsGivenStaysWhereItIs) {
  const std::string one = "cases.training.microbatch_size=7";
  ASSERT_EQ(run({"sweep.yaml", "--out", "out", "--set", one, "--set", "baselines=1f1b"}).code, 0);
  const std::string given =
      "out/devices=2,microbatches=2,training.microbatch_size=7/1f1b/plan.yaml";
  const std::string before = read(given);
  const Outcome outcome = run({"sweep.yaml", "--out", "out", "--set", one, "--set", "baselines=[]",
                               "--set", "plan={file: \"" + given + "\"}"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read(given), before);
}

/// A file system of 96 KiB; skipped where this process may not mount one.
TEST_F(Sweep, AFullDiskIsReportedAndLeavesNothingHalfWritten) {
  std::filesystem::create_directories(folder_ / "disk");
  if (mount("tmpfs", (folder_ / "disk").c_str(), "tmpfs", 0, "size=96k") != 0)
    GTEST_SKIP() << "mounting a small file system is not allowed here";
  const Outcome outcome = run({"sweep.yaml", "--out", "disk/out"});
  const auto left = files("disk");
  umount((folder_ / "disk").c_str());
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(
      outcome.err,
      HasSubstr("No space left on device; free some space, or choose another folder with --out"));
  EXPECT_GT(left.size(), 0u);
  for (const auto& [name, text] : left) {
    EXPECT_THAT(name, ::testing::Not(HasSubstr(".pfeife-tmp-")));
    if (name.ends_with(".svg")) {
      EXPECT_THAT(text, ::testing::EndsWith("</svg>\n")) << name;
    }
    if (name.ends_with(".json")) {
      EXPECT_THAT(text, ::testing::EndsWith("}\n")) << name;
    }
  }
}

TEST_F(Sweep, ALimitOfFileSizesIsReportedAsAnErrorOfTheWrite) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Outcome outcome = run({"sweep.yaml", "--out", "out", "--quiet"});
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("File too large; raise the limit of file sizes (ulimit -f)"));
}

// With a key of the cluster replaced, a case has all of its files.
TEST_F(Sweep, NoBaselineIsCalledAsAFileOfTheCase) {
  const std::vector<std::string> arguments{"sweep.yaml",
                                           "--out",
                                           "out",
                                           "--set",
                                           "cases.training.microbatch_size=1",
                                           "--set",
                                           "cluster.links.socket.latency=9 us"};
  const auto with = [&](const std::string& baseline) {
    std::vector<std::string> more = arguments;
    more.insert(more.end(), {"--set", "baselines=[{family: gpipe, name: " + baseline + "}]"});
    return more;
  };
  ASSERT_EQ(run(with("mine.json")).code, 0);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(
           folder_ / "out/devices=2,microbatches=2,training.microbatch_size=1"))
    if (entry.is_regular_file()) names.insert(entry.path().filename().string());
  EXPECT_EQ(names, std::set<std::string>(kCaseFiles.begin(), kCaseFiles.end()));
  for (const std::string& name : names) {
    const Outcome outcome = run(with(name));
    EXPECT_EQ(outcome.code, 2) << name;
    EXPECT_THAT(outcome.err, HasSubstr("\"" + name + "\" names a folder, beside which"));
  }
}

TEST_F(Sweep, AFolderInThePlaceOfAFileIsReportedWithARemedyAndLeftAlone) {
  const std::vector<std::string> arguments{"sweep.yaml", "--out", "out", "--set",
                                           "cases.training.microbatch_size=1"};
  ASSERT_EQ(run(arguments).code, 0);
  const auto before = files("out");
  const std::string in_case = "out/devices=2,microbatches=2,training.microbatch_size=1/";
  std::vector<std::string> names{in_case + "planned/plan.yaml", in_case + "planned/certificate.txt",
                                 "out/results.csv", "out/report.html", "out/files.sha256"};
  for (const std::string_view name : kCaseFiles)
    if (name != case_file::kLinks && name != case_file::kCluster)  // which this case has not
      names.push_back(in_case + std::string(name));
  for (const std::string& name : names) {
    std::filesystem::remove(folder_ / name);
    write(name + "/mine.txt", "of the user");
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 4) << name;
    EXPECT_THAT(outcome.err,
                HasSubstr(name + ": Is a directory; a folder stands where a file belongs"));
    EXPECT_EQ(read(name + "/mine.txt"), "of the user");
    std::filesystem::remove_all(folder_ / name);
    EXPECT_EQ(run(arguments).code, 0) << name;
    EXPECT_EQ(files("out"), before) << name;
  }
}

TEST_F(Sweep, WhatWasDeletedOfACaseIsMadeAgain) {
  ASSERT_EQ(run({"sweep.yaml", "--out", "out"}).code, 0);
  const auto whole = files("out");
  for (const char* name : {"plan.yaml", "timeline.svg"}) {
    const std::string lost = "devices=2,microbatches=2,training.microbatch_size=7/planned/";
    ASSERT_TRUE(std::filesystem::remove(folder_ / "out" / (lost + name)));
    std::filesystem::remove(folder_ / "out/report.html");
    const Outcome again = run({"sweep.yaml", "--out", "out"});
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_THAT(again.err, HasSubstr("1 of 40 cases computed"));
    EXPECT_TRUE(files("out") == whole);
  }
}

TEST_F(Sweep, WhatWasDamagedIsMadeAgain) {
  const std::vector<std::string> one{"sweep.yaml", "--out", "out", "--set",
                                     "cases.training.microbatch_size=7"};
  ASSERT_EQ(run(one).code, 0);
  const auto whole = files("out");
  const std::string folder = "out/devices=2,microbatches=2,training.microbatch_size=7/";
  const auto listed = [&] {
    std::vector<std::string> arguments = one;
    arguments.emplace_back("--list");
    return run(arguments).out.substr(0, 5);
  };
  ASSERT_EQ(listed(), "done ");
  for (const auto& [name, text] : files(folder)) {
    write(folder + name, read(folder + name) + " ");
    EXPECT_EQ(listed(), "to do") << name;
    EXPECT_THAT(run(one).err, HasSubstr("1 of 1 cases computed"));
    EXPECT_TRUE(files("out") == whole) << name;
  }
  const std::string digests = read(folder + "files.sha256");
  write(folder + "files.sha256", digests.substr(0, digests.rfind('\n', digests.size() - 2) + 1));
  EXPECT_EQ(listed(), "to do") << "a shorter list";
  ASSERT_EQ(run(one).code, 0);
  // What all cases are gathered in is written again, and no case is computed.
  for (const char* name : {"results.csv", "results.tex", "report.html"}) {
    write(std::string("out/") + name, "damaged");
    EXPECT_THAT(run(one).err, HasSubstr("0 of 1 cases computed"));
    EXPECT_TRUE(files("out") == whole) << name;
  }
  EXPECT_EQ(std::system(("cd '" + (folder_ / folder).string() +
                         "' && sha256sum --quiet --strict -c files.sha256")
                            .c_str()),
            0);
}

}  // namespace
}  // namespace pfeife
