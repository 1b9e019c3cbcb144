// SEND and RECV by the time their values are ready, REDUCE_GRAD of stages that share parameters by
// the time their gradients are.
//
// The compute-only schedule is run with links that never contend, and everything that happens is
// put into one list: an action at the time it starts, a transfer at the time its value is made,
// SEND and RECV side by side, a reduction at the time its last gradient is made, all its
// REDUCE_GRADs side by side. Every rank's row is what that list says about the rank.
//
// No deadlock, whatever the queues and whether transfers and reductions block or not. Take any
// moment of an execution and the first entry x of the list that has not been executed. What x waits
// for is: entries before it in a row (rank order, blocking), transfers before it in a queue (queues
// follow the rows, the rows follow the list), the actions that make its inputs (in the list before
// it, because the run executed them first), and its partners (the same entry). All of these come
// before x in the list, so they are done, and x can go. So something can always go until everything
// is done.
//
// Why this order is fast: a queue in the order of readiness never lets a transfer wait for one that
// is not there yet. Transfers that take no time are run as if they took a 1024th of a nanosecond:
// then values made earlier go first, as they would with any real link. Ties go to transfers, then
// reductions, then actions (an action may need the value, no transfer needs the action), then to
// the lower sender, its position, the lower edge.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <queue>
#include <tuple>

#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/action_time.h"
#include "planner/ir/schedule/lowering.h"

namespace pfeife::lowering {
namespace {

constexpr std::int64_t kUnknown = -1;
constexpr std::int64_t kTicks = 1024;  // a nanosecond, as the run below counts time

class FreeRun {
 public:
  FreeRun(const Schedule& schedule, const Context& context, bool reduce)
      : schedule_(schedule), context_(context), ranks_(schedule.ranks()) {
    if (reduce) reductions_.emplace(schedule, context);
    gradient_ready_.assign(context.stages.stages, 0);
    last_ = last_forwards(schedule, context.stages.stages);
    result_.rows.resize(schedule.ranks());
    for (std::size_t r = 0; r < schedule.ranks(); ++r)
      result_.rows[r].reserve(3 * schedule.rows[r].size());
    for (auto& done : done_) done.assign(context.stages.stages * context.microbatches, kUnknown);
    for (std::size_t c = 0; c < kHeadCollectives.size(); ++c) {
      collective_ready_[c].assign(context.microbatches, kUnknown);
      parts_done_[c].assign(context.microbatches, 0);
    }
    for (auto& there : arrival_)
      there.assign(context.stages.edges.size() * context.microbatches, kUnknown);
  }

