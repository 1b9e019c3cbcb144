// Work on streams: against another scheduler on random programs, and against a trace of DeepSeek.
#include "planner/ir/schedule/streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>

namespace pfeife {
namespace {

using Ns = Nanoseconds;

/// Time in steps of a nanosecond: at each, every piece whose stream is free is looked at.
struct SlowTimes {
  std::vector<std::int64_t> begin;
  std::int64_t span = 0, computing = 0, communicating = 0, both = 0;
  std::map<WorkKind, std::int64_t> exposed;
};
class SlowStreams {
 public:
  explicit SlowStreams(const std::vector<WorkPiece>& program) : program_(program) {
    times_.begin.assign(program.size(), -1);
  }

  SlowTimes run() {
    for (std::int64_t now = 0;; ++now) {
      while (begin_any(now)) {
      }
      if (std::ranges::all_of(times_.begin, [](std::int64_t b) { return b >= 0; }) && !runs(now))
        return std::move(times_);
      count(now);
      times_.span = now + 1;
    }
  }

 private:
  std::int64_t end(std::size_t w) const { return times_.begin[w] + program_[w].time.count(); }
  bool ended(std::size_t w, std::int64_t now) const {
    return times_.begin[w] >= 0 && end(w) <= now;
  }
  /// The longest way to the end, by trying all of them.
  std::int64_t way(std::size_t w) const {
    std::int64_t longest = 0;
    for (std::size_t next = w + 1; next < program_.size(); ++next)
      if (std::ranges::find(program_[next].after, w) != program_[next].after.end())
        longest = std::max(longest, way(next));
    return longest + program_[w].time.count();
  }
  /// A round: what has ended is known, then each free stream begins a piece.
  bool begin_any(std::int64_t now) {
    std::map<std::uint32_t, std::size_t> chosen;
    for (std::size_t w = 0; w < program_.size(); ++w) {
      const auto is_busy = [&](std::size_t v) {
        return program_[v].stream == program_[w].stream && times_.begin[v] >= 0 && end(v) > now;
      };
      bool waits = times_.begin[w] >= 0;
      for (std::size_t v = 0; v < program_.size(); ++v) waits = waits || is_busy(v);
      for (const std::uint32_t before : program_[w].after) waits = waits || !ended(before, now);
      if (waits) continue;
      const auto best = chosen.find(program_[w].stream);
      if (best == chosen.end() || way(w) > way(best->second)) chosen[program_[w].stream] = w;
    }
    for (const auto& [stream, w] : chosen) times_.begin[w] = now;
    return !chosen.empty();
  }
  bool runs(std::int64_t now) const {
    for (std::size_t w = 0; w < program_.size(); ++w)
      if (!ended(w, now)) return true;
    return false;
  }
  void count(std::int64_t now) {
    std::map<std::uint32_t, WorkKind> running;
    for (std::size_t w = 0; w < program_.size(); ++w)
      if (times_.begin[w] >= 0 && times_.begin[w] <= now && now < end(w))
        running[program_[w].stream] = program_[w].kind;
    bool computes = false;
    std::optional<WorkKind> sends;
    for (const auto& [stream, kind] : running) {
      if (kind <= WorkKind::WeightGradient) computes = true;
      if (kind > WorkKind::WeightGradient && !sends) sends = kind;
    }
    times_.computing += computes ? 1 : 0, times_.communicating += sends ? 1 : 0;
    times_.both += computes && sends ? 1 : 0;
    if (sends && !computes) ++times_.exposed[*sends];
  }

