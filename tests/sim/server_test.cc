// The simulation server: what becomes of its pieces, of itself and of those who use it.
#include "sim/server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "planner/ir/basics/error.h"
#include "sim/engine.h"
#include "tests/sim/sim_test.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

using testing::GraphByHand;

class SimulationServer : public testing::SimulatorTest {
 protected:
  Cluster cluster = uniform_cluster(2, DeviceKind{}, {1e9}, Nanoseconds{100});

  /// So many runs of one task that takes n + 1 ns.
  std::string request(std::size_t n, std::uint64_t runs = 1) const {
    GraphByHand hand(cluster, 1, Links::Delay);
    hand.compute(0, Nanoseconds{static_cast<std::int64_t>(n + 1)});
    EngineWork work{.last = runs};
    work.workload = workload_of(hand.job());
    return to_bytes(work);
  }
  /// One that goes on for hours.
  std::string endless() const { return request(0, std::uint64_t{1} << 60); }

  ServerWork pieces(std::size_t count, std::size_t workers = 2) {
    return {.pieces = count,
            .workers = workers,
            .request = [this](std::size_t n) { return request(n); },
            .name = [](std::size_t n) { return "piece " + std::to_string(n); },
            .on_result =
                [this](std::size_t n, std::string_view bytes) {
                  EXPECT_TRUE(results.emplace(n, std::string(bytes)).second);
                }};
  }
  /// What the RuntimeFault says; "" = there is none.
  static std::string fault(const ServerWork& work) {
    try {
      run_by_server(work);
    } catch (const RuntimeFault& error) {
      return error.what();
    }
    return "";
  }
  std::map<std::size_t, std::string> results;
};

/// A process's state and parent; '-' = there is none.
std::pair<char, pid_t> state(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  if (!std::getline(in, line)) return {'-', 0};
  std::istringstream rest(line.substr(line.rfind(')') + 2));
  char letter = '-';
  pid_t parent = 0;
  rest >> letter >> parent;
  return {letter, parent};
}
bool runs(pid_t process) {
  const char letter = state(process).first;
  return letter != '-' && letter != 'Z' && letter != 'X';
}
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (std::isdigit(static_cast<unsigned char>(name[0])) == 0) continue;
    const auto process = static_cast<pid_t>(std::stol(name));
    if (state(process).second == parent && runs(process)) found.push_back(process);
  }
  return found;
}
pid_t child_of(pid_t parent) {
  for (;;)
    if (const auto found = children_of(parent); !found.empty()) return found.front();
}
pid_t server() {
  const Channel channel = connect_to_server();
  close(channel.file);
  return channel.server;
}

TEST_F(SimulationServer, EveryPieceIsDoneOnceWhateverTheNumberOfWorkers) {
  for (const std::size_t workers : {0U, 1U, 3U, 8U}) {
    results.clear();
    EXPECT_EQ(fault(pieces(40, workers)), "");
    ASSERT_EQ(results.size(), 40u);
    for (std::size_t n = 0; n < 40; ++n) {
      const std::array<std::int64_t, 2> ends{1, static_cast<std::int64_t>(n + 1)};
      EXPECT_EQ(results[n], std::string(reinterpret_cast<const char*>(ends.data()), sizeof ends));
    }
  }
  EXPECT_EQ(fault(pieces(0)), "");
}

