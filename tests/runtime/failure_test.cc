// A rank that fails: all others stop within seconds, one message says which, at what and why, and
// nothing is left behind. The kills at random events are PFEIFE_KILLS (default 5).
#include <gmock/gmock.h>

#include <random>

#include "runtime/transport/socket.h"
#include "runtime/transport/socket_transport.h"
#include "tests/runtime/npy_file.h"
#include "tests/runtime/processes.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::StartsWith;
using namespace testing;

class Failure : public ProcessTest {
 protected:
  std::vector<std::string> checkpoints() const {
    std::vector<std::string> names;
    if (std::filesystem::exists(folder_ / "save"))
      for (const auto& entry : std::filesystem::directory_iterator(folder_ / "save"))
        names.push_back(entry.path().filename());
    return names;
  }
  /// No process, no file, no half a checkpoint.
  void expect_nothing_left() const {
    EXPECT_THAT(leftovers(), IsEmpty());
    EXPECT_THAT(ranks(), IsEmpty());
    for (const std::string& name : checkpoints()) EXPECT_THAT(name, StartsWith("step-"));
  }
  Ended meet(const std::string& fault) const {
    const Ended ended = start({PFEIFE_RANKS, fault, (folder_ / "save").string()})->wait(kLong);
    EXPECT_EQ(ended.code, 4);
    EXPECT_THAT(checkpoints(), ::testing::Not(IsEmpty()));
    expect_nothing_left();
    return ended;
  }
  /// The same under another launcher: what the ranks print.
  std::string meet_among_others(const std::string& fault) const {
    const std::string port = std::to_string(port_of(listen_on_port(0)));
    std::vector<std::unique_ptr<Started>> all;
    for (const std::string r : {"0", "1", "2"})
      all.push_back(start(
          {PFEIFE_RANKS, fault, (folder_ / "save").string()},
          {{"RANK", r}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", port}},
          "rank" + r));
    std::string text;
    for (const auto& rank : all) {
      const Ended ended = rank->wait(kLong);
      EXPECT_EQ(ended.code, fault == "exits" && &rank == &all[1] ? 0 : 4);
      text += ended.text;
    }
    expect_nothing_left();
    return text;
  }
};

TEST_F(Failure, ARankThatThrows) {
  EXPECT_EQ(meet("throws").text, "rank 1 failed at 1F2: told to fail\n");
}

TEST_F(Failure, ARankWithoutMemory) {
  EXPECT_THAT(meet("out_of_memory").text, StartsWith("rank 1 failed at 1F2: out of memory: "));
}

TEST_F(Failure, ARankThatStalls) {
  EXPECT_EQ(meet("stalls").text, "rank 1 stalls while at 1F2: signal 19 stopped it\n");
}

// No rank stalls that has done all it was started for, however long its process takes to end.
TEST_F(Failure, NotOfARankThatIsLongInEnding) {
  const Ended ended = start({PFEIFE_RANKS, "slow_end"})->wait(kLong);
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.text, "done\n");
}

TEST_F(Failure, ARankThatExits) {
  EXPECT_EQ(meet("exits").text, "rank 1 ended before all was done while at 1F2\n");
}

TEST_F(Failure, ARankThatIsMissedBeforeItIsSeenToEnd) {
  EXPECT_EQ(meet("unreachable").text, "rank 1 was killed by signal 9 while at 1F2\n");
}

TEST_F(Failure, ARankOfAnotherLauncherThatThrows) {
  EXPECT_EQ(meet_among_others("throws"), "pfeife-run: rank 1 failed at 1F2: told to fail\n");
}

TEST_F(Failure, ARankOfAnotherLauncherWithoutMemory) {
  EXPECT_THAT(meet_among_others("out_of_memory"),
              MatchesRegex("pfeife-run: rank 1 failed at 1F2: out of memory: [^\n]*\n"));
}

TEST_F(Failure, ARankOfAnotherLauncherThatExits) {
  EXPECT_THAT(meet_among_others("exits"),
              MatchesRegex("pfeife-run: rank 1 ended without a farewell[^\n]*\n"));
}

