// Clocks of ranks that are brought together.
#include "runtime/execute/host_clocks.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "runtime/transport/socket_transport.h"

namespace pfeife {
namespace {

/// Two ranks with sockets between them; `work` runs on a thread of each.
void run_two(const std::function<void(SocketTransport&)>& work) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      std::vector<Socket> sockets(2);
      sockets[1 - r] = Socket(ends[r]);
      SocketTransport transport(RankId{r}, std::move(sockets), false);
      work(transport);
      transport.finish();
    });
  for (std::thread& thread : threads) thread.join();
}

// The truth is known here: both ranks have one clock, to which rank 1 adds a second and 100 us a
// second (far more than real ones drift).
TEST(HostClocks, TimesOfAnotherHostAreThoseOfRankZeroWithinTheErrorThatIsStated) {
  run_two([](SocketTransport& transport) {
    const Nanoseconds begin = now();
    const bool other = transport.rank() == RankId{1};
    const auto off = [begin](Nanoseconds t) {
      return t + std::chrono::seconds(1) + (t - begin) / 10000;
    };
    HostClocks clocks(other ? "two" : "one", [&] { return other ? off(now()) : now(); });
    clocks.measure(transport);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const Nanoseconds middle = begin + std::chrono::milliseconds(100);
    clocks.measure(transport);
    if (other) {
      transport.send(RankId{0}, {9, 0, 0}, {at::tensor({off(middle).count(), middle.count()})});
      return;
    }
    const at::Tensor told = transport.receive(RankId{1}, {9, 0, 0}).tensors.at(0);
    const Nanoseconds truth{told[1].item<std::int64_t>()}, theirs{told[0].item<std::int64_t>()};
    DependencyGraph graph;
    graph.tasks = {{.kind = TaskKind::Transfer, .rank = RankId{0}, .peer = RankId{1}},
                   {.kind = TaskKind::Compute, .rank = RankId{1}}};
    // What the receiver says of a transfer has its start by the sender's clock.
    std::vector<std::vector<TaskRecord>> records(2);
    records[1] = {{TaskId{0}, truth, theirs}, {TaskId{1}, theirs, kUnknownEnd}};
    clocks.correct(graph, records, {RankId{0}, RankId{1}});
    EXPECT_EQ(records[1][0].start, truth);
    for (const Nanoseconds found : {records[1][0].end, records[1][1].start})
      EXPECT_LE(std::abs((found - truth).count()), clocks.error().count());
    EXPECT_EQ(records[1][1].end, kUnknownEnd);
    EXPECT_LE(clocks.error(), std::chrono::milliseconds(50)) << "of a busy machine";
    std::cout << "off by " << (records[1][1].start - truth).count() << " ns, stated "
              << clocks.error().count() << " ns\n";
  });
}

TEST(HostClocks, RanksOnOneHostHaveOneClock) {
  run_two([](SocketTransport& transport) {
    HostClocks clocks;
    clocks.measure(transport);
    clocks.measure(transport);
    EXPECT_EQ(clocks.error(), Nanoseconds{0});
    EXPECT_EQ(clocks.text(), "");
  });
}

}  // namespace
}  // namespace pfeife
