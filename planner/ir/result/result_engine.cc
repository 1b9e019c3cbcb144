#include "planner/ir/result/result_engine.h"

namespace pfeife {

TraceSource engine_of(const ResultRow& row) {
  if (row.measure) return TraceSource::Measured;
  return row.simulate ? TraceSource::Simulated : TraceSource::Estimated;
}

std::string engine_text(const std::vector<ResultRow>& rows) {
  std::optional<TraceSource> common;
  for (const ResultRow& row : rows) {
    if (!row.estimate && !row.simulate && !row.measure) continue;
    if (common && *common != engine_of(row)) return "best engine";
    common = engine_of(row);
  }
  return to_string(common.value_or(TraceSource::Estimated));
}

}  // namespace pfeife
