// Ranks that another launcher has started: what it sets is set by hand here. They meet through a
// TCPStore; nobody watches them but they themselves.
#include <gmock/gmock.h>

#include "runtime/transport/socket.h"
#include "tests/runtime/processes.h"

namespace pfeife {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using namespace testing;

class OtherLauncher : public ProcessTest {
 protected:
  std::unique_ptr<Started> rank(int r, int ranks, const std::vector<std::string>& rest) const {
    return start(arguments(rest), variables(r, ranks), "rank" + std::to_string(r));
  }
  Started::Variables variables(int r, int ranks) const {
    return {{"RANK", std::to_string(r)},
            {"WORLD_SIZE", std::to_string(ranks)},
            {"LOCAL_RANK", std::to_string(r)},
            {"MASTER_ADDR", "localhost"},
            {"MASTER_PORT", std::to_string(port_)}};
  }
  void expect_equal_gradients(const std::vector<std::string>& rest) const {
    const auto zero = rank(0, 3, rest), one = rank(1, 3, rest), two = rank(2, 3, rest);
    const Ended ended = zero->wait(kLong);
    EXPECT_EQ(ended.code, 0);
    EXPECT_THAT(ended.text, HasSubstr("equal those of the unsplit model"));
    for (Started* other : {one.get(), two.get()}) {
      const Ended silent = other->wait(kSoon);
      EXPECT_EQ(silent.code, 0);
      EXPECT_EQ(silent.text, "");
    }
  }
  /// Once all have trained for a while, rank 2 gets the signal: the others end, with one message.
  void expect_one_message_after(int signal, const std::string& message) const {
    const std::filesystem::path save = folder_ / "save";
    const std::vector<std::string> train{"train",       "--steps",      "1000000", "--save",
                                         save.string(), "--save-every", "2"};
    const auto zero = rank(0, 3, train), one = rank(1, 3, train), two = rank(2, 3, train);
    EXPECT_TRUE(holds_within(kLong, [&] {
      return zero->text().find("step 1:") != std::string::npos && std::filesystem::exists(save);
    }));
    std::this_thread::sleep_for(std::chrono::milliseconds(700));  // the others have heard of it
    kill(two->process(), signal);
    const Ended told = zero->wait(kSoon), silent = one->wait(kSoon);
    EXPECT_EQ(told.code, 4);
    EXPECT_THAT(told.text, HasSubstr(message));
    EXPECT_EQ(silent.code, 4);
    EXPECT_EQ(silent.text, "");
    for (const auto& entry : std::filesystem::directory_iterator(save))
      EXPECT_THAT(entry.path().filename().string(), StartsWith("step-"));  // nothing half written
  }

  std::uint16_t port_ = port_of(listen_on_port(0));  // a free one
};

TEST_F(OtherLauncher, RanksMeetThroughAStoreAndUseSocketsOfTheHost) {
  expect_equal_gradients({"check", "--fp64"});
}

TEST_F(OtherLauncher, RanksMeetThroughAStoreAndUseTcp) {
  expect_equal_gradients({"check", "--fp64", "--tcp"});
}

TEST_F(OtherLauncher, AnotherNumberOfRanksThanThePlansIsRefusedByTheVariablesName) {
  const Ended ended = rank(0, 2, {"check"})->wait(kLong);
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.text, HasSubstr("WORLD_SIZE=2, the plan has 3 ranks"));
}

// Before anything starts: once, by rank 0, with the exit code of wrong input everywhere.
TEST_F(OtherLauncher, RanksThatWereGivenOtherThingsAreRefused) {
  std::ofstream(folder_ / "other.csv") << write_schedule(generate({"gpipe", 3, 4, 1, {}, {}}));
  std::vector<std::string> other_plan = arguments({"check"});
  *std::ranges::find(other_plan, (folder_ / "s.csv").string()) = folder_ / "other.csv";
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {arguments({"check", "--seed", "7"}),
       "rank 2 has seed 7, fp32, adam; give all ranks the same"},
      {arguments({"train", "--steps", "3"}), "rank 2 runs another verb than rank 0"},
      {other_plan, "; give all ranks the same plan, or schedule and cuts"}};
  for (const auto& [given, message] : cases) {
    port_ = port_of(listen_on_port(0));
    const auto zero = rank(0, 3, {"check"}), one = rank(1, 3, {"check"}),
               two = start(given, variables(2, 3), "rank2");
    const Ended told = zero->wait(kLong);
    EXPECT_EQ(told.code, 2);
    EXPECT_THAT(told.text, StartsWith("pfeife-run: rank "));
    EXPECT_THAT(told.text, HasSubstr(message));
    for (Started* other : {one.get(), two.get()}) {
      const Ended silent = other->wait(kSoon);
      EXPECT_EQ(silent.code, 2);
      EXPECT_EQ(silent.text, "");
    }
  }
}

TEST_F(OtherLauncher, AnotherSecretIsNamedOnce) {
  const auto with = [&](int r, const std::string& secret) {
    Started::Variables all = variables(r, 3);
    all["PFEIFE_SECRET"] = secret;
    return start(arguments({"check", "--meet-within", "5"}), all, "rank" + std::to_string(r));
  };
  const auto zero = with(0, "one"), one = with(1, "two"), two = with(2, "one");
  const Ended told = zero->wait(kLong);
  EXPECT_EQ(told.code, 4);
  EXPECT_THAT(told.text, StartsWith("pfeife-run: rank"));
  EXPECT_THAT(told.text, HasSubstr(" another PFEIFE_SECRET than rank "));
  EXPECT_EQ(std::ranges::count(told.text, '\n'), 1) << told.text;
  for (Started* other : {one.get(), two.get()}) {
    const Ended silent = other->wait(kSoon);
    EXPECT_EQ(silent.code, 4);
    // A rank that comes when rank 0 has ended finds no store any more, and says so.
    EXPECT_THAT(silent.text, AnyOf("", HasSubstr("rank 0 has ended, and its message says why"),
                                   HasSubstr("no TCPStore answers")));
  }
}

