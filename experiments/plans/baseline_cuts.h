// Where other systems would cut the model.
#pragma once

#include <string>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/request/request.h"
#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// The layers with legal cuts only where the baseline has them: all, or the borders of blocks.
Layers cut_where(const BaselineSettings& settings, const Layers& layers);

struct BaselineCuts {
  Partition partition;
  std::string refusal;  ///< why there are no such cuts; "" = there are
};

/// The baseline's cuts of cut_where(settings, ...), unless they are to be searched: as torchgpipe
/// and Alpa (equal_time), DeepSpeed (equal_parameters, its partition method "parameters") and
/// Megatron-LM (equal_layers) make them, or those that are given.
BaselineCuts baseline_cuts(const BaselineSettings& settings, const Layers& layers,
                           const Placement& placement, const Cluster& cluster);

/// "equal-time cuts", "searched cuts between blocks".
std::string cuts_in_words(const BaselineSettings& settings);

}  // namespace pfeife
