#include "planner/search/price/found_plans.h"

#include <algorithm>

#include "planner/search/price/lack.h"

namespace pfeife {

void FoundPlans::note_lack(const Infeasible& lack) { note_closest(lack, closest_); }

void FoundPlans::join(FoundPlans& copy) {
  unsure_ = std::min(unsure_, copy.unsure_);
  set_aside_.merge(copy.set_aside_);
  note_closest(copy.closest_, closest_);
  if (copy.best_ && std::pair(copy.best_time_, copy.best_cuts_) < std::pair(best_time_, best_cuts_))
    best_ = copy.best_, best_time_ = copy.best_time_, best_cuts_ = copy.best_cuts_;
}

}  // namespace pfeife