// RFC 2606 keeps .invalid from ever being a host.
TEST_F(OtherLauncher, AnUnknownHostIsCalledSoByEachRank) {
  for (const int r : {0, 1}) {
    Started::Variables all = variables(r, 3);
    all["MASTER_ADDR"] = "no-such-host.invalid";
    const Ended ended = start(arguments({"check", "--meet-within", "1"}), all)->wait(kLong);
    EXPECT_EQ(ended.code, 2);
    EXPECT_THAT(ended.text, HasSubstr("unknown host: MASTER_ADDR=no-such-host.invalid"));
  }
}

TEST_F(OtherLauncher, APortInUseIsNamed) {
  const Socket other = listen_on_port(0);
  port_ = port_of(other);
  const Ended ended = rank(0, 3, {"check"})->wait(kLong);
  EXPECT_EQ(ended.code, 4);
  EXPECT_THAT(ended.text, HasSubstr("Address already in use (MASTER_ADDR=localhost MASTER_PORT=" +
                                    std::to_string(port_) + "); give another MASTER_PORT"));
}

TEST_F(OtherLauncher, ARankThatNeverComesIsNamedOnce) {
  const auto zero = rank(0, 3, {"check", "--meet-within", "1"}),
             one = rank(1, 3, {"check", "--meet-within", "1"});
  const Ended told = zero->wait(kLong), silent = one->wait(kSoon);
  EXPECT_EQ(told.code, 4);
  EXPECT_EQ(told.text, "pfeife-run: rank 2 of 3 did not come within 1 s\n");
  EXPECT_EQ(silent.code, 4);
  EXPECT_EQ(silent.text, "");
}

TEST_F(OtherLauncher, WithoutRankZeroThereIsNoStore) {
  const Ended ended = rank(1, 3, {"check", "--meet-within", "1"})->wait(kLong);
  EXPECT_EQ(ended.code, 4);
  EXPECT_THAT(ended.text, HasSubstr("rank 0 has not come"));
}

TEST_F(OtherLauncher, SomethingElseAtThePortIsNoEndlessWait) {
  const Socket mute = listen_on_port(0);
  port_ = port_of(mute);
  const Ended ended = rank(1, 3, {"check", "--meet-within", "1"})->wait(kLong);
  EXPECT_EQ(ended.code, 4);
  EXPECT_THAT(ended.text, HasSubstr("no TCPStore answers"));
}

TEST_F(OtherLauncher, AKilledRankStopsTheOthersWithOneMessage) {
  expect_one_message_after(SIGKILL, "rank 2 ended without a farewell, last heard of at 2");
}

TEST_F(OtherLauncher, AStallingRankStopsTheOthersWithOneMessage) {
  expect_one_message_after(SIGSTOP, "rank 2 stalls: no sign of life for 5 s, last heard of at 2");
}

/// The real thing, where it is installed: mpirun as Debian's openmpi-bin has it.
class OpenMpi : public ProcessTest {
 protected:
  void SetUp() override {
    ProcessTest::SetUp();
    if (!std::filesystem::exists(kMpirun)) GTEST_SKIP() << "there is no " << kMpirun;
  }
  Ended mpirun(int ranks, const std::vector<std::string>& rest) const {
    std::vector<std::string> program{
        kMpirun, "--oversubscribe",
        "-n",    std::to_string(ranks),
        "-x",    "MASTER_ADDR=localhost",
        "-x",    "MASTER_PORT=" + std::to_string(port_of(listen_on_port(0)))};
    for (const std::string& word : arguments(rest)) program.push_back(word);
    const auto started =
        start(program, {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
    return started->wait(kLong);
  }
  static constexpr const char* kMpirun = "/usr/bin/mpirun";
};

TEST_F(OpenMpi, RanksOfARealMpirunCheckThePlan) {
  const Ended ended = mpirun(3, {"check", "--fp64"});
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("equal those of the unsplit model"));
}

TEST_F(OpenMpi, AnotherNumberOfRanksIsRefusedAndEndsMpirun) {
  const Ended ended = mpirun(2, {"check"});
  EXPECT_EQ(ended.code, 2) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("OMPI_COMM_WORLD_SIZE=2, the plan has 3 ranks"));
}

// torchrun's Python becomes the rank: what it held before is not the rank's.
TEST_F(OtherLauncher, MemoryOfTheProgramThatBecameARankIsNotTheRanks) {
  if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "there is no /usr/bin/python3";
  std::vector<std::string> program{"/usr/bin/python3", "-c",
                                   "import os, sys; lot = b'x' * (1 << 30); "
                                   "os.execv(sys.argv[1], sys.argv[1:])"};
  for (const std::string& word :
       arguments({"train", "--steps", "1", "--threads", "--save", (folder_ / "save").string()}))
    program.push_back(word);
  const Ended ended = start(program)->wait(kLong);
  ASSERT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("step 1: loss"));
  const std::size_t unit = ended.text.find(" MiB\n");
  ASSERT_NE(unit, std::string::npos) << ended.text;
  const std::size_t number = ended.text.rfind(' ', unit - 1);
  EXPECT_LT(std::stod(ended.text.substr(number)), 1024) << ended.text;
}

}  // namespace
}  // namespace pfeife
