#include "planner/schedules/order_descent.h"

#include <algorithm>
#include <array>

#include "planner/schedules/order_clock.h"

namespace pfeife {
namespace {

constexpr std::size_t kMemory = 30;  ///< moves that acceptance looks back

/// xorshift64*: the same everywhere, unlike the standard distributions.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_((seed + 1) * 0x9E3779B97F4A7C15ULL) {}
  std::size_t below(std::size_t bound) {
    state_ ^= state_ >> 12, state_ ^= state_ << 25, state_ ^= state_ >> 27;
    return static_cast<std::size_t>((state_ * 0x2545F4914F6CDD1DULL) >> 33) % bound;
  }

 private:
  std::uint64_t state_;
};

using Place = OrderClock::Place;

/// Stretches of a longest path on one rank: [first, last] positions.
struct Block {
  std::size_t rank, first, last;
};
std::vector<Block> blocks_of(const std::vector<Place>& path) {
  std::vector<Block> blocks;
  for (const Place& place : path) {  // from the end to the start
    if (!blocks.empty() && blocks.back().rank == place.rank &&
        blocks.back().first == place.position + 1)
      blocks.back().first = place.position;
    else
      blocks.push_back({place.rank, place.position, place.position});
  }
  std::erase_if(blocks, [](const Block& block) { return block.first == block.last; });
  return blocks;
}

/// Moves one action of the row from one position to another.
void shift(std::vector<Turn>& row, std::size_t from, std::size_t to) {
  const auto at = [&](std::size_t i) { return row.begin() + static_cast<std::ptrdiff_t>(i); };
  if (from < to)
    std::rotate(at(from), at(from + 1), at(to + 1));
  else
    std::rotate(at(to), at(from), at(from + 1));
}

class Descent {
 public:
  Descent(const OrderModel& model, TimedOrder start, const Fits& fits, std::uint64_t seed)
      : fits_(fits),
        clocks_{OrderClock(model), OrderClock(model)},
        best_(std::move(start)),
        present_(best_),
        random_(seed) {
    clocks_[clock_].run(present_.order);
    blocks_ = blocks_of(clocks_[clock_].critical_path(present_.order));
  }

  TimedOrder run(std::size_t moves) {
    std::vector<std::int64_t> before(kMemory, present_.time);
    for (std::size_t k = 0; k < moves && !blocks_.empty(); ++k) {
      const std::size_t slot = k % kMemory;
      try_one(before[slot]);
      before[slot] = present_.time;
    }
    return std::move(best_);
  }

 private:
  void try_one(std::int64_t accepted) {
    const Block block = blocks_[random_.below(blocks_.size())];
    const std::size_t length = block.last - block.first;
    std::size_t from = block.first + random_.below(length + 1), to = from;
    switch (random_.below(3)) {
      case 0:
        to = from == block.last ? from - 1 : from + 1;
        break;
      case 1:
        to = block.first;
        break;
      default:
        to = block.last;
    }
    auto& row = present_.order[block.rank];
    if (row[from] == row[to]) return;
    shift(row, from, to);
    const auto time =
        clocks_[1 - clock_].run_from(clocks_[clock_], present_.order, block.rank,
                                     std::min(from, to), std::max(present_.time, accepted));
    if (!time || !fits_(present_.order)) {
      shift(row, to, from);
      return;
    }
    present_.time = *time;
    if (*time < best_.time) best_ = present_;
    clock_ = 1 - clock_;
    blocks_ = blocks_of(clocks_[clock_].critical_path(present_.order));
  }

  const Fits& fits_;
  std::array<OrderClock, 2> clocks_;
  std::size_t clock_ = 0;  // which has run the present order
  TimedOrder best_, present_;
  std::vector<Block> blocks_;
  Random random_;
};

}  // namespace

TimedOrder improve(const OrderModel& model, TimedOrder start, std::size_t moves) {
  std::vector<std::size_t> kept;  // ranks that keep within their room
  for (std::size_t r = 0; r < model.ranks; ++r)
    if (fits(model, start.order, r)) kept.push_back(r);
  return improve(model, std::move(start), moves, [&](const Order& order) {
    return std::ranges::all_of(kept, [&](std::size_t r) { return fits(model, order, r); });
  });
}

TimedOrder improve(const OrderModel& model, TimedOrder start, std::size_t moves, const Fits& fits,
                   std::uint64_t seed) {
  return Descent(model, std::move(start), fits, seed).run(moves);
}

}  // namespace pfeife
