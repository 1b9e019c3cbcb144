// pfeife-run as a user meets it: ranks as processes, exit codes, and what happens when one dies.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tests/runtime/processes.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing;

class PfeifeRun : public ProcessTest {
 protected:
  Ended run(const std::vector<std::string>& rest) const {
    return start(arguments(rest))->wait(kLong);
  }
  /// Rank 2 has said what it is doing.
  bool is_training(pid_t launcher) const {
    const std::filesystem::path open = "/proc/" + std::to_string(launcher) + "/fd";
    for (const auto& entry : std::filesystem::directory_iterator(open)) {
      std::error_code gone;
      if (std::filesystem::read_symlink(entry.path(), gone).string().find("memfd:pfeife") ==
          std::string::npos)
        continue;
      const std::string text = content_of(entry.path());
      if (text.find("2F") != std::string::npos || text.find("2B") != std::string::npos) return true;
    }
    return false;
  }
  /// Starts a long training, sends `signal` to a rank once all run, and waits for the end.
  Ended train_and_send(int signal, int rank) const {
    const auto launcher = start(arguments({"train", "--steps", "1000000"}));
    EXPECT_TRUE(holds_within(kLong, [&] { return is_training(launcher->process()); }));
    EXPECT_EQ(ranks().size(), 3u);
    kill(ranks().at(rank), signal);
    const Ended ended = launcher->wait(std::chrono::seconds(10));
    EXPECT_THAT(leftovers(), IsEmpty());
    EXPECT_THAT(ranks(), IsEmpty());
    return ended;
  }
};

TEST_F(PfeifeRun, RefusesACardThatIsNotThere) {
  const std::string model = PFEIFE_SOURCE_DIR "/configs/models/tiny_gpt.pt2";
  const std::vector<std::vector<std::string>> commands{
      arguments({"check", "--device", "cuda"}),
      arguments({"train", "--steps", "1", "--device", "cuda"}),
      {PFEIFE_RUN, "profile", model, "--device", "cuda"}};
  for (const std::vector<std::string>& command : commands) {
    const Ended ended = start(command)->wait(kLong);
    if (ended.code == 0) GTEST_SKIP() << "there is a card";
    EXPECT_EQ(ended.code, 2) << command[1];
    EXPECT_THAT(ended.text, HasSubstr("--device: no CUDA device found")) << command[1];
  }
}

TEST_F(PfeifeRun, RefusesNumbersThatCannotBeMeantInOneLine) {
  const std::map<std::vector<std::string>, std::string> refusals{
      {{"train", "--steps", "many"}, "--steps"},
      {{"train", "--steps", "99999999999"}, "--steps"},
      {{"train", "--bogus"}, "bogus"},
      {{"check", "--seed", "-1"}, "--seed must not be negative"},
      {{"check", "--tolerance", "1e"}, "--tolerance"},
      {{"train", "--kernel-threads", "100000"}, "--kernel-threads is 100000; at most"},
      {{"profile", "--beside", "100000"}, "--beside is 100000; at most"}};
  for (const auto& [given, said] : refusals) {
    std::vector<std::string> program{PFEIFE_RUN};
    program.insert(program.end(), given.begin(), given.end());
    const Ended ended = start(program)->wait(kLong);
    EXPECT_EQ(ended.code, 2) << ended.text;
    EXPECT_THAT(ended.text, HasSubstr(said));
    EXPECT_EQ(std::ranges::count(ended.text, '\n'), 1) << ended.text;
  }
}

TEST_F(PfeifeRun, RefusesAPipeWhereDataShouldBe) {
  std::filesystem::create_directories(folder_ / "data");
  for (const char* name : {"ids.npy", "labels.npy"})
    ASSERT_EQ(mkfifo((folder_ / "data" / name).c_str(), 0600), 0);
  const Ended ended = run({"train", "--data", (folder_ / "data").string()});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.text, HasSubstr("ids.npy: is not a file but a folder, a device or a pipe"));
}

