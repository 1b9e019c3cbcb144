// Which microbatch stands where in a schedule, if microbatches differ: the rows stay, and position
// i of them takes microbatch order[i].
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/cost/estimate/estimator.h"
#include "planner/ir/schedule/schedule.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// [position] the microbatch; each once.
using MicrobatchOrder = std::vector<std::uint32_t>;

/// The rows with microbatch order[i] wherever they have i. Whole microbatches only.
Schedule relabelled(Schedule rows, const MicrobatchOrder& order);
/// [position] The order in which the first stage of `rows` runs microbatches forward.
MicrobatchOrder forward_order(const Schedule& rows);

/// The estimate of one schedule for any order of its microbatches, fast: one graph serves all.
class PermutedTimes {
 public:
  /// `lowered`: in the order in which microbatches are given, for `costs` with kinds.
  PermutedTimes(const Schedule& lowered, const StageCosts& costs, const Placement& placement);

  /// [position] the kind (StageCosts::kinds) of the microbatch there; ns. Linear in the tasks.
  std::int64_t time(std::span<const std::uint32_t> kinds);
  /// Durations that one call of time() looks up.
  std::size_t work() const { return slots_.size(); }

 private:
  struct Slot {
    std::vector<std::uint32_t> positions;  // of its parts' microbatches
    std::vector<std::int64_t> times;       // [kind of the first, kind of the second, ...]
  };
  std::vector<Slot> slots_;  // filled while graph_ is made
  std::size_t kinds_ = 0;
  std::vector<std::int64_t> durations_;
  CompiledGraph graph_;
};

struct PermutedResult {
  std::int64_t time = 0;  ///< ns
  MicrobatchOrder order;  ///< of equally fast ones the first that was tried
  friend bool operator==(const PermutedResult&, const PermutedResult&) = default;
};

struct OrderSearch {
  std::vector<PermutedResult> best;  ///< the fastest first; the first is no slower than any tried
  PermutedResult worst;
  std::size_t tried = 0;  ///< orders of distinct microbatches
  bool exact = false;     ///< all of them
};

struct OrderSearchOptions {
  std::uint64_t seed = 1;
  std::size_t work = 40'000'000;  ///< durations looked up: limits what is tried
  std::size_t keep = 8;           ///< orders in OrderSearch::best
};

/// Searches the order of microbatches of these kinds ([microbatch], StageCosts::kind_of). All
/// distinct orders where that is within the work allowed, in ascending order of kinds; else a local
/// search from the given order, ascending, descending, and the longest in the middle, by exchanges
/// and moves of one microbatch, restarted from changed orders of the best. `load`: [kind] by which
/// microbatches are long. Deterministic.
OrderSearch search_microbatch_order(PermutedTimes& times, const std::vector<std::uint32_t>& kind_of,
                                    const std::vector<double>& load,
                                    const OrderSearchOptions& options = {});

/// The longest in the middle: ascending, alternately before and behind the middle.
MicrobatchOrder longest_in_the_middle(const std::vector<std::uint32_t>& kind_of,
                                      const std::vector<double>& load);

}  // namespace pfeife
