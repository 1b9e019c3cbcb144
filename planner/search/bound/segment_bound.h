// Bounds from the longest chains through the layers, alone and around the heaviest piece of the
// model that cannot be cut. They take no search and hold for any cuts and any placement.
#pragma once

#include "planner/search/price/cut_model.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Step time (ns) that no plan of the schedule goes below. Whichever rank has a segment (layers
/// between two neighbouring cut positions) has its work to do for all microbatches. Before that,
/// the longest chain of layers that the segment needs has run forward. After its last gradient of
/// inputs (and the weight gradients that the schedule puts before that), the chain runs back once
/// more, where values have gradients. Every layer counts on its fastest device, transfers not at
/// all.
double segment_bound(const CutModel& model, const Problem& problem, const Schedule& compute_only);

/// What decides segment_bound.
struct HeaviestSegment {
  double bound = 0;         ///< ns
  std::size_t segment = 0;  ///< layers between cut positions `segment` and the next
};

/// The same of every order there is: no weight gradient need come early.
HeaviestSegment heaviest_segment(const CutModel& model, const Problem& problem,
                                 std::size_t microbatches);

/// One microbatch: the longest way forward through the layers to one of them and, where values have
/// gradients, back; every layer on its fastest device, transfers and weight gradients not at all.
double one_microbatch_bound(const Problem& problem);

}  // namespace pfeife
