#include <algorithm>

#include "planner/io/plan/plan_writers.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/io/plan/split_points.h"
#include "planner/io/plan/torch_script.h"
#include "planner/ir/basics/error.h"

namespace pfeife {

Exported export_for_torch(const PlanToExport& planned) {
  const char* const name = "schedule_torch.csv";
  std::string why_not = torch_refusal(planned.layers, planned.plan), schedule;
  try {
    schedule = write_schedule(planned.plan.schedule, Reader::Torch);
  } catch (const ConfigError& error) {
    if (why_not.empty()) why_not = error.what();
  }
  const bool runs = why_not.empty();
  Exported exported{{{"split_points.json",
                      split_points_text(planned.layers, planned.plan, runs ? name : "", why_not)}}};
  if (!runs) exported.lost.push_back(why_not);
  bool whole = runs;
  for (const SplitPoint& point : split_points(planned.layers, planned.plan.partition)) {
    if (point.why_not.empty()) continue;
    exported.lost.push_back("a cut: " + point.why_not);
    whole = false;
  }
  if (whole && planned.plan.training.mode == Mode::Forward) {
    exported.lost.push_back("run_in_torch.py, which trains: the plan runs forward only");
    whole = false;
  }
  if (runs) exported.files.push_back({name, schedule});
  if (whole) exported.files.push_back({"run_in_torch.py", std::string(torch_script())});
  return exported;
}

}  // namespace pfeife