  Schedule run() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) release(r);
    while (!entries_.empty()) {
      const Entry entry = entries_.top();
      entries_.pop();
      switch (entry.kind) {
        case Kind::Transfer:
          pass_on(entry);
          break;
        case Kind::Reduction:
          for (const StageId s : *entry.reduced) append(s, stage_action(Op::ReduceGrad, s));
          break;
        case Kind::Cell:
          execute(entry);
      }
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].next < schedule_.rows[r].size()) report();
    return std::move(result_);
  }

 private:
  enum class Kind : std::uint8_t { Transfer, Reduction, Cell };
  /// An entry of the list to come: the next cell of a rank, a transfer whose value is made, or a
  /// reduction whose gradients are.
  struct Entry {
    std::int64_t time = 0;  ///< in ticks
    Kind kind = Kind::Cell;
    std::uint32_t rank = 0;      ///< of the cell; the sender; where the last gradient is made
    std::uint32_t position = 0;  ///< of the cell; of the sender's cell; of the last gradient
    std::uint32_t edge = 0;
    Direction direction = Direction::Forward;
    MicrobatchId microbatch;
    const std::vector<StageId>* reduced = nullptr;

    bool operator>(const Entry& other) const { return order() > other.order(); }
    std::tuple<std::int64_t, Kind, std::uint32_t, std::uint32_t, std::uint32_t> order() const {
      return {time, kind, rank, position, edge};
    }
  };
  struct Rank {
    std::size_t next = 0;   ///< the cell it is at
    std::int64_t free = 0;  ///< end of the cell before
    bool released = false;  ///< the cell is in the queue of entries
  };

  static std::size_t way(Direction direction) { return direction == Direction::Forward ? 0 : 1; }
  std::size_t cell_key(const Action& a) const {
    return a.stage.index() * context_.microbatches + a.microbatch->index();
  }
  std::size_t edge_key(std::uint32_t edge, MicrobatchId m) const {
    return edge * context_.microbatches + m.index();
  }

  /// Calls `visit(when, what)` for each input of an action: when it is there (kUnknown: not yet)
  /// and the action that makes it.
  template <class Visitor>
  void for_each_input(const Action& a, Visitor&& visit) const {
    const Operation& kind = operation(a.op);
    if (const auto read = kind.reads)
      visit(done_[way(*operation(*read).passes)][cell_key(a)],
            Action{.op = *read, .stage = a.stage, .microbatch = a.microbatch});
    if (const auto before = slice_before(a)) {
      Action same = a;
      same.microbatch = before;
      visit(done_[way(*kind.passes)][cell_key(same)], same);
    }
    for_each_message_read(a, context_.stages, context_.edges,
                          [&](std::uint32_t e, StageId source, Direction direction) {
                            visit(arrival_[way(direction)][edge_key(e, *a.microbatch)],
                                  maker(source, *a.microbatch, direction));
                          });
    if (const auto read = collective_read(a, context_.stages))
      visit(collective_ready_[collective_number(*read)][a.microbatch->index()],
            Action{.op = *read, .stage = a.stage, .microbatch = a.microbatch});
  }

  /// Puts the rank's next cell among the entries if all its inputs are known.
  void release(std::size_t r) {
    Rank& rank = ranks_[r];
    if (rank.released || rank.next == schedule_.rows[r].size()) return;
    std::int64_t start = rank.free;
    bool known = true;
    for_each_action(schedule_.rows[r][rank.next], [&](const Action& a) {
      for_each_input(a, [&](std::int64_t when, const Action&) {
        known = known && when != kUnknown;
        start = std::max(start, when);
      });
    });
    if (!known) return;
    rank.released = true;
    entries_.push({.time = start,
                   .rank = static_cast<std::uint32_t>(r),
                   .position = static_cast<std::uint32_t>(rank.next)});
  }

  void execute(const Entry& entry) {
    Rank& rank = ranks_[entry.rank];
    const Cell& cell = schedule_.rows[entry.rank][rank.next];
    result_.rows[entry.rank].push_back(cell);
    rank.free = entry.time + kTicks * duration(cell);
    rank.released = false;
    ++rank.next;
    for_each_action(cell, [&](const Action& a) { hand_on(a, entry, rank.free); });
    release(entry.rank);
  }

  void hand_on(const Action& a, const Entry& entry, std::int64_t end) {
    if (const auto passed = operation(a.op).passes) done_[way(*passed)][cell_key(a)] = end;
    for_each_message_made(a, context_.stages, context_.edges,
                          [&](std::uint32_t e, StageId, Direction direction) {
                            if (context_.crosses(context_.stages.edges[e]))
                              entries_.push({.time = end,
                                             .kind = Kind::Transfer,
                                             .rank = entry.rank,
                                             .position = entry.position,
                                             .edge = e,
                                             .direction = direction,
                                             .microbatch = *a.microbatch});
                            else
                              arrival_[way(direction)][edge_key(e, *a.microbatch)] = end;
                          });
    if (const auto next = collective_made(a, context_.stages)) join(*next, *a.microbatch, end);
    if (reductions_ && makes_weight_gradient(a.op)) reduce_after(a, entry, end);
  }

  /// A part of a collective is done. (Cells end in the order in which they begin only on their own
  /// rank: the last part to be told need not be the last to end.)
  void join(Op collective, MicrobatchId m, std::int64_t end) {
    const std::size_t c = collective_number(collective);
    std::int64_t& last_end = last_part_[{c, m}];
    last_end = std::max(last_end, end);
    if (++parts_done_[c][m.index()] < collective_parts(collective, context_.stages)) return;
    collective_ready_[c][m.index()] =
        last_end + kTicks * context_.costs.head.value().time(collective).count();
    for (std::size_t r = 0; r < ranks_.size(); ++r) release(r);
  }

  void reduce_after(const Action& a, const Entry& entry, std::int64_t end) {
    gradient_ready_[a.stage.index()] = end;
    const std::vector<StageId>* stages = reductions_->completed_by(a);
    if (!stages) return;
    for (const StageId s : *stages) end = std::max(end, gradient_ready_[s.index()]);
    entries_.push({.time = end,
                   .kind = Kind::Reduction,
                   .rank = entry.rank,
                   .position = entry.position,
                   .reduced = stages});
  }

  void append(StageId stage, const Action& action) {
    result_.rows[context_.rank(stage).index()].emplace_back(action);
  }

  void pass_on(const Entry& entry) {
    const StageGraph::Edge& edge = context_.stages.edges[entry.edge];
    const StagePair& pair = pairs_of(context_.costs, entry.microbatch)[entry.edge];
    const bool onward = entry.direction == Direction::Forward;
    const StageId from = onward ? edge.from : edge.to, to = onward ? edge.to : edge.from;
    append(from, send(from, to, entry.microbatch, entry.direction));
    append(to, recv(to, from, entry.microbatch, entry.direction));
    const Nanoseconds time = onward ? pair.forward_time : pair.backward_time;
    arrival_[way(entry.direction)][edge_key(entry.edge, entry.microbatch)] =
        entry.time + std::max<std::int64_t>(1, kTicks * time.count());
    release(context_.rank(to).index());
  }

  std::int64_t duration(const Cell& cell) const {
    const auto last = [&](const Action& a) { return a.microbatch == last_[a.stage.index()]; };
    if (const auto* overlap = std::get_if<Overlap>(&cell))
      return side_by_side_time(overlap->parts, context_.costs, last).count();
    std::int64_t sum = 0;
    for_each_action(
        cell, [&](const Action& a) { sum += action_time(a, context_.costs, last(a)).count(); });
    return sum;
  }

  [[noreturn]] void report() const {
    std::vector<std::string> waiting;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].next == schedule_.rows[r].size()) continue;
      const Cell& cell = schedule_.rows[r][ranks_[r].next];
      std::string lacking;
      for_each_action(cell, [&](const Action& a) {
        for_each_input(a, [&](std::int64_t when, const Action& source) {
          if (when == kUnknown && lacking.empty()) lacking = to_string(source);
        });
      });
      waiting.push_back("rank " + std::to_string(r) + " waits at " + to_string(cell) + " for " +
                        lacking);
    }
    throw_cyclic(waiting);
  }

  const Schedule& schedule_;
  const Context& context_;
  Schedule result_;
  std::vector<Rank> ranks_;
  std::vector<std::int64_t> done_[2];     // F, B or I: [stage * microbatches + microbatch] end
  std::vector<std::int64_t> arrival_[2];  // values, gradients: [edge * microbatches + microbatch]
  std::array<std::vector<std::int64_t>, kHeadCollectives.size()> collective_ready_;  // [microbatch]
  std::array<std::vector<std::size_t>, kHeadCollectives.size()> parts_done_;         // [microbatch]
  std::map<std::pair<std::size_t, MicrobatchId>, std::int64_t> last_part_;           // its end
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries_;
  std::optional<TiedReductions> reductions_;
  std::vector<std::int64_t> gradient_ready_;  // [stage] end of its last weight gradient so far
  std::vector<MicrobatchId> last_;            // [stage] that it runs forward
};

}  // namespace

Schedule add_transfers_ready(const Schedule& schedule, const Context& context, bool reduce) {
  return FreeRun(schedule, context, reduce).run();
}

}  // namespace pfeife::lowering
