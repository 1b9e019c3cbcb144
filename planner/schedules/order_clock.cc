#include "planner/schedules/order_clock.h"

#include <algorithm>

namespace pfeife {

OrderClock::OrderClock(const OrderModel& model)
    : model_(model),
      end_(model.actions()),
      position_(model.actions()),
      at_(model.ranks),
      next_(model.ranks),
      rank_end_(model.ranks),
      work_(model.tail),
      left_(model.ranks),
      count_(kParts * model.stages) {
  duration_.reserve(model.actions());
  for (const auto& of_part : model.duration)
    for (std::size_t s = 0; s < model.stages; ++s)
      for (std::size_t count = 0; count < model.microbatches; ++count)
        duration_.push_back(of_part[model.at(s, count)]);
  for (std::size_t s = 0; s < model.stages; ++s) work_[model.rank_of_stage[s]] += model.work(s);
}

std::optional<std::int64_t> OrderClock::go_on(const Order& order, std::int64_t most) {
  bool moved = true, unfinished = true;
  while (moved && unfinished) {
    moved = unfinished = false;
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
      const std::vector<Turn>& row = order[rank];
      std::size_t position = next_[rank];
      std::int64_t end = rank_end_[rank];
      for (; position < row.size(); ++position) {
        const auto part = static_cast<std::size_t>(row[position].part);
        const std::size_t stage = row[position].stage, kind = part * model_.stages + stage;
        const std::uint32_t count = count_[kind];
        std::int64_t start = end;
        bool ready = part == 0 || count_[kind - model_.stages] >=
                                      (part == 1 ? model_.forwards_before_input(count) : count + 1);
        for (const OrderModel::Wait& wait : model_.waits[part][model_.at(stage, count)]) {
          const std::int64_t source = end_[index(part, wait.stage, count)];
          ready = ready && source >= 0;
          start = std::max(start, source + wait.delay);
        }
        if (!ready) break;
        if (start + left_[rank] > most) return std::nullopt;
        const std::size_t at = kind * model_.microbatches + count;
        left_[rank] -= duration_[at];
        end_[at] = end = start + duration_[at];
        position_[at] = static_cast<std::uint32_t>(position);
        at_[rank][position] = static_cast<std::uint32_t>(at);
        count_[kind] = count + 1;
      }
      moved = moved || position > next_[rank];
      next_[rank] = position;
      rank_end_[rank] = end;
      unfinished = unfinished || position < row.size();
    }
  }
  if (unfinished) return std::nullopt;
  std::int64_t time = 0;
  for (std::size_t r = 0; r < order.size(); ++r)
    time = std::max(time, rank_end_[r] + model_.tail[r]);
  if (time > most) return std::nullopt;
  return time;
}

std::optional<std::int64_t> OrderClock::run(const Order& order, std::int64_t most) {
  std::ranges::fill(end_, -1);
  std::ranges::fill(next_, 0);
  std::ranges::fill(rank_end_, 0);
  std::ranges::fill(count_, 0);
  for (std::size_t r = 0; r < order.size(); ++r) at_[r].resize(order[r].size());
  left_ = work_;
  return go_on(order, most);
}

std::optional<std::int64_t> OrderClock::run_from(const OrderClock& before, const Order& order,
                                                 std::size_t rank, std::size_t first,
                                                 std::int64_t most) {
  end_ = before.end_;
  position_ = before.position_;
  count_ = before.count_;
  // What begins before what stood at `first` waits for nothing that is moved.
  const std::int64_t moved = before.start(rank, first);
  for (std::size_t r = 0; r < order.size(); ++r) {
    const std::vector<std::uint32_t>& row = before.at_[r];
    std::size_t position = row.size();
    left_[r] = model_.tail[r];
    while (position > (r == rank ? first : 0) &&
           (r == rank || before.start(r, position - 1) >= moved)) {
      const std::uint32_t at = row[--position];
      end_[at] = -1;
      --count_[at / model_.microbatches];
      left_[r] += duration_[at];
    }
    at_[r] = row;
    next_[r] = position;
    rank_end_[r] = position == 0 ? 0 : before.end_[row[position - 1]];
  }
  return go_on(order, most);
}

std::vector<OrderClock::Place> OrderClock::critical_path(const Order& order) const {
  Place at;
  for (std::size_t r = 1; r < order.size(); ++r)
    if (rank_end_[r] + model_.tail[r] > rank_end_[at.rank] + model_.tail[at.rank]) at.rank = r;
  at.position = order[at.rank].size() - 1;
  std::vector<Place> path{at};
  for (;;) {
    const Turn turn = order[at.rank][at.position];
    const auto part = static_cast<std::size_t>(turn.part);
    const std::size_t b = at_[at.rank][at.position] % model_.microbatches;
    const std::int64_t start = this->start(at.rank, at.position);
    if (start == 0) return path;
    // Another rank first: what waits for it is what moves within this rank cannot change.
    bool found = false;
    for (const OrderModel::Wait& wait : model_.waits[part][model_.at(turn.stage, b)]) {
      const std::size_t source = index(part, wait.stage, b);
      if (model_.rank_of_stage[wait.stage] == at.rank || end_[source] + wait.delay != start)
        continue;
      at = {model_.rank_of_stage[wait.stage], position_[source]};
      found = true;
      break;
    }
    if (!found) {
      if (at.position == 0) return path;
      --at.position;
    }
    path.push_back(at);
  }
}

}  // namespace pfeife
