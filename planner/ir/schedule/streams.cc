#include "planner/ir/schedule/streams.h"

#include <algorithm>
#include <optional>
#include <set>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

class StreamScheduler {
 public:
  explicit StreamScheduler(std::span<const WorkPiece> program)
      : program_(program),
        way_(program.size()),
        waits_for_(program.size()),
        followers_(program.size()) {
    std::size_t streams = 0;
    for (std::size_t w = 0; w < program.size(); ++w) {
      streams = std::max<std::size_t>(streams, program[w].stream + 1);
      waits_for_[w] = program[w].after.size();
      for (const std::uint32_t before : program[w].after) {
        PFEIFE_CHECK(before < w, "piece ", w, " waits for piece ", before);
        followers_[before].push_back(static_cast<std::uint32_t>(w));
      }
    }
    for (std::size_t w = program.size(); w-- > 0;) {
      for (const std::uint32_t next : followers_[w]) way_[w] = std::max(way_[w], way_[next]);
      way_[w] += program[w].time;
    }
    ready_.resize(streams);
    running_.resize(streams);
    times_.begin.resize(program.size());
    times_.busy.resize(streams);
  }

  StreamTimes scheduled() {
    for (std::size_t w = 0; w < program_.size(); ++w)
      if (waits_for_[w] == 0) make_ready(static_cast<std::uint32_t>(w));
    while (true) {
      while (end_pieces() || begin_pieces()) {
      }
      std::optional<Nanoseconds> next;
      for (const auto& piece : running_)
        if (piece) next = std::min(next.value_or(end(*piece)), end(*piece));
      if (!next) break;
      count_until(*next);
    }
    times_.span = now_;
    return std::move(times_);
  }

 private:
  Nanoseconds end(std::uint32_t piece) const { return times_.begin[piece] + program_[piece].time; }
  void make_ready(std::uint32_t piece) {
    ready_[program_[piece].stream].insert({-way_[piece], piece});
  }
  bool end_pieces() {
    bool any = false;
    for (auto& piece : running_) {
      if (!piece || end(*piece) > now_) continue;
      any = true;
      for (const std::uint32_t next : followers_[*piece])
        if (--waits_for_[next] == 0) make_ready(next);
      piece.reset();
    }
    return any;
  }
  bool begin_pieces() {
    bool any = false;
    for (std::size_t stream = 0; stream < running_.size(); ++stream) {
      if (running_[stream] || ready_[stream].empty()) continue;
      const std::uint32_t piece = ready_[stream].begin()->second;
      ready_[stream].erase(ready_[stream].begin());
      running_[stream] = piece, times_.begin[piece] = now_;
      times_.busy[stream] += program_[piece].time;
      any = true;
    }
    return any;
  }
  void count_until(Nanoseconds next) {
    const Nanoseconds passed = next - now_;
    const WorkPiece* communicating = nullptr;
    bool computes = false;
    for (const auto& piece : running_) {
      if (!piece) continue;
      const WorkPiece& work = program_[*piece];
      if (!communicates(work.kind))
        computes = true;
      else if (communicating == nullptr)
        communicating = &work;
    }
    if (computes) times_.computing += passed;
    if (communicating != nullptr) times_.communicating += passed;
    if (communicating != nullptr && computes) times_.both += passed;
    if (communicating != nullptr && !computes)
      times_.exposed[static_cast<std::size_t>(communicating->kind)] += passed;
    now_ = next;
  }

  const std::span<const WorkPiece> program_;
  std::vector<Nanoseconds> way_;        // [piece] to the end of the program
  std::vector<std::size_t> waits_for_;  // [piece] how many that have not ended
  std::vector<std::vector<std::uint32_t>> followers_;
  std::vector<std::set<std::pair<Nanoseconds, std::uint32_t>>> ready_;  // [stream] longest first
  std::vector<std::optional<std::uint32_t>> running_;                   // [stream]
  Nanoseconds now_{0};
  StreamTimes times_;
};

}  // namespace

StreamTimes run_streams(std::span<const WorkPiece> program) {
  return StreamScheduler(program).scheduled();
}

}  // namespace pfeife
