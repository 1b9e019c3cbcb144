// What devices add to the runtime, piece by piece, on a stand-in for a card.
#include "runtime/device/device.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "planner/ir/basics/error.h"
#include "planner/schedules/families.h"
#include "runtime/device/rank_memory.h"
#include "runtime/transport/device_clock.h"
#include "runtime/transport/in_process_transport.h"
#include "tests/gpu/fake_card.h"
#include "tests/runtime/pipelines.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ::testing::ElementsAre;
using testing::fake_card;
using ::testing::HasSubstr;
using testing::kBetweenEvents;
using ::testing::Pair;
using testing::take_card_log;

std::string refusal_of(const std::string& name) {
  return pfeife::message_of([&] { open_device(name); });
}

TEST(OpenDevice, SaysWhatIsWrongAndWhatHelps) {
  EXPECT_EQ(open_device("cpu"), at::Device(at::kCPU));
  for (const char* name : {"gpu", "cuda:", "cuda:x", "cuda:-1", "CUDA", "cpu:0"})
    EXPECT_THAT(refusal_of(name),
                HasSubstr("unknown device '" + std::string(name) + "'; use cpu, cuda or cuda:N"))
        << name;
  if (refusal_of("cuda").empty()) GTEST_SKIP() << "there is a card: nothing to refuse";
  EXPECT_THAT(refusal_of("cuda"), HasSubstr("no CUDA device found"));
}

/// Notes the thread of its backward.
struct Witness : torch::autograd::Function<Witness> {
  static inline std::thread::id thread;
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    thread = std::this_thread::get_id();
    return gradients;
  }
};

void run_backward(at::Device device) {
  const at::Tensor x = at::ones({2}, device).set_requires_grad(true);
  const at::Tensor y = Witness::apply(x);
  torch::autograd::backward({y}, {at::ones({2}, device)});
}

c10::StreamId stream_of_this_thread() {
  return c10::impl::VirtualGuardImpl(fake_card().type()).getStream(fake_card()).id();
}

// LibTorch runs the backward passes on a device on a thread of the device's: ranks that share one
// would wait for each other there, and no observer of the rank's thread would see them.
// CUDA's pool hands out 32 streams of a priority, and then the first again.
TEST(OpenDevice, AsManyRanksShareACardAsItHasStreams) {
  const auto refusal = [](std::size_t ranks, at::Device device) {
    return pfeife::message_of([&] { check_streams(ranks, device); });
  };
  EXPECT_EQ(refusal(33, at::Device(at::kCPU)), "");
  EXPECT_EQ(refusal(32, at::Device(at::kCUDA, 0)), "");
  EXPECT_EQ(
      refusal(33, at::Device(at::kCUDA, 0)),
      "--device: 33 ranks would share a card, which has 32 streams for them: plan for at most "
      "32 devices, or give each rank a card");
}

TEST(DeviceThread, HasAStreamAndTheBackwardOfItsOwn) {
  const at::Device card = fake_card();
  run_backward(card);
  EXPECT_NE(Witness::thread, std::this_thread::get_id()) << "LibTorch has changed: no need of it";
  const c10::StreamId before = stream_of_this_thread();
  {
    const DeviceThread place(card);
    EXPECT_NE(stream_of_this_thread(), before);
    run_backward(card);
    EXPECT_EQ(Witness::thread, std::this_thread::get_id());
  }
  EXPECT_EQ(stream_of_this_thread(), before);
}

TEST(DeviceClock, TimesAreThoseOfTheEvents) {
  DeviceClock clock(fake_card());
  testing::count_event_times(true);
  for (int pass = 0; pass < 2; ++pass) {  // events are used again
    std::vector<Nanoseconds> marks;
    for (int i = 0; i < 5; ++i) marks.push_back(clock.mark());
    take_card_log();
    clock.read();
    EXPECT_THAT(take_card_log().finished, ElementsAre(stream_of_this_thread()));
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ(clock.time(marks[i]) - clock.time(marks[0]), i * kBetweenEvents);
  }
  testing::count_event_times(false);
}

// Rank 0 sends, rank 1's stream waits for rank 0's, and copies.
TEST(InProcessTransport, HandsATensorOfACardOverFromStreamToStream) {
  const at::Device card = fake_card();
  std::array<c10::StreamId, 2> streams{};
  std::array<const void*, 2> places{};
  at::Tensor received;
  take_card_log();
  run_ranks(2, card, [&](RankId rank, Transport& transport) {
    streams[rank.index()] = stream_of_this_thread();
    const Tag tag{0, 0, 0};
    if (rank == RankId{0}) {
      const at::Tensor sent = at::arange(6).reshape({2, 3}).to(card).t();
      places[0] = sent.storage().data();
      transport.send(RankId{1}, tag, {at::Tensor(), sent, at::ones({2})});
      return;
    }
    const Tensors message = transport.receive(RankId{0}, tag).tensors;
    ASSERT_EQ(message.size(), 3u);
    EXPECT_FALSE(message[0].defined());
    EXPECT_TRUE(message[2].device().is_cpu());
    received = message[1];
    places[1] = received.storage().data();
  });
  EXPECT_EQ(received.device(), card);
  EXPECT_TRUE(at::equal(received.cpu(), at::arange(6).reshape({2, 3}).t()));
  EXPECT_NE(places[0], places[1]);
  const testing::CardLog log = take_card_log();
  EXPECT_THAT(log.waits, ElementsAre(Pair(streams[1], streams[0])));
  EXPECT_THAT(log.borrowed, ElementsAre(streams[1]));
}

// By hand, in blocks of 64 bytes: the first rank takes 64 and 640 bytes and frees the 640, the
// second takes 2048 and frees what the first has left.
TEST(RankMemory, ABlockIsOfTheRankThatAskedForItWhoeverFreesIt) {
  const at::Device card = fake_card();
  const auto bytes = [&](std::int64_t n) {
    return at::empty({n}, at::TensorOptions().dtype(at::kByte).device(card));
  };
  RankMemory first(card);
  at::Tensor kept = bytes(10);
  bytes(600);
  EXPECT_EQ(first.allocated().now, Bytes{64});
  EXPECT_EQ(first.allocated().peak, Bytes{704});
  std::thread([&] {
    RankMemory second(card);
    const at::Tensor own = bytes(2048);
    kept.reset();
    EXPECT_EQ(second.allocated().now, Bytes{2048});
    EXPECT_EQ(second.allocated().peak, Bytes{2048});
  }).join();
  EXPECT_EQ(first.allocated().now, Bytes{0});
  first.reset_peak();
  EXPECT_EQ(first.allocated().peak, Bytes{0});
}

}  // namespace
}  // namespace pfeife
