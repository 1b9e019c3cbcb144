// `pfeife-exp pack CONFIG --limit TOKENS`: which documents of a step share a microbatch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/basics/units.h"
#include "planner/ir/model/microbatch_scale.h"

namespace pfeife {

struct PackingQuestion {
  std::filesystem::path config;  ///< its training.lengths has the documents, in any grouping
  std::vector<std::string> settings = {};        ///< as --set has them
  std::int64_t limit = 0;                        ///< tokens of a microbatch
  std::optional<std::size_t> microbatches = {};  ///< absent = as many as first-fit makes
};

/// A grouping with the step of the plan that was found for it.
struct PackedStep {
  std::string name;          ///< "as listed", "first-fit", "first-fit, order searched", "planned"
  DocumentLengths grouping;  ///< [microbatch]
  Nanoseconds step{0};       ///< estimated
};

struct Packing {
  std::vector<PackedStep> steps;  ///< the last is the planned grouping
  std::size_t tried = 0;          ///< groupings, on the rows of plans that were found
  bool exact = false;             ///< all groupings, on the rows of the last of these plans
};

/// Plans the case for first-fit, searches a faster grouping on the rows of the plan, and plans the
/// case anew for the grouping, as long as the step gets shorter. The planned grouping has its
/// microbatches in the order in which they run, and takes no longer than first-fit if that makes as
/// many. Errors: ConfigError, also if documents do not fit the limit; RuntimeFault if no plan fits.
Packing pack_documents(const PackingQuestion& question, std::size_t threads);

/// For people: a line for each grouping.
std::string packing_text(const Packing& packing);
/// A file for training.lengths: microbatch, length.
std::string lengths_csv(const DocumentLengths& grouping);

}  // namespace pfeife
