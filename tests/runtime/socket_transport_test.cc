// How the end of a rank reaches the others.
#include "runtime/transport/socket_transport.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <optional>
#include <thread>

#include "planner/ir/basics/error.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

std::array<Socket, 2> connected() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  return {Socket(ends[0]), Socket(ends[1])};
}

std::vector<Socket> sockets(Socket zero, Socket one, Socket two) {
  std::vector<Socket> all;
  for (Socket* socket : {&zero, &one, &two}) all.push_back(std::move(*socket));
  return all;
}

// Rank 2 is gone for rank 1, which says why and ends at once; rank 0, whose own connection to rank
// 2 still stands, must hear the reason before the farewell. Where threads decide, once is not
// enough.
TEST(SocketTransport, TheReasonComesBeforeTheFarewell) {
  const Tag tag{1, 0, 0};
  for (int i = 0; i < 500 && !HasFailure(); ++i) {
    auto [zero_to_one, one_to_zero] = connected();
    auto [one_to_two, two_to_one] = connected();
    auto [zero_to_two, two_to_zero] = connected();
    std::optional<SocketTransport> zero(
        std::in_place, RankId{0}, sockets(Socket(), std::move(zero_to_one), std::move(zero_to_two)),
        false);
    std::thread one([&, b = std::move(one_to_zero), c = std::move(one_to_two)]() mutable {
      SocketTransport transport(RankId{1}, sockets(std::move(b), Socket(), std::move(c)), false);
      EXPECT_THROW(transport.receive(RankId{2}, tag), RuntimeFault);
    });
    { const Socket gone = std::move(two_to_one); }
    EXPECT_EQ(message_of<RuntimeFault>([&] { zero->receive(RankId{1}, tag); }),
              "rank 2 ended without a farewell: it crashed or was killed");
    { const Socket gone = std::move(two_to_zero); }
    zero.reset();
    one.join();
  }
}

// Nobody reads at first, so all but the first message wait: more than a socket holds is ahead.
TEST(SocketTransport, OfMessagesThatWaitTheLeastTagGoesFirst) {
  auto [zero_to_one, one_to_zero] = connected();
  std::vector<Socket> to_one, to_zero;
  to_one.emplace_back(), to_one.push_back(std::move(zero_to_one));
  to_zero.push_back(std::move(one_to_zero)), to_zero.emplace_back();
  std::optional<SocketTransport> zero(std::in_place, RankId{0}, std::move(to_one), false);
  zero->send(RankId{1}, {1, 0, 0}, {at::zeros({1 << 22})});
  for (const Tag tag : {Tag{2, 1, 0}, Tag{1, 9, 0}, Tag{1, 5, 0}, Tag{1, 7, 0}, Tag{2, 0, 0}})
    zero->send(RankId{1}, tag, {at::zeros({1 << 16})});
  std::optional<SocketTransport> one(std::in_place, RankId{1}, std::move(to_zero), false);
  Nanoseconds before{0};
  for (const Tag tag :
       {Tag{1, 0, 0}, Tag{1, 5, 0}, Tag{1, 7, 0}, Tag{1, 9, 0}, Tag{2, 0, 0}, Tag{2, 1, 0}}) {
    const Nanoseconds arrived = one->receive(RankId{0}, tag).arrived;
    EXPECT_LT(before, arrived) << tag.step << " " << tag.task;
    before = arrived;
  }
  std::thread ends([&] { zero.reset(); });  // each waits for the other's farewell
  one.reset();
  ends.join();
}

// Parts of every length about the buffer's, some empty, and more than a socket takes at once; read
// in pieces of other lengths.
TEST(Socket, PartsWrittenTogetherAreReadInAnyPieces) {
  auto [from, to] = connected();
  std::vector<char> sent(3'000'000);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * i >> 3);
  const std::vector<std::size_t> lengths{1, 0, 15, 65'535, 65'536, 65'537, 0, 200'000, 2'000'000};
  std::vector<iovec> parts;
  std::size_t begin = 0;
  for (const std::size_t length : lengths)
    parts.push_back({sent.data() + begin, length}), begin += length;
  parts.push_back({sent.data() + begin, sent.size() - begin});
  std::thread writer([&, socket = &from] { EXPECT_TRUE(socket->write_all(parts)); });
  ReadAhead ahead;
  std::vector<char> read(sent.size());
  std::size_t at = 0;
  for (std::size_t length = 1; at < read.size(); length = 3 * length % 100'003) {
    length = std::min(length, read.size() - at);
    ASSERT_TRUE(ahead.read_all(to, read.data() + at, length));
    at += length;
  }
  writer.join();
  EXPECT_TRUE(read == sent);
  { const Socket gone = std::move(from); }
  errno = 1;
  EXPECT_FALSE(ahead.read_all(to, read.data(), 1));
  EXPECT_EQ(errno, 0);  // the end of the stream
}

TEST(SocketTransport, TheThreadThatComputesGivesWayToThoseThatMoveMessages) {
  auto [zero_to_one, one_to_zero] = connected();
  std::vector<Socket> to_one, to_zero;
  to_one.emplace_back(), to_one.push_back(std::move(zero_to_one));
  to_zero.push_back(std::move(one_to_zero)), to_zero.emplace_back();
  std::optional<SocketTransport> zero(std::in_place, RankId{0}, std::move(to_one), false);
  std::optional<SocketTransport> one(std::in_place, RankId{1}, std::move(to_zero), false);
  std::thread computes([&] {  // the thread of the tests keeps its own
    const auto nice_of = [](int thread) {
      return getpriority(PRIO_PROCESS, static_cast<id_t>(thread));
    };
    const int before = nice_of(gettid());
    SocketTransport::compute_behind_transfers();
    EXPECT_EQ(nice_of(gettid()), std::min(before + 2, 19));
    int others = 0;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
      if (const int id = std::stoi(thread.path().filename()); id != gettid()) {
        EXPECT_EQ(nice_of(id), before);
        ++others;
      }
    EXPECT_GE(others, 4);  // a reader and a writer each
  });
  computes.join();
  std::thread ends([&] { zero.reset(); });  // each waits for the other's farewell
  one.reset();
  ends.join();
}

}  // namespace
}  // namespace pfeife
