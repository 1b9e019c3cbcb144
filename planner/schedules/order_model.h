// What an order is built for: one rank's time for every F, I and W, what each waits for, and what
// it leaves in memory. How long an order takes: order_clock.h.
//
// The microbatches of a stage are taken in order, so the order of a rank is a sequence of
// (work, stage) and the microbatch is a count. Transfers are delays; reductions are left out.
//
// Slices of a microbatch's sequence count as microbatches do. F i is slice i mod S of microbatch
// i div S. I i is slice S - 1 - i mod S of it: a slice's I makes gradients of the keys and values
// of the slices before it, which wait for them. So the first I of a microbatch needs the F of all
// its slices. W makes gradients of parameters, which no other slice reads: it waits for its own I
// alone, and is taken in the order of I.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/ir/schedule/schedule.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

enum class Part : std::uint8_t { Forward, Input, Weight };
inline constexpr std::size_t kParts = 3;

/// One F, I or W of a stage; which microbatch or slice follows from how often it came before.
struct Turn {
  Part part = Part::Forward;
  std::uint32_t stage = 0;
  friend bool operator==(const Turn&, const Turn&) = default;
};

struct OrderModel {
  /// Waits for a part of another stage and the same microbatch or slice, `delay` ns after its end.
  struct Wait {
    std::uint32_t stage = 0;
    std::int64_t delay = 0;
  };
  std::size_t ranks = 0, stages = 0;
  std::size_t slices = 1;  ///< S, of each microbatch
  /// Figures of a stage repeat after so many counts: after S slices, after all microbatches where
  /// these differ (StageCosts::kinds).
  std::size_t period = 1;
  std::size_t microbatches = 0;  ///< each slice counted
  std::vector<std::uint32_t> rank_of_stage;
  std::vector<std::vector<std::uint32_t>> stages_of_rank;    ///< ascending
  std::array<std::vector<std::int64_t>, kParts> duration;    ///< [at(stage, count)] ns
  std::array<std::vector<std::vector<Wait>>, kParts> waits;  ///< [at]; W waits for its I alone
  std::array<std::vector<std::vector<Wait>>, kParts> wakes;  ///< [at] the same, from its source
  /// [at] What a turn adds to the memory of its rank at its end (F: at its start), bytes.
  std::array<std::vector<std::int64_t>, kParts> growth;
  std::vector<std::int64_t> room;  ///< [rank] bytes for them; a lot if there is no limit
  /// [rank] added to the end of its last action: what is judged is the largest sum over ranks.
  std::vector<std::int64_t> tail;

  /// Every stage waits for its neighbours even where nothing passes between them, so that the order
  /// is free of deadlock on a chain. Of slices where the costs have some; `whole_microbatches` are
  /// then cut. Where microbatches differ, count i is microbatch i. `room` empty = no limit.
  OrderModel(const StageCosts& costs, const Placement& placement, std::size_t whole_microbatches,
             const std::vector<Bytes>& room);

  /// Where that part of the stage with that count stands in the lists above.
  std::size_t at(std::size_t stage, std::size_t count) const {
    return period == 1 ? stage : stage * period + count % period;
  }
  /// F of a stage that its I of that count needs.
  std::size_t forwards_before_input(std::size_t count) const {
    return slices == 1 ? count + 1 : count - count % slices + slices;
  }
  /// ns of all parts of the stage in a step.
  std::int64_t work(std::size_t stage) const {
    std::int64_t sum = 0;
    for (const std::vector<std::int64_t>& of_part : duration)
      for (std::size_t count = 0; count < period; ++count) sum += of_part[at(stage, count)];
    return sum * static_cast<std::int64_t>(microbatches / period);
  }
  std::size_t actions() const { return kParts * stages * microbatches; }
};

/// [rank] What follows the rank's last action (ns), so that the largest sum of both over ranks is
/// the step: its own optimizer steps (step_of); or, where there is a norm, the norm and the longest
/// steps of any rank, which begin once all ranks have their gradients.
std::vector<std::int64_t> step_tails(const StageCosts& costs, const Placement& placement);

/// The order of every rank.
using Order = std::vector<std::vector<Turn>>;

/// A schedule as an order: B counts as I and W. nullopt if a stage takes its microbatches out of
/// order, or their slices in another one than is said above.
std::optional<Order> order_of(const Schedule& compute_only);
/// `slices`: of each microbatch.
Schedule schedule_of(const Order& order, std::size_t slices = 1);

/// The most that F and I leave behind on a rank (bytes).
std::int64_t most_held(const OrderModel& model, const Order& order, std::size_t rank);
/// The rank's memory stays within its room.
bool fits(const OrderModel& model, const Order& order, std::size_t rank);

}  // namespace pfeife
