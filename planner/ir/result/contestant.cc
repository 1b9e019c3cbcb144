#include "planner/ir/result/contestant.h"

#include "planner/ir/basics/error.h"
#include "planner/ir/result/host_lack.h"
#include "planner/ir/result/priced.h"

namespace pfeife {

bool Contestant::fits() const {
  return possible() && pfeife::fits(must_fit(), memory_limit) &&
         !host_lack(host_memory, host_limit);
}

const PricedPlan& Contestant::priced() const {
  if (!possible()) throw RuntimeFault(reason);
  return *this;
}

}  // namespace pfeife
