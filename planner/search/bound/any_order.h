// What no order of the actions goes below, for any cuts into stages of a placement, whatever the
// memory.
#pragma once

#include "planner/search/bound/any_order_rows.h"
#include "planner/search/problem.h"

namespace pfeife {

class AnyOrder {
 public:
  /// Keeps nothing of its arguments. With listed schedules, too: only the placement matters.
  AnyOrder(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
           const CutClass& cuts = {});

  const ScheduleSpec& spec() const { return spec_; }
  /// Step time (ns) that no order of any kind goes below for cuts of the class.
  double bound() const { return bound_; }
  /// What is known besides, of orders that take microbatches in turn: all were tried.
  void raise(double bound) {
    if (bound > bound_) bound_ = bound, tried_all_ = true;
  }
  bool tried_all() const { return tried_all_; }
  /// What can be proven of it to the judge: all, or less where the way to a stage depends on where
  /// it begins, which no row can say.
  double bound_by_rows() const { return bound_by_rows_; }
  CertifiedProof proof() const;

 private:
  ScheduleSpec spec_;
  CutClass class_;
  double bound_ = 0, bound_by_rows_ = 0;
  bool tried_all_ = false;
  std::vector<AnyOrderRow> rows_;       // those that have weight together
  std::vector<std::int64_t> weights_;   // [row] of rows_
  std::vector<AnyOrderRow> first_;      // [rank] its work once the first microbatch comes to it
  std::vector<AnyOrderRow> alone_;      // one stage a rank: those that count one by one
  std::optional<std::size_t> segment_;  // if its weight alone is the bound (heaviest_segment)
  std::vector<std::vector<AnyOrderRow>> around_;  // [stage] then: its rows
};

}  // namespace pfeife
