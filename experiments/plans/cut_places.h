// Where the cuts of a case lie, if the config leaves that open: between blocks or at any layer. The
// case is searched with both if need be.
#pragma once

#include "experiments/plans/choices.h"
#include "experiments/plans/evaluate.h"

namespace pfeife {

/// Searches a case with what its config leaves open. Cuts lie between blocks, unless cuts at other
/// layers make the step shorter by more than 1 %. Errors: as searched_schedules().
SettledSearch search_case(const CaseInputs& inputs, const LayersOf& layers_of,
                          const SearchOptions& options);

}  // namespace pfeife
