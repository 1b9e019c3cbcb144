#include "planner/schedules/backfill.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "planner/ir/basics/error.h"
#include "planner/schedules/order_clock.h"
#include "planner/schedules/soonest.h"

namespace pfeife {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr int kRounds = 3;

/// What is left of a row, in its order. Position 0 is before all of it.
class Rest {
 public:
  explicit Rest(const std::vector<Turn>& row) : row_(row), next_(row.size() + 1) {
    std::iota(next_.begin(), next_.end(), std::size_t{1});
  }
  std::size_t after(std::size_t position) const { return next_[position]; }
  std::size_t end() const { return row_.size() + 1; }
  Turn operator[](std::size_t position) const { return row_[position - 1]; }
  void take_after(std::size_t position) { next_[position] = next_[next_[position]]; }

 private:
  const std::vector<Turn>& row_;
  std::vector<std::size_t> next_;
};

/// Runs the rows from their start; Late runs them from their end, where W comes before I, I before
/// F, and every wait is the other way round. What is left of all rows always has an action that is
/// ready first in its row: the one that came first of these in the order that was given.
class Backfill {
 public:
  Backfill(const OrderModel& model, const Order& order, Fill fill)
      : model_(model),
        late_(fill == Fill::Late),
        waits_(late_ ? model.wakes : model.waits),
        wakes_(late_ ? model.waits : model.wakes),
        end_(model.actions(), -1),
        done_(kParts * model.stages, 0),
        free_(model.ranks, 0),
        held_(model.ranks, 0),
        wake_(model.ranks),
        order_(model.ranks) {
    for (std::size_t r = 0; r < model.ranks; ++r) {
      rest_.emplace_back(order[r]);
      room_.push_back(std::max(model.room[r], most_held(model, order, r)));
    }
  }

  Order run() {
    for (std::size_t left = model_.actions(); left > 0;) {
      const std::size_t rank = wake_.rank();
      const std::int64_t now = wake_[rank];
      PFEIFE_CHECK(now < kNever, "the order deadlocks");
      if (const auto before = first_ready(rank, now)) {
        take(rank, *before, now);
        --left;
      }
    }
    return std::move(order_);
  }

 private:
  static std::size_t index(Part part) { return static_cast<std::size_t>(part); }
  std::size_t index(Part part, std::size_t stage, std::size_t b) const {
    return (index(part) * model_.stages + stage) * model_.microbatches + b;
  }
  std::uint32_t& done(Turn turn) { return done_[index(turn.part) * model_.stages + turn.stage]; }
  std::int64_t growth(Turn turn) const {
    const std::int64_t bytes = model_.growth[index(turn.part)][turn.stage];
    return late_ ? -bytes : bytes;
  }

  /// When all that the stage's next part waits for has ended; kNever = that is not known yet.
  std::int64_t arrival(Turn turn) {
    const std::size_t b = done(turn);
    std::int64_t time = 0;
    const auto wait = [&](Part part, std::size_t stage, std::int64_t delay) {
      const std::int64_t end = end_[index(part, stage, b)];
      time = end < 0 || time == kNever ? kNever : std::max(time, end + delay);
    };
    if (turn.part == Part::Input) wait(late_ ? Part::Weight : Part::Forward, turn.stage, 0);
    if (turn.part == (late_ ? Part::Forward : Part::Weight)) wait(Part::Input, turn.stage, 0);
    for (const OrderModel::Wait& source : waits_[index(turn.part)][turn.stage])
      wait(turn.part, source.stage, source.delay);
    return time;
  }

  /// The position before the first action that is ready and leaves memory for those it overtakes.
  /// nullopt: there is none, and wake_ says when there may be.
  std::optional<std::size_t> first_ready(std::size_t rank, std::int64_t now) {
    const Rest& rest = rest_[rank];
    std::int64_t next = kNever, held = held_[rank], most = held;
    std::vector<Turn>& seen = seen_;
    seen.clear();
    const std::size_t kinds = kParts * model_.stages_of_rank[rank].size();
    for (std::size_t before = 0; rest.after(before) != rest.end() && seen.size() < kinds;
         before = rest.after(before)) {
      const Turn turn = rest[rest.after(before)];
      const std::int64_t more = growth(turn);
      if (std::ranges::find(seen, turn) == seen.end()) {
        seen.push_back(turn);
        if (more <= 0 || most + more <= room_[rank]) {
          const std::int64_t at = arrival(turn);
          if (at <= now) return before;
          next = std::min(next, at);
        }
      }
      most = std::max(most, held += more);
    }
    wake_.set(rank, next);
    return std::nullopt;
  }

  void take(std::size_t rank, std::size_t before, std::int64_t start) {
    const Turn turn = rest_[rank][rest_[rank].after(before)];
    rest_[rank].take_after(before);
    const std::int64_t end = start + model_.duration[index(turn.part)][turn.stage];
    end_[index(turn.part, turn.stage, done(turn)++)] = end;
    held_[rank] += growth(turn);
    order_[rank].push_back(turn);
    free_[rank] = end;
    wake_.set(rank, end);
    for (const OrderModel::Wait& woken : wakes_[index(turn.part)][turn.stage]) {
      const std::size_t reader = model_.rank_of_stage[woken.stage];
      const std::int64_t at = std::max(free_[reader], end + woken.delay);
      if (at < wake_[reader]) wake_.set(reader, at);
    }
  }

  using Waits = std::array<std::vector<std::vector<OrderModel::Wait>>, kParts>;

  const OrderModel& model_;
  bool late_;
  const Waits &waits_, &wakes_;
  std::vector<std::int64_t> end_;    // [part, stage, microbatch] -1 = not yet
  std::vector<std::uint32_t> done_;  // [part, stage]
  std::vector<std::int64_t> free_;   // [rank] end of what it has done
  std::vector<std::int64_t> held_;   // [rank] bytes
  std::vector<std::int64_t> room_;   // [rank]
  std::vector<Rest> rest_;           // [rank]
  std::vector<Turn> seen_;           // by first_ready()
  Soonest wake_;                     // [rank] when it looks again
  Order order_;
};

Order turned(Order order) {
  for (auto& row : order) std::ranges::reverse(row);
  return order;
}

}  // namespace

Order backfilled(const OrderModel& model, const Order& order, Fill fill) {
  if (fill == Fill::Early) return Backfill(model, order, fill).run();
  return turned(Backfill(model, turned(order), fill).run());
}

TimedOrder backfilled(const OrderModel& model, Order order) {
  OrderClock clock(model);
  TimedOrder best{{}, kNever};
  for (int round = 0; round < kRounds; ++round) {
    if (round > 0) order = backfilled(model, order, Fill::Late);
    order = backfilled(model, order, Fill::Early);
    const auto time = clock.run(order);
    PFEIFE_CHECK(time, "what has run once runs again");
    if (*time < best.time) best = {order, *time};
  }
  return best;
}

}  // namespace pfeife
