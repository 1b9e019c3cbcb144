// split_points.json: a plan for torch.distributed.pipelining, as far as that can have it.
//
// torch splits a model before or after the calls of a submodule, `pipeline(..., split_spec={path:
// SplitPoint.END})`, so a cut is expressible where a submodule that is called once ends or begins
// (Layer::ends_module, begins_module); whether torch then traces the model as it was exported is
// not known here. A cut anywhere else is told by the last
// operator before it and the submodule ("" = the model itself) in which that is called: there the
// model would have to be changed so that torch can cut it.
// Recomputed blocks come with the modules to wrap for that, where they are whole modules.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/model/layers.h"
#include "planner/ir/result/plan.h"

namespace pfeife {

/// What torch's split_spec says of one cut.
struct SplitPoint {
  std::string module;   ///< path of the submodule; "" = the cut is not expressible
  bool before = false;  ///< SplitPoint.BEGINNING; otherwise SplitPoint.END
  std::string why_not;  ///< "" if it is
  friend bool operator==(const SplitPoint&, const SplitPoint&) = default;
};

/// [cut]
std::vector<SplitPoint> split_points(const Layers& layers, const Partition& partition);

/// Why torch 2.11 cannot run the plan's schedule on these layers; "" if nothing is known against
/// it:
/// - stages share a parameter: torch does not add its gradients;
/// - a value is read beyond the stage after its own: torch sends to neighbours only;
/// - a stage with backward-input apart from backward-weight (not the first, of which torch leaves
/// the former out) sends
///   a value that an operator with parameters may read in the stage, too: torch detaches what is
///   sent in place after backward-input, and autograd then refuses it to backward-weight.
std::string torch_refusal(const Layers& layers, const Plan& plan);

/// The text of split_points.json. `schedule` = name of the schedule's file in torch's form, "" if
/// there is none, then `why_not` says why.
std::string split_points_text(const Layers& layers, const Plan& plan, const std::string& schedule,
                              const std::string& why_not);

}  // namespace pfeife
