// Ranks as processes over NCCL, on stand-ins for the card and for NCCL: what the transport, the
// executor and the launcher do, in the strictest order and in loose ones. No card has any part in
// it.
#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "runtime/transport/nccl_transport.h"
#include "tests/runtime/processes.h"

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime_api.h>)
#include <nccl.h>

#include <type_traits>

#define PFEIFE_HAS_NCCL_H
#endif

namespace pfeife {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Clock = std::chrono::steady_clock;

#ifdef PFEIFE_HAS_NCCL_H
// Own declarations are those of the header: values, places in the configuration, and functions but
// for the names of their types.
static_assert(int{ncclSuccess} == nccl::kSuccess && int{ncclInProgress} == nccl::kInProgress);
static_assert(int{ncclInt8} == nccl::kInt8 && int{ncclUint8} == nccl::kUint8 &&
              int{ncclInt32} == nccl::kInt32 && int{ncclInt64} == nccl::kInt64 &&
              int{ncclFloat16} == nccl::kFloat16 && int{ncclFloat32} == nccl::kFloat32 &&
              int{ncclFloat64} == nccl::kFloat64 && int{ncclBfloat16} == nccl::kBfloat16);
static_assert(int{ncclSum} == nccl::kSum && NCCL_SPLIT_NOCOLOR == nccl::kNoColor);
static_assert(NCCL_CONFIG_UNDEF_INT == nccl::kUndefined && NCCL_VERSION_CODE >= nccl::kOldest);
static_assert(sizeof(ncclUniqueId) == sizeof(nccl::UniqueId));
static_assert(sizeof(nccl::Config) <= sizeof(ncclConfig_t));
#define PFEIFE_SAME_PLACE(theirs, ours) \
  static_assert(offsetof(ncclConfig_t, theirs) == offsetof(nccl::Config, ours))
PFEIFE_SAME_PLACE(size, size);
PFEIFE_SAME_PLACE(magic, magic);
PFEIFE_SAME_PLACE(version, version);
PFEIFE_SAME_PLACE(blocking, blocking);
PFEIFE_SAME_PLACE(cgaClusterSize, cga_cluster_size);
PFEIFE_SAME_PLACE(minCTAs, min_ctas);
PFEIFE_SAME_PLACE(maxCTAs, max_ctas);
PFEIFE_SAME_PLACE(netName, net_name);
PFEIFE_SAME_PLACE(splitShare, split_share);
#undef PFEIFE_SAME_PLACE

/// A type as the calling convention sees it: enums as int, pointers as pointers.
template <class T>
using Passed = std::conditional_t<
    std::is_pointer_v<T>, void*,
    std::conditional_t<std::is_enum_v<T>, int,
                       std::conditional_t<std::is_class_v<T>, char[sizeof(T)], T>>>;
template <class A, class B>
constexpr bool kPassedAlike = false;
template <class R, class... A, class S, class... B>
constexpr bool kPassedAlike<R (*)(A...), S (*)(B...)> =
    std::is_same_v<void(Passed<R>*, Passed<A>*...), void(Passed<S>*, Passed<B>*...)>;
#define PFEIFE_SAME_CALL(name) \
  static_assert(kPassedAlike<decltype(&nccl##name), decltype(NcclLibrary::name)>)
PFEIFE_SAME_CALL(GetVersion);
PFEIFE_SAME_CALL(GetUniqueId);
PFEIFE_SAME_CALL(CommInitRankConfig);
PFEIFE_SAME_CALL(CommSplit);
PFEIFE_SAME_CALL(CommGetAsyncError);
PFEIFE_SAME_CALL(CommFinalize);
PFEIFE_SAME_CALL(CommDestroy);
PFEIFE_SAME_CALL(CommAbort);
PFEIFE_SAME_CALL(GroupStart);
PFEIFE_SAME_CALL(GroupEnd);
PFEIFE_SAME_CALL(Send);
PFEIFE_SAME_CALL(Recv);
PFEIFE_SAME_CALL(AllReduce);
PFEIFE_SAME_CALL(GetErrorString);
PFEIFE_SAME_CALL(GetLastError);
#undef PFEIFE_SAME_CALL
#endif

TEST(NcclHeader, HasWhatIsDeclaredHere) {
#ifdef PFEIFE_HAS_NCCL_H
  SUCCEED() << "by the compiler, with NCCL " << NCCL_VERSION_CODE;
#else
  GTEST_SKIP() << "nccl.h and CUDA's headers are not installed here";
#endif
}

class Nccl : public testing::ProcessTest {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(PFEIFE_NCCL_RANKS))
      GTEST_SKIP() << "the stand-ins' program is where this was built";
    testing::ProcessTest::SetUp();
  }
  testing::Ended end_of(const std::vector<std::string>& words, const std::string& nccl,
                        std::chrono::seconds limit = testing::kLong,
                        testing::Started::Variables more = {}) {
    std::vector<std::string> program{PFEIFE_NCCL_RANKS};
    program.insert(program.end(), words.begin(), words.end());
    more.try_emplace("PFEIFE_NCCL", PFEIFE_FAKE_NCCL);
    more["PFEIFE_FAKE_NCCL"] = nccl;
    const auto begin = Clock::now();
    const testing::Ended ended = start(program, more)->wait(limit);
    took_ = std::chrono::duration<double>(Clock::now() - begin).count();
    return ended;
  }
  double took_ = 0;
};

std::ptrdiff_t lines(const std::string& text) { return std::ranges::count(text, '\n'); }

// Families, long skips, ties, recomputation and NCCL's manners, by chance; the tolerance is that of
// ranks as threads. PFEIFE_NCCL_RUNS=N: so many runs instead of some, PFEIFE_NCCL_FIRST=N: from
// this on. A run is the same whichever was the first.
TEST_F(Nccl, RunsGiveTheGradientsOfTheUnsplitModel) {
  const auto number_in = [](const char* variable, int otherwise) {
    const char* given = std::getenv(variable);
    return given ? std::atoi(given) : otherwise;
  };
  constexpr int kAtOnce = 480;
  const std::pair<int, int> shares[] = {{2, 8}, {3, 8}, {4, 6}, {8, 2}};  // ranks, of 24
  const int first = number_in("PFEIFE_NCCL_FIRST", 1);
  const int last = first - 1 + number_in("PFEIFE_NCCL_RUNS", 24);
  double largest = 0;
  for (int begin = first; begin <= last; begin += kAtOnce) {
    const int end = std::min(last, begin + kAtOnce - 1);
    const auto start = Clock::now();
    int offset = 0;
    for (const auto& [ranks, share] : shares) {
      const auto of_kind = [&, most = share](int run) {  // up to this run
        return run / 24 * most + std::clamp(run % 24 - offset, 0, most);
      };
      const int done = of_kind(begin - 1), count = of_kind(end) - done;
      offset += share;
      if (count == 0) continue;
      const testing::Ended ended =
          end_of({"runs", std::to_string(ranks), std::to_string(done + 1), std::to_string(count)},
                 "", std::chrono::seconds(60 + 10 * count));
      ASSERT_EQ(ended.code, 0) << ended.text;
      std::cout << ended.text << std::flush;
      largest = std::max(largest, std::stod(ended.text.substr(ended.text.rfind(' '))));
    }
    std::cout << "runs " << begin << " to " << end << " of " << last << " took "
              << std::chrono::duration<double>(Clock::now() - start).count()
              << " s, largest difference so far " << largest << std::endl;
  }
}

TEST_F(Nccl, StepsEndInTheStrictestOrder) {
  for (const char* nccl : {"strict", "ordered", "ordered delay=1000"})
    for (const bool queue_a_pair : {false, true}) {
      testing::Started::Variables more;
      if (queue_a_pair) more["PFEIFE_TEST_QUEUES"] = "edge";
      const testing::Ended ended = end_of({"step", "3"}, nccl, testing::kLong, more);
      EXPECT_EQ(ended.code, 0) << ended.text;
      EXPECT_EQ(ended.text, "three steps\n");
    }
}

// Every wait for an event, and every hold of what is sent: without it, the race detector of the
// stand-in card has something to say. What is received and summed up has another owner until it is
// used.
TEST_F(Nccl, WhatIsLeftOutIsReported) {
  for (const bool queue_a_pair : {false, true}) {
    testing::Started::Variables more;
    if (queue_a_pair) more["PFEIFE_TEST_QUEUES"] = "edge";
    const testing::Ended ended =
        end_of({"mutations", "3"}, "ordered delay=100", 2 * testing::kLong, more);
    EXPECT_EQ(ended.code, 0) << ended.text;
    EXPECT_THAT(ended.text, HasSubstr(" wait reported\n"));
    EXPECT_THAT(ended.text, HasSubstr(" hold of a SEND reported\n"));
    EXPECT_THAT(ended.text, Not(HasSubstr("wait unnoticed")));
    EXPECT_THAT(ended.text, Not(HasSubstr("hold of a SEND unnoticed")));
    std::cout << ended.text;
  }
}

// Twenty estimated steps, and never less than two minutes.
TEST(HangDeadline, IsAMultipleOfTheEstimatedStepWithAFloor) {
  EXPECT_EQ(hang_deadline(std::chrono::milliseconds(300)), std::chrono::minutes(2));
  EXPECT_EQ(hang_deadline(std::chrono::seconds(6)), std::chrono::minutes(2));
  EXPECT_EQ(hang_deadline(std::chrono::seconds(30)), std::chrono::minutes(10));
}

// Goal: 20 us. The race detector's part is in it.
TEST_F(Nccl, WhatAnEntryOfARowCostsTheHostIsReported) {
  const testing::Ended ended = end_of({"host", "2"}, "ordered");
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("host, of an entry of the row: "));
  std::cout << ended.text;
}

