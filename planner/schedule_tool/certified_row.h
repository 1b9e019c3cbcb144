// What a row of any order counts (planner/ir/result/certificate.h), and what must wait for what so
// that it does.
#pragma once

#include "planner/ir/result/certificate.h"

namespace pfeife::tool {

struct RowStage {
  /// F, I and W of the stage, and optimizer steps.
  std::int64_t forward = 0, input = 0, weight = 0, step = 0;
  /// Messages between the stage before and this one; gradients back.
  bool up = false, back = false;
  /// This stage must wait for the one before it, and that one for a gradient of this.
  bool waits_forward = false, waits_back = false;
};

/// [stage] Of all orders of the actions alike. ConfigError for a row that there is not.
std::vector<RowStage> row_stages(const CertifiedPath& row, const ScheduleSpec& spec,
                                 const std::vector<RankId>& rank_of_stage);

}  // namespace pfeife::tool
