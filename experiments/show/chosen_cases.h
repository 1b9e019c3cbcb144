// Which cases of a long sweep the screen shows.
#pragma once

#include <vector>

#include "planner/ir/case_record.h"

namespace pfeife {

/// All cases if the screen has room for them. Else the best case, by the planned schedule's samples
/// per second, of each value of the first key, and of the next keys together with it while there is
/// room; in the order of `cases`. Where a single key has too many values, the best of all. A case
/// that nothing fits stands for its group only if all of the group are like that.
std::vector<CaseRecord> cases_to_show(const std::vector<CaseRecord>& cases);

}  // namespace pfeife