// All of the graph's types, every view that only describes memory, as a message and as a summand.
TEST_F(Nccl, EveryFormOfATensorArrives) {
  for (const char* nccl : {"strict", "ordered delay=200"}) {
    const testing::Ended ended = end_of({"forms", "2"}, nccl);
    EXPECT_EQ(ended.code, 0) << ended.text;
    EXPECT_EQ(ended.text, "16 types\n");
  }
}

// One sum over all ranks says whether a step is skipped, and the norm that clipping needs.
TEST_F(Nccl, LossScaleAndClippingAreThoseOfRanksAsThreads) {
  for (const char* nccl : {"strict", "ordered delay=200"}) {
    const testing::Ended ended = end_of({"scaled", "3"}, nccl);
    EXPECT_EQ(ended.code, 0) << ended.text;
    EXPECT_TRUE(std::regex_search(ended.text, std::regex("^[1-9] of 12 steps update, scale ")))
        << ended.text;
  }
  for (const char* zero : {"0", "1"}) {
    const testing::Ended ended = end_of({"scaled", "2", zero}, "ordered delay=200");
    EXPECT_EQ(ended.code, 0) << "two replicas, ZeRO " << zero << ": " << ended.text;
  }
}

// A rank killed where it stands: the others, held up in NCCL, end with one message.
TEST_F(Nccl, AKilledRankEndsAllWithOneMessage) {
  double longest = 0;
  for (const auto& [rank, cell] : {std::pair{0, 0}, {1, 4}, {2, 7}, {1, 12}, {0, 12}})
    for (const char* nccl : {"strict", "ordered"}) {
      const testing::Ended ended =
          end_of({"step", "3", std::to_string(rank), std::to_string(cell)}, nccl);
      EXPECT_EQ(ended.code, 4) << ended.text;
      EXPECT_EQ(lines(ended.text), 1) << ended.text;
      EXPECT_THAT(ended.text,
                  HasSubstr("rank " + std::to_string(rank) + " was killed by signal 9"));
      longest = std::max(longest, took_);
    }
  std::cout << "longest from start to end: " << longest << " s\n";
}

