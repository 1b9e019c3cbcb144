// All plans of a case, with what planning came to.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/plans/evaluate.h"
#include "planner/inputs/read_layers.h"
#include "planner/ir/result/answer.h"
#include "planner/ir/trace/link_load.h"
#include "planner/search/pool/pool.h"

namespace pfeife {

struct EvaluatedCase {
  const Request* config = nullptr;
  std::shared_ptr<const Request> settled;  ///< with nothing left open: that of the plans
  std::string digest;
  std::vector<Evaluation> planned;    ///< best estimate first; one with a reason if nothing fits
  std::vector<Evaluation> baselines;  ///< in the order of the config
  std::size_t chosen = 0;             ///< of `planned`
  std::optional<std::size_t> less_memory;  ///< of `planned`: with_less_memory(), if nothing is run
  Pool pool{{}};                           ///< of the search; empty for a given plan
  /// Plans of other cases that fit here, with the cases' names.
  std::vector<std::pair<std::string, Priced>> handed;
  const ModelWork* work = nullptr;          ///< of a microbatch; nullptr = not known
  const Cluster* published = nullptr;       ///< the cluster before calibration; nullptr = not known
  std::optional<FasterLinks> faster_links;  ///< of the chosen plan, simulated with shared links

  const Answer& answer() const { return pool.answer(); }
};

}  // namespace pfeife
