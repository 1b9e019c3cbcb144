// Pipelines of the small models whose rows have OFFLOAD and RELOAD.
#pragma once

#include "planner/ir/schedule/lower.h"
#include "tests/runtime/pipelines.h"

namespace pfeife::testing {

using OffloadWanted = std::function<bool(StageId, MicrobatchId)>;

/// Every stage offloads what is wanted and fits where a copy takes half of F.
inline Pipeline offloading_pipeline(
    const Model& model, const ScheduleSpec& spec,
    const OffloadWanted& wanted = [](StageId, MicrobatchId) { return true; }) {
  const Pipeline plain = model.pipeline(spec);
  StageCosts costs = unit_costs(plain.graph, plain.split, plain.placement);
  for (StageCost& stage : costs.stages) {
    stage.offloaded = Bytes{1};
    stage.offload = stage.reload = stage.forward / 2;
  }
  return make_pipeline(model.graph, model.even_cuts(plain.stages.stages),
                       with_offload(plain.schedule, costs, plain.placement, wanted),
                       plain.placement);
}

}  // namespace pfeife::testing
