#include "sim/process_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "planner/ir/basics/error.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

PoolWork squares(std::size_t pieces, std::size_t workers, std::map<std::size_t, std::string>& out) {
  PoolWork work;
  work.pieces = pieces;
  work.workers = workers;
  work.run = [](std::size_t n) { return std::to_string(n * n); };
  work.name = [](std::size_t n) { return "piece " + std::to_string(n); };
  work.on_result = [&out](std::size_t n, std::string_view bytes) {
    EXPECT_TRUE(out.emplace(n, bytes).second);
  };
  return work;
}
/// The message of the RuntimeFault; and no child may be left.
std::string fault(const PoolWork& work) {
  std::string message;
  try {
    run_in_processes(work);
  } catch (const RuntimeFault& error) {
    message = error.what();
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD) << "a process is left";
  return message;
}

TEST(ProcessPool, EveryPieceIsDoneOnceWhateverTheNumberOfWorkers) {
  for (const std::size_t workers : {0, 1, 3, 8}) {
    std::map<std::size_t, std::string> out;
    EXPECT_EQ(fault(squares(100, workers, out)), "");
    EXPECT_EQ(out.size(), 100u);
    EXPECT_EQ(out[99], "9801");
  }
}

TEST(ProcessPool, NothingToDoStartsNobody) {
  std::map<std::size_t, std::string> out;
  EXPECT_EQ(fault(squares(0, 4, out)), "");
}

TEST(ProcessPool, LargeAndEmptyAnswersArriveWhole) {
  std::map<std::size_t, std::string> out;
  PoolWork work = squares(6, 2, out);
  work.run = [](std::size_t n) { return std::string(n * 1'000'000, static_cast<char>('a' + n)); };
  EXPECT_EQ(fault(work), "");
  for (std::size_t n = 0; n < 6; ++n)
    EXPECT_EQ(out[n], std::string(n * 1'000'000, static_cast<char>('a' + n)));
}

TEST(ProcessPool, AWorkerThatIsKilledNamesItsPieceAndStopsTheOthers) {
  std::map<std::size_t, std::string> out;
  PoolWork work = squares(1000, 3, out);
  work.run = [](std::size_t n) {
    if (n == 7) raise(SIGKILL);
    if (n > 7) pause();  // would hang for ever
    return std::string("x");
  };
  EXPECT_MESSAGE(fault(work));
}

TEST(ProcessPool, AnAbortIsAnErrorNotAHang) {
  std::map<std::size_t, std::string> out;
  PoolWork work = squares(3, 1, out);
  work.run = [](std::size_t n) {
    if (n == 2) raise(SIGABRT);
    return std::string("x");
  };
  EXPECT_MESSAGE(fault(work));
}

TEST(ProcessPool, AnExceptionInAWorkerComesThroughWithItsMessage) {
  std::map<std::size_t, std::string> out;
  PoolWork work = squares(10, 2, out);
  work.run = [](std::size_t n) {
    if (n == 4) throw std::runtime_error("out of luck");
    return std::string("x");
  };
  EXPECT_EQ(fault(work), "piece 4 failed: out of luck");
  work.workers = 1;
  work.run = [](std::size_t) -> std::string { _exit(3); };
  EXPECT_MESSAGE(fault(work));
}

TEST(ProcessPool, AnExceptionOfTheReceiverStopsTheWorkers) {
  std::map<std::size_t, std::string> out;
  PoolWork work = squares(100, 2, out);
  work.on_result = [](std::size_t, std::string_view) { throw RuntimeFault("stop"); };
  EXPECT_EQ(fault(work), "stop");
}

/// Where on_signal() writes: the test cannot see what a handler does in another process.
int answered = -1;
extern "C" void on_signal(int) { [[maybe_unused]] const auto written = write(answered, "x", 1); }

/// What run_in_processes() says of a piece that gets `number` while the caller answers it with
/// on_signal(), and how often on_signal() ran.
std::pair<std::string, int> after_signal(int number) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  answered = ends[1];
  const auto before = signal(number, on_signal);
  std::map<std::size_t, std::string> out;
  PoolWork work = squares(1, 1, out);
  work.run = [number](std::size_t) { return raise(number), std::string("done"); };
  const std::string message = fault(work);
  signal(number, before);
  close(ends[1]);
  char byte;
  int times = 0;
  while (read(ends[0], &byte, 1) == 1) ++times;
  close(ends[0]);
  return {message.empty() ? out[0] : message, times};
}

TEST(ProcessPool, TheCallersAnswersToSignalsAreNotGivenByItsWorkers) {
  EXPECT_EQ(after_signal(SIGINT), std::pair(std::string("done"), 0));
  const auto [message, times] = after_signal(SIGTERM);
  EXPECT_MESSAGE(message);
  EXPECT_EQ(times, 0);
}

}  // namespace
}  // namespace pfeife
