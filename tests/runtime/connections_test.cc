// Strangers at the doors of ranks that join: whoever connects without the run's secret neither gets
// in nor holds anybody up. Ranks are threads; patience ends long before strangers could be heard
// one after another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <list>
#include <set>
#include <sstream>
#include <thread>

#include "runtime/launch/join.h"
#include "tests/runtime/test_meetings.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MeetingOfThreads;
using Topic = Meeting::Topic;

/// Sockets of this process, by the number that the system's tables know them by.
std::set<std::string> own_sockets() {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone);
    if (target.starts_with("socket:[")) found.insert(target.substr(8, target.size() - 9));
  }
  return found;
}

struct Door {
  std::string address;  ///< hexadecimal, as the table has it
  std::uint16_t port = 0;
};

/// Where this process listens for TCP.
std::vector<Door> doors() {
  const std::set<std::string> own = own_sockets();
  std::vector<Door> found;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::vector<std::string> cells;
      for (std::string word; words >> word;) cells.push_back(word);
      if (cells.size() < 10 || cells[3] != "0A" || !own.contains(cells[9])) continue;
      const std::size_t colon = cells[1].find(':');
      found.push_back({cells[1].substr(0, colon), static_cast<std::uint16_t>(std::stoul(
                                                      cells[1].substr(colon + 1), nullptr, 16))});
    }
  }
  return found;
}

/// Names in the abstract namespace at which somebody listens.
std::vector<std::string> names_on_host() {
  std::vector<std::string> found;
  std::ifstream file("/proc/self/net/unix");
  for (std::string line; std::getline(file, line);)
    if (const std::size_t at = line.find("@pfeife-"); at != std::string::npos)
      found.push_back(line.substr(at + 1));
  return found;
}

constexpr std::size_t kRanks = 3;

/// Joins three ranks; what each says of it, "" = joined. Rank r has the r-th secret.
std::array<std::string, kRanks> join_all(Meeting& meeting, JoinOptions options,
                                         const std::array<std::string, kRanks>& secrets) {
  std::array<std::string, kRanks> said;
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < kRanks; ++r)
    threads.emplace_back([&, r, own = options]() mutable {
      own.secret = secrets[r];
      const RankId rank{r};
      said[r] = message_of<std::exception>([&] {
        const auto transport = join_by_sockets(meeting, rank, kRanks, own);
        for (std::size_t other = 0; other < kRanks; ++other)
          transport->send(RankId{other}, {0, 1, 0}, {});
        for (std::size_t other = 0; other < kRanks; ++other)
          transport->receive(RankId{other}, {0, 1, 0});
        transport->finish();
      });
    });
  for (std::thread& thread : threads) thread.join();
  return said;
}

const std::array<std::string, kRanks> kSame{"one", "one", "one"};

TEST(Joining, ThirtySilentConnectionsAtEachPortHoldUpNobody) {
  std::list<Socket> strangers;
  MeetingOfThreads meeting([&](Topic topic, RankId rank, const std::string&) {
    if (topic != Topic::Listens || rank != RankId{0}) return;
    for (const Door& door : doors())
      for (int i = 0; i < 30; ++i)
        strangers.push_back(connect_to("127.0.0.1", door.port, std::chrono::seconds(5)));
  });
  EXPECT_THAT(join_all(meeting, {.patience = std::chrono::seconds(20), .tcp = true}, kSame),
              Each(IsEmpty()));
  EXPECT_GE(strangers.size(), 30u);
}

TEST(Joining, ThirtySilentConnectionsOnTheHostHoldUpNobody) {
  std::list<Socket> strangers;
  MeetingOfThreads meeting([&](Topic topic, RankId rank, const std::string&) {
    if (topic != Topic::Listens || rank != RankId{0}) return;
    for (const std::string& name : names_on_host())
      for (int i = 0; i < 30; ++i) strangers.push_back(connect_on_host(name));
  });
  EXPECT_THAT(join_all(meeting, {.patience = std::chrono::seconds(20)}, kSame), Each(IsEmpty()));
  EXPECT_GE(strangers.size(), 30u);
}

TEST(Joining, RanksOfOneHostListenAtNoPort) {
  std::vector<Door> seen;
  std::mutex mutex;
  MeetingOfThreads meeting([&](Topic, RankId, const std::string&) {
    const std::lock_guard lock(mutex);
    for (const Door& door : doors()) seen.push_back(door);
  });
  EXPECT_THAT(join_all(meeting, {}, kSame), Each(IsEmpty()));
  EXPECT_TRUE(seen.empty());
}

TEST(Joining, RanksOfOneHostThatUseTcpListenWithinItAlone) {
  std::vector<Door> seen;
  std::mutex mutex;
  MeetingOfThreads meeting([&](Topic, RankId, const std::string&) {
    const std::lock_guard lock(mutex);
    for (const Door& door : doors()) seen.push_back(door);
  });
  EXPECT_THAT(join_all(meeting, {.tcp = true}, kSame), Each(IsEmpty()));
  EXPECT_FALSE(seen.empty());
  for (const Door& door : seen) EXPECT_EQ(door.address, "0100007F");  // 127.0.0.1
}

TEST(Joining, ARankWithAnotherSecretIsNamed) {
  MeetingOfThreads meeting;
  const auto said = join_all(meeting, {.patience = std::chrono::seconds(5)}, {"one", "one", "two"});
  // Whoever sees it first tells all; rank 2 sees two that differ from it.
  for (const std::string& one : said)
    EXPECT_THAT(one, AnyOf(HasSubstr("rank 2 has another PFEIFE_SECRET than rank "),
                           HasSubstr(" another PFEIFE_SECRET than rank 2")));
}

// One that knows everything but the secret: the rank's number and all that was said at the meeting.
TEST(Joining, AForgedGreetingIsDropped) {
  std::list<Socket> strangers;
  MeetingOfThreads meeting([&](Topic topic, RankId rank, const std::string&) {
    if (topic != Topic::Listens || rank != RankId{0}) return;
    for (const std::string& name : names_on_host())
      for (const std::uint64_t forged : {1, 2, 77}) {
        Greeting greeting{forged, {}};
        greeting.proof.fill('0');
        strangers.push_back(connect_on_host(name));
        strangers.back().write_all(&greeting, sizeof greeting);
      }
  });
  EXPECT_THAT(join_all(meeting, {}, kSame), Each(IsEmpty()));
  EXPECT_GE(strangers.size(), 3u);
}

TEST(Listening, IsAtTheAddressThatTheHostHas) {
  EXPECT_EQ(address_of(listen_at("127.0.0.1", 0)), "127.0.0.1");
  EXPECT_THAT(address_of(listen_at("localhost", 0)), ::testing::AnyOf("127.0.0.1", "::1"));
  EXPECT_EQ(address_of(listen_at("192.0.2.1", 0)), "");  // TEST-NET-1: of no host
  EXPECT_EQ(address_of(listen_on_port(0)), "");
}

TEST(Secrets, AreNeverTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(fresh_secret());
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_GT(seen.begin()->size(), 40u);
}

}  // namespace
}  // namespace pfeife
