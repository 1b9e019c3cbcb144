#include <algorithm>

#include "planner/io/plan/plan_writers.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/io/plan/split_points.h"
#include "planner/io/plan/torch_script.h"
#include "planner/ir/basics/error.h"

namespace pfeife {

Exported export_for_torch(const ToldPlan& told) {
  const char* const name = "schedule_torch.csv";
  std::string why_not = torch_refusal(told.layers, told.plan), schedule;
  try {
    schedule = write_schedule(told.plan.schedule, Reader::Torch);
  } catch (const ConfigError& error) {
    if (why_not.empty()) why_not = error.what();
  }
  const bool runs = why_not.empty();
  Exported made{{{"split_points.json",
                  split_points_text(told.layers, told.plan, runs ? name : "", why_not)}}};
  if (!runs) made.lost.push_back(why_not);
  bool whole = runs;
  for (const SplitPoint& point : split_points(told.layers, told.plan.partition)) {
    if (point.why_not.empty()) continue;
    made.lost.push_back("a cut: " + point.why_not);
    whole = false;
  }
  if (runs) made.files.push_back({name, schedule});
  if (whole) made.files.push_back({"run_in_torch.py", std::string(torch_script())});
  return made;
}

}  // namespace pfeife