TEST_F(SimulationServer, AnswersThatFillTheChannelArriveWholeWhileOthersCome) {
  ServerWork work = pieces(6);
  work.request = [&](std::size_t n) { return request(n, n == 0 ? 200'000 : 1); };
  EXPECT_EQ(fault(work), "");
  EXPECT_EQ(results.size(), 6u);
  EXPECT_EQ(results[0].size(), 200'000 * 2 * sizeof(std::int64_t));
}

TEST_F(SimulationServer, WhatItCannotReadIsAnError) {
  ServerWork work = pieces(1);
  const std::string whole = request(0);
  std::string sent = whole;
  work.request = [&](std::size_t) { return sent; };
  sent[0] = static_cast<char>(sent[0] + 1);
  EXPECT_MESSAGE(fault(work));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(engine_work(whole.substr(0, size)), RuntimeFault) << size;
  EXPECT_THROW(engine_work(whole + "x"), RuntimeFault);
  EXPECT_EQ(to_bytes(engine_work(whole)), whole);
}

TEST_F(SimulationServer, APieceThatIsKilledIsNamed) {
  ServerWork work = pieces(2);
  work.request = [&](std::size_t n) {
    if (n == 0) return endless();
    kill(child_of(server()), SIGKILL);
    return request(n);
  };
  EXPECT_MESSAGE(fault(work));
}

TEST_F(SimulationServer, IfItIsKilledSoAreItsPiecesAndTheNextCallStartsAnother) {
  pid_t child = 0, first = server();
  ServerWork work = pieces(2);
  work.request = [&](std::size_t n) {
    if (n == 0) return endless();
    child = child_of(first);
    kill(first, SIGKILL);
    while (runs(first)) {
    }
    return request(n);
  };
  EXPECT_MESSAGE(fault(work));
  while (runs(child)) {
  }
  results.clear();
  EXPECT_EQ(fault(pieces(3)), "");
  EXPECT_NE(server(), first);
}

TEST_F(SimulationServer, AnExceptionOfTheReceiverStopsTheOthers) {
  ServerWork work = pieces(2);
  work.request = [&](std::size_t n) { return n == 0 ? endless() : request(n); };
  work.on_result = [](std::size_t, std::string_view) { throw RuntimeFault("stop"); };
  EXPECT_EQ(fault(work), "stop");
  while (!children_of(server()).empty()) {
  }
}

TEST_F(SimulationServer, EndsWithItsUser) {
  end_of_server(server());  // the user below shall start its own
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t user = fork();
  if (user == 0) {
    ServerWork work = pieces(2);
    work.request = [&](std::size_t n) {
      if (n == 0) return endless();
      const std::array<pid_t, 2> started{server(), child_of(server())};
      if (write(ends[1], started.data(), sizeof started) == sizeof started) kill(getpid(), SIGKILL);
      _exit(1);
    };
    fault(work);
    _exit(1);
  }
  std::array<pid_t, 2> started{};
  ASSERT_EQ(read(ends[0], started.data(), sizeof started), ssize_t{sizeof started});
  waitpid(user, nullptr, 0);
  for (const pid_t process : started)
    while (runs(process)) {
    }
  close(ends[0]);
  close(ends[1]);
}

std::atomic<int> forks = 0;

TEST_F(SimulationServer, TheCallerDoesNotFork) {
  pthread_atfork([] { ++forks; }, nullptr, nullptr);
  end_of_server(server());
  forks = 0;
  GraphByHand hand(cluster, 2, Links::Shared);
  hand.compute(0, Nanoseconds{9});
  EXPECT_EQ(simulate_all(std::vector{hand.job(), hand.job()})[1].step_time, Nanoseconds{9});
  EXPECT_EQ(forks, 0);
}

TEST_F(SimulationServer, ThreadsSimulateAtOnce) {
  std::vector<std::thread> threads;
  std::array<std::vector<SimulationResult>, 4> found;
  for (std::size_t t = 0; t < found.size(); ++t)
    threads.emplace_back([&, t] {
      std::vector<GraphByHand> hands;
      for (std::size_t n = 0; n < 10; ++n) {
        hands.emplace_back(cluster, 1, Links::Delay);
        hands.back().compute(0, Nanoseconds{static_cast<std::int64_t>(100 * t + n)});
      }
      std::vector<SimulationJob> jobs;
      for (const GraphByHand& hand : hands) jobs.push_back(hand.job());
      found[t] = simulate_all(jobs);
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < found.size(); ++t) {
    ASSERT_EQ(found[t].size(), 10u);
    for (std::size_t n = 0; n < 10; ++n)
      EXPECT_EQ(found[t][n].step_time, Nanoseconds{static_cast<std::int64_t>(100 * t + n)});
  }
}

TEST_F(SimulationServer, AnInterruptOfTheKeyboardDoesNotReachIt) {
  EXPECT_NE(getpgid(server()), getpgrp());
}

}  // namespace
}  // namespace pfeife
