// A choice with what it costs: carried from the search to the report.
//   for (const Priced& plan : planned.front) std::puts(name_of(plan).c_str());
#pragma once

#include <memory>
#include <vector>

#include "planner/ir/basics/units.h"
#include "planner/ir/result/choice.h"
#include "planner/ir/result/need.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// What every stage costs, and the rows with their transfers, lowered for these costs.
struct CostedRows {
  StageCosts costs;
  Schedule lowered;
};

struct Priced : Choice {
  Nanoseconds estimate{0};         ///< contention-free step time
  std::vector<Bytes> peak_memory;  ///< [rank]
  /// What both were read from; may be empty where a schedule is large.
  std::shared_ptr<const CostedRows> rows;

  /// `rows` follow from the rest.
  friend bool operator==(const Priced& a, const Priced& b) {
    return static_cast<const Choice&>(a) == static_cast<const Choice&>(b) &&
           a.estimate == b.estimate && a.peak_memory == b.peak_memory;
  }
};

/// The largest peak over ranks.
Bytes largest_peak(const Priced& plan);

}  // namespace pfeife
