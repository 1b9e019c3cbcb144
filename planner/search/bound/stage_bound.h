// A bound from what each stage's own actions wait for and what waits for them, for cuts whose
// stages are a chain.
#pragma once

#include <span>

#include "planner/search/price/cut_costs.h"

namespace pfeife {

/// Step time (ns) that no cuts go below whose neighbouring stages are linked by values and
/// gradients. Four paths lead through every stage s: a microbatch comes to its first F, or goes on
/// to the last stage and comes back to its first B or I; s does what its rank's row has of it from
/// there on, to the end, or to its last B or I, which goes on to the first stage. With s = layers
/// [p, q) such a path is a sum over layers that falls with p and rises with q, so that cuts with no
/// path above T exist if and only if every stage in turn can take all the layers that T allows it;
/// the least such T is found by halving.
///
/// Forward only there is one path: a microbatch comes to s, which does all its F, and the last one
/// goes on to the end.
///
/// `latency`: [boundary] ns that transfers between its stages take at least. What the rank does for
/// its other stages is left out. Not above `enough`. O(stages x log(layers) x log(enough)).
double stage_bound(const CutModel& model, const CutCosts& costs, const Schedule& compute_only,
                   std::span<const CutCosts::Latency> latency, double enough);

/// One of the four paths through a stage.
struct StagePath {
  std::size_t stage = 0;
  /// Ends at the first stage, by its last B or I (forward only: at the last one, by its last F);
  /// else at its rank's end.
  bool leaves = false;
  bool returns = false;  ///< begins with the way to the last stage and back; else with that to it
};

/// What proves that no cuts are below `bound`, which is not above stage_bound() of the same
/// arguments: of each stage in turn the path that ends it, if it begins where the stages before can
/// at most end.
std::vector<StagePath> binding_paths(const CutModel& model, const CutCosts& costs,
                                     const Schedule& compute_only,
                                     std::span<const CutCosts::Latency> latency, double bound);

/// Cuts that leave no path above the least time there is (or hardly, where a stage would be empty),
/// transfers left out: good ones to start from where a rank has one stage. The model must have as
/// many segments as there are stages.
Cuts stage_cuts(const CutModel& model, const CutCosts& costs, const Schedule& compute_only);

}  // namespace pfeife
