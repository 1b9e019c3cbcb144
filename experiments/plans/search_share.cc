#include "experiments/plans/search_share.h"

#include <algorithm>

namespace pfeife {
namespace {

/// A brief search as a part of a full one. Shown, and nothing else.
constexpr double kBrief = 0.25;

}  // namespace

SearchShare::SearchShare(const SearchOptions& options, SearchCount most)
    : iterations_(options.iterations),
      total_(kBrief * static_cast<double>(most.brief) + static_cast<double>(most.full)) {}

Answer SearchShare::operator()(const Problem& problem, const SearchOptions& options,
                               const Searcher& searcher) {
  const double begin = done_;
  done_ = std::min(1.0, begin + (options.iterations == iterations_ ? 1 : kBrief) / total_);
  return searcher(problem, part_of(options, begin, done_));
}

}  // namespace pfeife