  const std::vector<WorkPiece>& program_;
  SlowTimes times_;
};

std::vector<WorkPiece> random_work(std::mt19937& random) {
  const auto below = [&](std::size_t most) { return static_cast<std::uint32_t>(random() % most); };
  const std::uint32_t streams = 1 + below(4);
  std::vector<WorkPiece> program(1 + below(14));
  for (std::uint32_t w = 0; w < program.size(); ++w) {
    WorkPiece& work = program[w];
    work.stream = below(streams), work.kind = static_cast<WorkKind>(below(kWorkKinds));
    work.time = Ns{below(4) == 0 ? below(2) : below(12)};
    for (std::uint32_t before = 0; before < w; ++before)
      if (below(5) == 0) work.after.push_back(before);
  }
  return program;
}

TEST(Streams, AreAsAnotherSchedulerOfRandomProgramsHasThemToTheNanosecond) {
  std::mt19937 random(7);
  int overlapped = 0, exposed = 0;
  for (int round = 0; round < 600; ++round) {
    const std::vector<WorkPiece> program = random_work(random);
    const StreamTimes times = run_streams(program);
    const SlowTimes slow = SlowStreams(program).run();
    ASSERT_EQ(times.span.count(), slow.span) << round;
    for (std::size_t w = 0; w < program.size(); ++w)
      ASSERT_EQ(times.begin[w].count(), slow.begin[w]) << round << ": " << w;
    EXPECT_EQ(times.computing.count(), slow.computing);
    EXPECT_EQ(times.communicating.count(), slow.communicating);
    EXPECT_EQ(times.both.count(), slow.both);
    for (std::size_t k = 0; k < kWorkKinds; ++k) {
      const auto found = slow.exposed.find(static_cast<WorkKind>(k));
      EXPECT_EQ(times.exposed[k].count(), found == slow.exposed.end() ? 0 : found->second);
      exposed += times.exposed[k] > Ns{0};
    }
    overlapped += times.both > Ns{0};
  }
  EXPECT_GT(overlapped, 100);
  EXPECT_GT(exposed, 100);
}

/// One forward and one backward chunk of four layers with experts beside each other on an H800: 64
/// ranks of experts, 4,096 tokens. Sums of kernels over all four layers, us (DeepSeek's
/// profile-data on GitHub, train.json). The second stream of weight gradients counts for the 6.1 ms
/// in which the first does not compute. A layer has 15 products of weight gradients, 8 of them of
/// its four experts. Its 16 fp8 products are 7 of forward, 7 of input gradients and 2 that are
/// recomputed. Which pass the kernels without a name are of, the trace does not say.
struct DeepSeekTrace {
  static constexpr int kLayers = 4;
  std::vector<WorkPiece> program;

  std::uint32_t add(WorkKind kind, double sum_us, std::vector<std::uint32_t> after) {
    program.push_back({kind, communicates(kind) ? kCommunicationStream : kComputeStream,
                       Ns{std::llround(sum_us * 1e3 / kLayers)}, std::move(after)});
    return static_cast<std::uint32_t>(program.size() - 1);
  }
  /// `share`: of kernels without a name, those of forward.
  explicit DeepSeekTrace(double share) {
    constexpr double kUnnamed = 33035, kGrouped = 22926, kProducts = 18838;
    constexpr double kWeights = 21401 + (124300 - 118165);
    constexpr double kNotify = 23610.0 / 12 * kLayers, kOther = 1491.0 / 4;
    constexpr double kSend = 17383 + 8968 + kOther, kSendAgain = 13621 + kNotify + kOther,
                     kReturn = 49448.0 / 2 + kNotify + kOther;
    const double forward = share * kUnnamed / 2, backward = (1 - share) * kUnnamed / 2;
    std::vector<std::uint32_t> last;
    for (int layer = 0; layer < kLayers; ++layer) {
      last = {add(WorkKind::Compute, 4948 + kProducts * 5 / 16 + forward, last)};
      last = {add(WorkKind::Dispatch, kSend, last)};
      last = {add(WorkKind::Compute, kGrouped / 2 + kProducts * 2 / 16 + forward, last)};
      last = {add(WorkKind::Combine, kReturn, last)};
    }
    last.clear();
    for (int layer = 0; layer < kLayers; ++layer) {
      last = {add(WorkKind::Combine, kSendAgain, last)};
      last = {add(WorkKind::Compute, kGrouped / 2 + kProducts * 2 / 16 + backward, last)};
      add(WorkKind::WeightGradient, kWeights * 8 / 15, last);
      last = {add(WorkKind::Dispatch, kReturn, last)};
      last = {add(WorkKind::Compute, 17017 + kProducts * 7 / 16 + backward, last)};
      add(WorkKind::WeightGradient, kWeights * 7 / 15, last);
    }
  }
};

TEST(Streams, OfDeepSeeksPairOfChunksLastAsItsTraceDoes) {
  for (const double share : {0.25, 0.33, 0.5}) {
    const StreamTimes times = run_streams(DeepSeekTrace(share).program);
    const auto ms = [](Ns time) { return static_cast<double>(time.count()) / 1e6; };
    EXPECT_NEAR(ms(times.span), 129.0, 0.03 * 129.0) << share;
    EXPECT_NEAR(ms(times.computing), 124.3, 0.1);
    EXPECT_NEAR(ms(times.communicating), 114.5, 0.1);
    EXPECT_NEAR(ms(times.both), 110.3, 0.035 * 110.3) << share;
  }
}

}  // namespace
}  // namespace pfeife
