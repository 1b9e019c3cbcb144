#include "planner/ir/result/result.h"

#include "planner/ir/schedule/schedule.h"

namespace pfeife {

std::string schedule_name(const ResultRow& row) {
  return schedule_name(row.family, row.stages_per_rank, row.knobs);
}

std::string outcome_text(const TriedChange& tried) {
  if (!tried.estimate) return "does not help: " + tried.reason;
  std::string text = tried.schedule + ", " + to_string(*tried.estimate) + " estimated";
  if (tried.peak_memory) text += ", peak memory " + to_string(*tried.peak_memory);
  return text;
}

}  // namespace pfeife
