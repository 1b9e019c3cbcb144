// What no order of the actions goes below, for any cuts into stages of a placement, whatever the
// memory.
#pragma once

#include "planner/search/any_order_rows.h"
#include "planner/search/search.h"

namespace pfeife {

class AnyOrder {
 public:
  /// Keeps nothing of its arguments. With listed schedules, too: only the placement matters.
  AnyOrder(const CutModel& model, const Problem& problem, const ScheduleSpec& spec);

  /// Step time (ns) that no order of any kind goes below.
  double bound() const { return bound_; }
  /// What proves it to the judge. `least_load` ([stage], as in CertifiedProof) must make sure that
  /// every stage sends to the next.
  CertifiedProof proof(std::vector<std::int64_t> least_load) const;

 private:
  ScheduleSpec spec_;
  double bound_ = 0;
  std::vector<AnyOrderRow> rows_;       // those that have weight together
  std::vector<std::int64_t> weights_;   // [row] of rows_
  std::vector<AnyOrderRow> alone_;      // one stage a rank: those that count one by one
  std::optional<std::size_t> segment_;  // if its weight alone is the bound (heaviest_segment)
};

}  // namespace pfeife
