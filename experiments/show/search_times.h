// Where the time of a search went, by its steps.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "planner/search/problem.h"

namespace pfeife {

class SearchTimes {
 public:
  /// Steps of one name count together, of whatever search of the case; from any thread.
  void add(const SearchStepDone& step);
  /// "3.2 s: anneal 1.9 s, branch 1.0 s, start 0.3 s", the longest first, what rounds to nothing
  /// left out; "" = no steps. Searches beside one another count each.
  std::string text() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, double, std::less<>> seconds_;
};

}  // namespace pfeife
