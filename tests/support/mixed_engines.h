// A case of which one plan alone was measured, and that plan is far slower than it was simulated.
#pragma once

#include <string>

#include "planner/ir/result/case_record.h"

namespace pfeife {

inline PlanRecord plan_with_times(const std::string& name, std::optional<int> estimate,
                                  std::optional<int> simulate, std::optional<int> measure = {},
                                  bool feasible = true) {
  const auto time = [](const std::optional<int>& ms) -> std::optional<Nanoseconds> {
    if (!ms) return std::nullopt;
    return Nanoseconds{std::int64_t{1'000'000} * *ms};
  };
  PlanRecord plan;
  plan.row.plan = plan.row.family = name;
  plan.row.devices = 2, plan.row.microbatches = 6, plan.row.microbatch_size = 1;
  plan.row.stages_per_rank = 1;
  plan.row.estimate = time(estimate), plan.row.simulate = time(simulate);
  plan.row.measure = time(measure);
  plan.row.feasible = feasible;
  plan.need.allocated = {(feasible ? 4 : 9) * kGiB}, plan.need.limit = {8 * kGiB};
  plan.row.peak_memory = plan.need.allocated[0], plan.row.memory_limit = plan.need.limit[0];
  return plan;
}

/// Simulated the plan is 300 / 250 = 1.20 times as fast as 1f1b, 276 / 250 - 1 = 10.4 % ahead of
/// the next that fits, and behind one that does not fit. Its measured 1000 ms beside their
/// simulations would make it the slowest: 0.30 times as fast. The simulation is 75 % too short.
/// Estimates have another order.
inline CaseRecord mixed_case() {
  CaseRecord record;
  record.name = "devices=2,microbatches=6";
  record.plans = {plan_with_times("planned", 240, 250, 1000), plan_with_times("1f1b", 220, 300),
                  plan_with_times("interleaved_1f1b", 230, 276),
                  plan_with_times("gpipe", 200, 245, {}, false)};
  return record;
}

/// All plans that fit were measured: 1f1b is the fastest, the plan takes 1000 / 800 of its time.
inline CaseRecord measured_case() {
  CaseRecord record = mixed_case();
  record.plans[1].row.measure = Nanoseconds{800'000'000};
  record.plans[2].row.measure = Nanoseconds{900'000'000};
  return record;
}

}  // namespace pfeife
