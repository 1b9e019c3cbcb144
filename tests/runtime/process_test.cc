// pfeife-run as a user meets it: ranks as processes, exit codes, and what happens when one dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "planner/io/schedule_csv.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Ended {
  int code = -1;
  std::string text;  ///< both streams
};

/// Runs pfeife-run in a folder of its own for temporary files.
class PfeifeRun : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(::testing::TempDir()) / ("pfeife_run_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_ / "tmp");
    std::ofstream(folder_ / "s.csv") << write_schedule(generate({"1f1b", 3, 4, 1, {}, {}}));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string command(const std::string& rest) const {
    return "TMPDIR=" + (folder_ / "tmp").string() + " " PFEIFE_RUN " " + rest + " --schedule " +
           (folder_ / "s.csv").string() +
           " --model " PFEIFE_SOURCE_DIR "/configs/models/tiny_gpt.pt2 2>&1";
  }
  static Ended read(FILE* pipe) {
    Ended ended;
    char buffer[256];
    while (fgets(buffer, sizeof buffer, pipe) != nullptr) ended.text += buffer;
    const int status = pclose(pipe);
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return ended;
  }
  Ended run(const std::string& rest) const { return read(popen(command(rest).c_str(), "r")); }

  /// What is left of a run: folders where ranks met.
  std::vector<std::string> leftovers() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "tmp"))
      names.push_back(entry.path().filename());
    return names;
  }
  /// Processes whose TMPDIR is ours and that are ranks.
  std::vector<pid_t> ranks() const {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "environ", std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      if (text.find(folder_.string()) != std::string::npos &&
          text.find("PFEIFE_MEETING=") != std::string::npos)
        found.push_back(static_cast<pid_t>(std::stol(entry.path().filename())));
    }
    return found;
  }
  /// Rank 2 has said what it is doing.
  bool is_training() const {
    for (const std::string& name : leftovers()) {
      std::ifstream file(folder_ / "tmp" / name / "status", std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      if (text.find("2F") != std::string::npos || text.find("2B") != std::string::npos) return true;
    }
    return false;
  }
  /// Starts a long training, sends `signal` to one rank once all run, and waits for the end.
  Ended train_and_send(int signal) const {
    FILE* pipe = popen(command("train --steps 1000000 --cuts '20 40'").c_str(), "r");
    std::vector<pid_t> started;
    for (int i = 0; i < 1200 && (started.size() < 3 || !is_training()); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      started = ranks();
    }
    EXPECT_EQ(started.size(), 3u);
    if (!started.empty()) kill(started.back(), signal);
    return read(pipe);
  }

  std::filesystem::path folder_;
};

TEST_F(PfeifeRun, ChecksAPlanOnProcesses) {
  const Ended ended = run("check --fp64 --cuts '20 40'");
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("equal those of the unsplit model"));
  EXPECT_THAT(leftovers(), IsEmpty());
}

TEST_F(PfeifeRun, NamesTheTensorThatDiffersAndEndsWithFour) {
  const Ended ended = run("check --cuts '20 40' --tolerance 0");
  EXPECT_EQ(ended.code, 4) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("DIFFERENT: "));
}

TEST_F(PfeifeRun, RefusesAScheduleThatDoesNotFitTheCutsBeforeAnythingStarts) {
  const Ended ended = run("check --cuts '20'");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.text, HasSubstr("places 3 stages, the cuts make 2"));
}

TEST_F(PfeifeRun, StopsAllRanksWhenOneIsKilledAndLeavesNothing) {
  const Ended ended = train_and_send(SIGKILL);
  EXPECT_EQ(ended.code, 4);
  EXPECT_THAT(ended.text, HasSubstr("was killed by signal 9"));
  EXPECT_THAT(leftovers(), IsEmpty());
  EXPECT_THAT(ranks(), IsEmpty());
}

TEST_F(PfeifeRun, StopsAllRanksWhenOneStalls) {
  const Ended ended = train_and_send(SIGSTOP);
  EXPECT_EQ(ended.code, 4);
  EXPECT_THAT(ended.text, HasSubstr("stalls"));
  EXPECT_THAT(leftovers(), IsEmpty());
  EXPECT_THAT(ranks(), IsEmpty());
}

}  // namespace
}  // namespace pfeife
