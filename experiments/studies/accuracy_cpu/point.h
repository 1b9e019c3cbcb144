// One plan of the study: what two profiles predict of it, and what was measured in all rounds.
#pragma once

#include <vector>

#include "experiments/inputs/inputs.h"
#include "experiments/plans/evaluate.h"
#include "experiments/sweep/record.h"

namespace pfeife {

struct Point {
  EvaluatedCase evaluated;          ///< the plan, predicted from the first share of the profile
  Evaluation pooled;                ///< the same plan, predicted from all shares
  std::vector<Nanoseconds> steps;   ///< that count, of all rounds
  std::vector<Nanoseconds> rounds;  ///< [round] the median of its steps
  std::vector<Bytes> peak;          ///< [rank] highest of all rounds
  std::vector<Nanoseconds> busy;    ///< [round] busy_time() of the step with the median time

  Evaluation& first() { return evaluated.planned.front(); }
  const Evaluation& first() const { return evaluated.planned.front(); }
};

/// The plan that is found with the profile of `config`. Errors: ConfigError if there is none, or
/// the profile says nothing of variation.
Point planned(CaseConfig& config, Inputs& inputs);

/// Predicts the point's plan from the profile of `config`, which is the same case otherwise.
void predict_pooled(Point& point, const CaseConfig& config, Inputs& inputs);

/// Trains the plan in the case's folder below `folder` and adds what was measured. Errors:
/// RuntimeFault.
void measure(Point& point, const std::filesystem::path& folder);

/// Time in which ranks compute, all of them together.
Nanoseconds busy_time(const Trace& trace);

}  // namespace pfeife
