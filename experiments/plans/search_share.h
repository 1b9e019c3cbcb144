// Which share of a case's searches is done, where a case takes several.
#pragma once

#include "planner/search/choices/alternatives.h"

namespace pfeife {

/// Searches that report the share of all of them that is done. Of those that turn out not to be
/// needed it is never said that they are done, so the last report may be of far less than 1.
class SearchShare {
 public:
  /// `work`: search_work of all there will be.
  explicit SearchShare(double work) : work_(work) {}
  /// `searcher`, one search after the other; what it reports is its part of the whole.
  Answer operator()(const Problem& problem, const SearchOptions& options, const Searcher& searcher);

 private:
  double work_, done_ = 0;
};

}  // namespace pfeife
