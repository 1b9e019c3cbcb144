#include "planner/search/price/found_plans.h"

#include <algorithm>

#include "planner/search/price/lack.h"
#include "planner/search/price/pareto.h"

namespace pfeife {

void FoundPlans::note_lack(const Infeasible& lack) { note_closest(lack, closest_); }

void FoundPlans::keep_near(Priced plan) {
  front_.push_back(std::move(plan));
  front_ = pareto_front(std::move(front_), memory_limit_);
  std::erase_if(front_, [most = (1 + kNear) * static_cast<double>(front_.front().estimate.count())](
                            const Priced& other) {
    return static_cast<double>(other.estimate.count()) > most;
  });
}

void FoundPlans::join(FoundPlans& copy) {
  for (const Priced& plan : copy.front_) keep_near(plan);
  unsure_ = std::min(unsure_, copy.unsure_);
  set_aside_.merge(copy.set_aside_);
  note_closest(copy.closest_, closest_);
  if (copy.best_ && std::pair(copy.best_time_, copy.best_cuts_) < std::pair(best_time_, best_cuts_))
    best_ = copy.best_, best_time_ = copy.best_time_, best_cuts_ = copy.best_cuts_;
}

}  // namespace pfeife
