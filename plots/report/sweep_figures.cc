#include "plots/report/sweep_figures.h"

#include "planner/ir/result/result_engine.h"
#include "plots/screen/columns.h"

namespace pfeife::plots {

std::vector<SweepFigure> sweep_figures(const std::vector<CaseRecord>& cases) {
  const MemoryUnit unit = memory_unit(cases);
  const auto in_unit = [unit](Bytes bytes) {
    return static_cast<double>(bytes.value) / unit.bytes;
  };
  return {{"samples/s", [](const CaseRecord&, const PlanRecord& p) { return p.row.samples_per_s; },
           [](const CaseRecord& record, const PlanRecord& p) -> std::optional<double> {
             if (!p.row.lower_bound || p.row.lower_bound->count() == 0) return std::nullopt;
             // A bound on predictions says nothing beside what was measured.
             if (compared_engine(record) == TraceSource::Measured) return std::nullopt;
             return static_cast<double>(p.row.microbatches) *
                    static_cast<double>(p.row.microbatch_size) / seconds(*p.row.lower_bound);
           },
           "bound"},
          {"bubble, %",
           [](const CaseRecord&, const PlanRecord& p) {
             return p.row.bubble ? std::optional(100 * *p.row.bubble) : std::nullopt;
           },
           nullptr, ""},
          {"gap to the bound, %",
           [](const CaseRecord& record, const PlanRecord& p) {
             const auto gap = gap_of(record, p);
             return gap ? std::optional(100 * *gap) : std::nullopt;
           },
           nullptr, ""},
          {std::string("largest peak memory, ") + unit.name,
           [in_unit](const CaseRecord&, const PlanRecord& p) {
             return p.row.peak_memory ? std::optional(in_unit(*p.row.peak_memory)) : std::nullopt;
           },
           [in_unit](const CaseRecord&, const PlanRecord& p) -> std::optional<double> {
             if (p.row.memory_limit.value == 0) return std::nullopt;
             return in_unit(p.row.memory_limit);
           },
           "memory limit"}};
}

}  // namespace pfeife::plots
