// All plans of a case, with what the search says besides them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/plans/evaluate.h"
#include "planner/inputs/read_layers.h"
#include "planner/ir/result/certificate.h"
#include "planner/ir/result/result.h"
#include "planner/ir/trace/link_load.h"
#include "planner/search/problem.h"

namespace pfeife {

/// What the search of a case says besides its plans; empty for a given plan.
struct SearchFindings {
  std::vector<Rejected> rejected;
  std::vector<SearchStep> history;
  std::vector<FrontPoint> front;
  std::vector<Alternative> alternatives;  ///< of what was open
  std::vector<TriedChange> tried;         ///< if nothing fits
  /// The best plan of each schedule; empty once the simulator has chosen among them.
  std::vector<Priced> known;
  Recompute recompute = Recompute::None;  ///< SearchOutcome::recompute
  std::optional<Bound> bound;
  /// No plan that `bound` covers is simulated faster, links being shared; no certificate says it.
  std::optional<Nanoseconds> links_bound;
  std::string bound_covers;      ///< what it holds for, in words
  bool orders_left_out = false;  ///< SearchOutcome::orders_left_out
  /// Proves the bound, or what of it is of the plan's own problem; may be empty.
  std::shared_ptr<const Certificate> certificate;
  std::vector<std::string> unfinished;  ///< where a budget ended the search, in words
  std::size_t candidates = 0;           ///< evaluated
  double seconds = 0;
};

struct EvaluatedCase {
  const Request* config = nullptr;
  std::shared_ptr<const Request> settled;  ///< with nothing left open: that of the plans
  std::string digest;
  std::vector<Evaluation> planned;    ///< best estimate first; one with a reason if nothing fits
  std::vector<Evaluation> baselines;  ///< in the order of the config
  std::size_t chosen = 0;             ///< of `planned`
  SearchFindings search;
  const ModelWork* work = nullptr;          ///< of a microbatch; nullptr = not known
  const Cluster* published = nullptr;       ///< the cluster before calibration; nullptr = not known
  std::optional<FasterLinks> faster_links;  ///< of the chosen plan, simulated with shared links
};

}  // namespace pfeife
