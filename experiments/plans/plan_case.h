// From a case to the plans that are to be compared: the planned one (or the few among which an
// engine chooses), and the baselines.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/plans/evaluated_case.h"
#include "experiments/plans/what_would_help.h"

namespace pfeife {

/// The families that the config names, one by one.
std::vector<std::string> family_list(const PlanSettings& plan, Mode mode);

/// Refuses what cannot be planned: a point that a family named in `plan` cannot do, cuts that are
/// not legal or that the devices cannot share, a given plan or schedule that does not fit the
/// model. The layers are those of the case, of any microbatch size if that is open. Cheap, so that
/// a mistake in any case shows before the first one is computed. Errors: RefusedWish, or
/// ConfigError of a given file.
void check_case(const CaseInputs& inputs);

/// Makes the plans of a case that passed check_case, all but their simulations; `keep` is how many
/// planned ones at most, `threads` how many the search may use; `progress` (may be empty) is told
/// which share of the searches that the case may take is done: never less than before, and 1 at
/// most. `after_step` as in SearchOptions.
EvaluatedCase plan_case(const CaseInputs& inputs, const LayersOf& layers_of, std::size_t keep,
                        std::size_t threads, const std::function<void(double)>& progress = {},
                        const std::function<void(const SearchStepDone&)>& after_step = {});

}  // namespace pfeife
