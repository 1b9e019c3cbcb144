// `pfeife-exp batches CONFIG --lengths FILE.csv`: one plan for many batches of documents, and what
// planning each batch anew would be worth.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/basics/units.h"
#include "planner/ir/model/microbatch_scale.h"

namespace pfeife {

/// [batch] Columns batch, microbatch, length, a row a document; all batches have as many
/// microbatches. Errors: ConfigError with the place.
std::vector<DocumentLengths> read_batches(const std::filesystem::path& file);

struct BatchesQuestion {
  std::filesystem::path config;
  std::vector<std::string> settings = {};  ///< as --set has them
  std::filesystem::path lengths;           ///< read_batches()
  bool order = false;                      ///< the order of microbatches is searched, too
  bool by_p95 = false;                     ///< which plan is best; else by the mean
  std::filesystem::path out = {};          ///< a folder for the best plan; "" = none
};

/// Steps of one plan, or of a plan for each batch.
struct BatchSteps {
  std::string plan;                 ///< its name; "" = a plan for each batch
  std::optional<std::size_t> from;  ///< the batch that it was found for; none = the mean microbatch
  std::vector<Nanoseconds> steps;   ///< [batch] estimated
  Nanoseconds mean() const;
  Nanoseconds p95() const;  ///< nearest rank
};

struct BatchesAnswer {
  std::optional<BatchSteps> of_mean;  ///< the plan for the mean microbatch, if it fits all batches
  BatchSteps best;                    ///< one plan
  BatchSteps replanned;               ///< for each batch the fastest of all plans that were found
  std::size_t plans = 0;              ///< found
  std::size_t fit = 0;                ///< of these, in memory with every batch
};

/// Plans every batch and the mean microbatch, prices every plan for every batch, and takes the plan
/// whose mean or p95 is smallest, of equal ones the first. Planning is done once a batch and takes
/// nearly all of the time; `progress` hears of each. Errors: ConfigError; RuntimeFault if no plan
/// fits, or none fits all batches.
BatchesAnswer plan_batches(const BatchesQuestion& question, std::size_t threads,
                           const std::function<void(std::size_t)>& progress = {});

/// For people: a line each.
std::string batches_text(const BatchesAnswer& answer);

}  // namespace pfeife
