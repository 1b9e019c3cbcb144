#include "planner/ir/result/contestant.h"

#include "planner/ir/basics/error.h"

namespace pfeife {

const PricedPlan& Contestant::priced() const {
  if (!possible()) throw RuntimeFault(reason);
  return *this;
}

}  // namespace pfeife
