// What the two studies of published runs share: the command line, the runs, and how far
// predictions are from them.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "experiments/studies/published_runs/runs.h"

namespace pfeife::published {

struct Pair {
  double predicted = 0, measured = 0;  ///< of one unit
  double error() const { return predicted / measured - 1; }
};

struct Score {
  std::size_t runs = 0;
  double mean = 0, median = 0, largest = 0;  ///< of |predicted / measured - 1|
  double bias = 0;                           ///< mean of predicted / measured - 1
  double tau = 0;  ///< Kendall's: (pairs in the same order - in the other one) / all pairs
};
Score score(std::span<const Pair> pairs);

/// The factor on predictions with the least sum of absolute log errors: the median of measured over
/// predicted, which rows far off any model do not pull.
double calibration(std::span<const Pair> pairs);

/// The main of a study: `NAME REPOSITORY OUT`. Hands on the repository
/// and the folder to write into, which exists. Returns the exit code.
int run_study(
    const char* name, int argc, char** argv,
    const std::function<void(const std::filesystem::path&, const std::filesystem::path&)>& study);

/// The runs of both studies, of papers.
std::vector<Source> sources_of(const std::filesystem::path& root);

/// "12.3".
std::string gib(Bytes bytes, int decimals);

}  // namespace pfeife::published
