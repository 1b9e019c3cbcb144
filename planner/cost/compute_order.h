// Estimates of one schedule for many cuts, whichever stages exchange values: without lowering it
// for each.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/ir/schedule.h"
#include "planner/ir/stage_costs.h"

namespace pfeife {

/// The actions of a schedule in an order that suits every pattern of values between its stages: on
/// a chain of stages each comes after all that it can have to wait for.
class ComputeOrder {
 public:
  /// `compute_only` must be a schedule of all its stages without transfers. Errors: ConfigError if
  /// it cannot run on a chain of stages.
  ComputeOrder(const Schedule& compute_only, const Placement& placement);

  /// The estimate that evaluate() gives. Stages must share no parameters: costs.reductions is
  /// empty.
  Nanoseconds estimate(const StageCosts& costs) const;

 private:
  struct Part {
    Op op = Op::Forward;
    std::uint32_t stage = 0, microbatch = 0;
  };
  struct Cell {
    std::uint32_t rank = 0, begin = 0, end = 0;  ///< its parts
  };
  std::size_t microbatches_;
  std::vector<std::uint32_t> rank_of_stage_;
  std::vector<Cell> cells_;
  std::vector<Part> parts_;
};

}  // namespace pfeife