TEST_F(PfeifeRun, ChecksAPlanOnProcesses) {
  const Ended ended = run({"check", "--fp64"});
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("equal those of the unsplit model"));
  EXPECT_THAT(leftovers(), IsEmpty());
}

TEST_F(PfeifeRun, ChecksAPlanOverTcp) {
  const Ended ended = run({"check", "--fp64", "--tcp"});
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("equal those of the unsplit model"));
  EXPECT_THAT(leftovers(), IsEmpty());
}

TEST_F(PfeifeRun, NamesTheTensorThatDiffersAndEndsWithFour) {
  const Ended ended = run({"check", "--tolerance", "0"});
  EXPECT_EQ(ended.code, 4) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("DIFFERENT: "));
}

TEST_F(PfeifeRun, RefusesAScheduleThatDoesNotFitTheCutsBeforeAnythingStarts) {
  std::vector<std::string> one_cut = arguments({"check"});
  *std::ranges::find(one_cut, "20 40") = "20";
  const Ended ended = start(one_cut)->wait(kLong);
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.text, HasSubstr("places 3 stages, the cuts make 2"));
}

// A number that does not fit was left out silently, as if it were the end of the list.
TEST_F(PfeifeRun, RefusesCutsThatAreNoNumbersOfNodes) {
  for (const char* cut : {"99999999999999999999", "x", "040", "-1"}) {
    std::vector<std::string> wrong = arguments({"check"});
    *std::ranges::find(wrong, "20 40") = std::string("20 ") + cut;
    const Ended ended = start(wrong)->wait(kLong);
    EXPECT_EQ(ended.code, 2);
    EXPECT_THAT(ended.text, HasSubstr("--cuts: '" + std::string(cut) + "' is no number of a node"));
  }
}

TEST_F(PfeifeRun, ALinkThatLeadsToItselfIsNamedWithTheSystemsReason) {
  std::filesystem::create_directories(folder_ / "data");
  std::filesystem::create_symlink("ids.npy", folder_ / "data" / "ids.npy");
  const Ended ended = run({"train", "--data", (folder_ / "data").string()});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.text, HasSubstr("ids.npy: cannot be opened for reading: Too many levels of "
                                    "symbolic links"));
}

TEST_F(PfeifeRun, StopsAllRanksWhenOneIsKilledAndLeavesNothing) {
  const Ended ended = train_and_send(SIGKILL, 2);
  EXPECT_EQ(ended.code, 4);
  EXPECT_THAT(ended.text, HasSubstr("rank 2 was killed by signal 9 while at 2"));
}

TEST_F(PfeifeRun, LeavesNothingWhenItsLauncherIsKilled) {
  const auto launcher = start(arguments({"train", "--steps", "1000000"}));
  ASSERT_TRUE(holds_within(kLong, [&] { return is_training(launcher->process()); }));
  kill(launcher->process(), SIGKILL);
  EXPECT_TRUE(holds_within(kSoon, [&] { return ranks().empty(); }));
  EXPECT_THAT(leftovers(), IsEmpty());
}

// LibTorch is still being loaded then, and no rank gives a sign of life; one that is stopped is
// known all the same.
TEST_F(PfeifeRun, StopsAllRanksWhenOneIsStoppedBeforeItsFirstSignOfLife) {
  const auto launcher = start(arguments({"train", "--steps", "1000000"}));
  ASSERT_TRUE(holds_within(kLong, [&] { return ranks().contains(1); }));
  kill(ranks().at(1), SIGSTOP);
  const Ended ended = launcher->wait(std::chrono::seconds(40));
  EXPECT_EQ(ended.code, 4);
  EXPECT_THAT(ended.text, HasSubstr("rank 1 stalls before its first action: signal 19 stopped it"));
  EXPECT_THAT(ranks(), IsEmpty());
}

TEST_F(PfeifeRun, StopsAllRanksWhenOneStalls) {
  const Ended ended = train_and_send(SIGSTOP, 1);
  EXPECT_EQ(ended.code, 4);
  EXPECT_THAT(ended.text, HasSubstr("rank 1 stalls while at 1"));
}

}  // namespace
}  // namespace pfeife
