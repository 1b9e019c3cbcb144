// `pfeife-exp fits`: does a model fit, on how many devices of which kind, how fast, at what price?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/show/known_errors.h"
#include "planner/ir/basics/units.h"
#include "planner/mesh/mesh_search.h"

namespace pfeife {

/// One cluster with one number of devices.
struct FitRow {
  std::string cluster;
  std::int64_t devices = 0;
  std::string lack;           ///< what is missing; "" = it fits, and the rest is known
  Nanoseconds step{0};        ///< estimated; of a pipeline that was planned, simulated
  double rate = 0;            ///< tokens a second, or samples
  std::optional<double> mfu;  ///< a share
  Bytes allocated{0}, reserved{0}, limit{0};  ///< of the device that has least left
  std::string plan;                           ///< "tp 4, pp 2, mb 1"
  std::optional<double> price;                ///< of a device-hour
  std::optional<KnownError> error = {};       ///< of the step, where any is known
  std::string coverage = {};  ///< coverage_text(), where products or layers are measured
};

/// Whether and how fast the best mesh is, of the answer to a question.
FitRow fit_of_answer(const std::string& cluster, const MeshQuestion& question,
                     const MeshAnswer& answer, const Network& network);
/// The same; the question is asked. What has no answer is what is missing.
FitRow fit_of_mesh(const std::string& cluster, const MeshQuestion& question, const Network& network,
                   std::size_t threads);

/// A row each, and what is known of their errors. `unit`: "tokens" or "samples"; at most `width`
/// characters a line where they allow it.
std::string fits_table(const std::vector<FitRow>& rows, const std::string& unit, std::size_t width);
/// The same for programs, as CSV in bytes, ms and shares; what is not known is empty.
std::string fits_csv(const std::vector<FitRow>& rows, const std::string& unit);

}  // namespace pfeife
