// Which cases and plans of an experiment the screen shows, and what is said of the others.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/result/case_record.h"

namespace pfeife {

struct ShownCases {
  std::vector<CaseRecord> cases;  ///< with the plans that are shown
  std::string summary;            ///< what they are a choice of; "" = everything is shown
};

/// Everything of a few cases. Of more the chosen plan of each. Of more than the screen has room for
/// the best case, by the chosen plan's samples per second, of each value of the first key, and of
/// the next keys together with it while there is room; in the order of `cases`. Where a single key
/// has too many values, the best of all. A case that nothing fits stands for its group only if all
/// of the group are like that.
ShownCases cases_to_show(const std::vector<CaseRecord>& cases);

}  // namespace pfeife