TEST_F(Nccl, ACallThatFailsEndsAllWithOneMessage) {
  for (const char* manner : {"strict", "ordered"}) {
    const testing::Ended ended = end_of({"step", "3"}, std::string(manner) + " fail=9@1");
    EXPECT_EQ(ended.code, 4) << ended.text;
    EXPECT_EQ(lines(ended.text), 1) << ended.text;
    EXPECT_THAT(ended.text, HasSubstr("rank 1 failed at "));
    EXPECT_THAT(ended.text, HasSubstr("NCCL says unhandled system error"));
    EXPECT_THAT(ended.text, HasSubstr("; last finished: "));
  }
}

// The deadline is two seconds here.
TEST_F(Nccl, AnExchangeThatNeverHappensEndsAllWithOneMessage) {
  for (const char* manner : {"strict", "ordered"}) {
    const testing::Ended ended =
        end_of({"step", "3", "-1", "-1", "2"}, std::string(manner) + " never=9@1");
    EXPECT_EQ(ended.code, 4) << ended.text;
    EXPECT_EQ(lines(ended.text), 1) << ended.text;
    EXPECT_TRUE(std::regex_search(
        ended.text, std::regex("rank . waits in vain at .* for 2 s; last finished: ")))
        << ended.text;
  }
}

// Before anything starts, by our own launcher.
TEST_F(Nccl, RefusesRanksThatDoNotFit) {
  testing::Ended ended = end_of({"one_card", "2"}, "strict");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.text, HasSubstr("ranks 0 and 1 have one card (card 0); each rank needs its "
                                    "own: see LOCAL_RANK"));
  EXPECT_EQ(lines(ended.text), 1) << ended.text;
  ended = end_of({"step", "2"}, "strict version=22703@1");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.text, HasSubstr("rank 0 has NCCL 2.28.9, rank 1 has 2.27.3; install one"));
  EXPECT_EQ(lines(ended.text), 1) << ended.text;
}

// Before anything starts.
TEST_F(Nccl, RefusesALibraryThatDoesNotDo) {
  testing::Ended ended = end_of({"step", "2"}, "", testing::kLong, {{"PFEIFE_NCCL", "no/such.so"}});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.text, HasSubstr("no/such.so: NCCL cannot be loaded"));
  ended = end_of({"step", "2"}, "", testing::kLong, {{"PFEIFE_NCCL", "libz.so.1"}});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.text, HasSubstr("libz.so.1: is no NCCL, or too old: it has no ncclGetVersion"));
  ended = end_of({"step", "2"}, "version=21403");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.text, HasSubstr("is NCCL 2.14.3; at least 2.18.1 is needed"));
}

}  // namespace
}  // namespace pfeife
