// From a case to the plans that are to be compared: the planned one (or the few among which an
// engine chooses), and the baselines.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/candidate.h"
#include "experiments/choices.h"
#include "experiments/what_would_help.h"
#include "planner/search/search.h"

namespace pfeife {

/// What the search of a case says besides its plans; empty for a given plan.
struct SearchFindings {
  std::vector<Rejected> rejected;
  std::vector<SearchStep> history;
  std::vector<FrontPoint> front;
  std::vector<Alternative> alternatives;  ///< of what was open
  std::vector<TriedChange> tried;         ///< if nothing fits
  std::optional<Bound> bound;
  /// Proves the bound, or what of it is of the plan's own problem; may be empty.
  std::shared_ptr<const Certificate> certificate;
  std::size_t candidates = 0;  ///< evaluated
  double seconds = 0;
};

struct CasePlans {
  std::shared_ptr<const CaseConfig> settled;  ///< the case with nothing left open
  const Layers* layers = nullptr;             ///< of it
  std::vector<Candidate> planned;    ///< best estimate first; one with a reason if nothing fits
  std::vector<Candidate> baselines;  ///< in the order of the config
  SearchFindings search;
};

/// The families that the config names, one by one.
std::vector<std::string> family_list(const PlanSettings& plan);

/// Refuses what cannot be planned: a point that a family named in `plan` cannot do, cuts that are
/// not legal or that the devices cannot share, a given plan or schedule that does not fit the
/// model. `layers`: of the case, whatever its microbatch size if that is open. Cheap, so that a
/// mistake in any case shows before the first one is computed. Errors: ConfigError.
void check_case(const CaseConfig& config, const Layers& layers, const Cluster& cluster);

/// Makes the plans of a case that passed check_case; `keep` is how many planned ones at most,
/// `threads` how many the search may use; `progress` (may be empty) is told which share of the
/// searches that the case may take is done: never less than before, and 1 at most.
CasePlans plan_case(const CaseConfig& config, const Layers& layers, const Cluster& cluster,
                    const LayersOf& layers_of, std::size_t keep, std::size_t threads,
                    const std::function<void(double)>& progress = {});

}  // namespace pfeife
