#include "experiments/plans/search_share.h"

#include <algorithm>

namespace pfeife {

Answer SearchShare::operator()(const Problem& problem, const SearchOptions& options,
                               const Searcher& searcher) {
  const double begin = done_;
  done_ = std::min(1.0, begin + search_work(options.effort()) / work_);
  return searcher(problem, part_of(options, begin, done_));
}

}  // namespace pfeife