class Kills : public Failure {
 protected:
  void SetUp() override {
    Failure::SetUp();
    std::filesystem::create_directories(folder_ / "data");
    for (const char* name : {"ids", "labels"})
      write_npy<std::int64_t>(folder_ / "data" / (std::string(name) + ".npy"), "<i8", {64, 12},
                              std::vector<std::int64_t>(64 * 12, 3));
  }
  std::vector<std::string> train(const std::string& steps) const {
    std::vector<std::string> all =
        arguments({"train", "--steps", steps, "--data", (folder_ / "data").string(), "--save",
                   (folder_ / "save").string(), "--save-every", "2"});
    if (!checkpoints().empty()) {  // so that every run also shows that what a kill left can be read
      all.push_back("--resume");
      all.push_back((folder_ / "save").string());
    }
    return all;
  }
  /// What is awaited before a rank is killed.
  enum class Event { AllStarted, Trains, Saves, HasSaved };
  bool has_come(Event event, const Started& launcher,
                const std::vector<std::string>& before) const {
    const auto names = checkpoints();
    switch (event) {
      case Event::AllStarted:
        return true;
      case Event::Trains:
        return launcher.text().find("step ") != std::string::npos;
      case Event::Saves:
        return std::ranges::any_of(names, [](auto& name) { return name.starts_with(".partial-"); });
      case Event::HasSaved:
        return names != before && std::ranges::any_of(names, [&](const std::string& name) {
                 return name.starts_with("step-") &&
                        std::ranges::find(before, name) == before.end();
               });
    }
    return false;
  }
  /// Kills a rank once the event has come; the others end, and nothing is left.
  void kill_one(Event event, int rank) const {
    const auto before = checkpoints();
    const auto launcher = start(train("1000000"));
    ASSERT_TRUE(holds_within(kLong, [&] { return ranks().size() == 3; })) << launcher->text();
    ASSERT_TRUE(holds_within(kLong, [&] { return has_come(event, *launcher, before); }))
        << launcher->text();
    const auto alive = ranks();
    ASSERT_EQ(alive.size(), 3u) << launcher->text();
    kill(alive.at(rank), SIGKILL);
    const Ended ended = launcher->wait(kLong);
    EXPECT_EQ(ended.code, 4);
    EXPECT_THAT(ended.text, HasSubstr("rank " + std::to_string(rank) + " was killed by signal 9"));
    expect_nothing_left();
  }
};

TEST_F(Kills, OfARandomRankAtARandomEventStopAllAndLeaveACheckpointThatLoads) {
  const char* wanted = std::getenv("PFEIFE_KILLS");
  const int count = wanted ? std::atoi(wanted) : 5;
  std::mt19937 random(1);
  for (int i = 0; i < count && !HasFailure(); ++i) {
    const auto event = i == 0 ? Event::HasSaved : static_cast<Event>(random() % 4);
    kill_one(event, static_cast<int>(random() % 3));
    EXPECT_FALSE(checkpoints().empty());
  }
  const Ended resumed = start(train("1"))->wait(kLong);
  EXPECT_EQ(resumed.code, 0) << resumed.text;
}

// As Ctrl-Z does; the launcher is woken first, when nobody has been heard of for long.
TEST_F(Kills, APauseOfAllProcessesIsNoStall) {
  const auto launcher = start(train("1000000"));
  ASSERT_TRUE(holds_within(kLong, [&] { return !checkpoints().empty(); })) << launcher->text();
  std::vector<pid_t> all{launcher->process()};
  for (const auto& [rank, process] : ranks()) all.push_back(process);
  ASSERT_EQ(all.size(), 4u);
  for (const pid_t process : all) kill(process, SIGSTOP);
  std::this_thread::sleep_for(kStall + std::chrono::seconds(1));
  for (const pid_t process : all) {
    kill(process, SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const auto last = checkpoints();
  EXPECT_TRUE(holds_within(kSoon, [&] { return checkpoints() != last; })) << launcher->text();
  EXPECT_THAT(launcher->text(), ::testing::Not(HasSubstr("stalls")));
  EXPECT_EQ(ranks().size(), 3u);
}

}  // namespace
}  // namespace pfeife
