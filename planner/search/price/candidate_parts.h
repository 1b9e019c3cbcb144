// What is asked about cuts of one schedule: their times, their memory, the exact rules, and what
// has been found so far.
#pragma once

#include "planner/search/price/cut_memory.h"
#include "planner/search/price/cut_times.h"
#include "planner/search/price/found_plans.h"
#include "planner/search/price/plan_judge.h"

namespace pfeife {

struct CandidateParts {
  /// What cuts that do not fit are worth, plus the excess bytes.
  static constexpr double kTooFull = 1e15;

  const CutModel& model;
  const Problem& problem;
  PlanJudge judge;
  CutTimes times;
  CutMemory memory;
  FoundPlans found;

  std::size_t stages() const { return judge.placement().stages(); }
  /// Keeps a plan that fits if it is the best, or nearly as fast with less memory. True if it is
  /// the best.
  bool keep(const Cuts& cuts, Prices prices, Activations activations);
  /// The cuts do not fit. False.
  bool refuse(const Cuts& cuts, const std::vector<Bytes>& peak_memory);
};

}  // namespace pfeife
