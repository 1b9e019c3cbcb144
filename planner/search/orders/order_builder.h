// Orders for given cuts, within the memory limits if one is found.
#pragma once

#include <memory>

#include "planner/schedules/zb_greedy.h"
#include "planner/search/orders/order_memo.h"
#include "planner/search/price/candidate.h"

namespace pfeife {

/// Builds zero-bubble orders for cuts, and finds by building again what the exact memory rule
/// counts besides what F and I leave behind: parameters, buffers, temporaries.
class OrderBuilder {
 public:
  /// Keeps references, but of the options. `memo` is of this schedule and problem.
  OrderBuilder(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
               const ZeroBubbleOptions& options, OrderMemo& memo);
  const CutModel& model() const { return model_; }
  const Problem& problem() const { return problem_; }
  const ScheduleSpec& spec() const { return spec_; }
  const Placement& placement() const { return placement_; }

  /// An order for the cuts, with the cuts offered to it: best() if it fits. Never null. Where
  /// stages may be recomputed, orders for none, for those of ranks that are too full, and for all
  /// of them recomputed; what the cuts then recompute under the order is Candidates' choice.
  std::unique_ptr<Candidates> build(const Cuts& cuts) const;

  /// The order of `from` made better by `moves` moves on its best cuts, within the limits by the
  /// exact memory rule (order_descent.h): rooms are less than what there is. nullptr if nothing
  /// fits under `from`, or not with every B split.
  std::unique_ptr<Candidates> improved(const Candidates& from, std::size_t moves,
                                       std::uint64_t seed) const;

  StageCosts costs(const Cuts& cuts, const Activations& activations) const;
  /// [rank] What the limits leave for activations, before buffers.
  std::vector<Bytes> rooms(const StageCosts& costs) const;
  /// The order with the cuts offered to it.
  std::unique_ptr<Candidates> judged(const Cuts& cuts, Schedule order) const;

 private:
  double load(const Cuts& cuts, const std::vector<bool>& recompute) const;
  std::unique_ptr<Candidates> repeated_block(const Cuts& cuts) const;
  std::unique_ptr<Candidates> build_for(const Cuts& cuts, const std::vector<bool>& recompute,
                                        std::vector<bool>& full) const;

  const CutModel& model_;
  const Problem& problem_;
  const ScheduleSpec& spec_;
  Placement placement_;
  ZeroBubbleOptions options_;
  OrderMemo& memo_;
};

}  // namespace pfeife
