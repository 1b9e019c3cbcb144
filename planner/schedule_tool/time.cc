#include "planner/ir/basics/error.h"
#include "planner/ir/basics/grid.h"
#include "planner/ir/result/figures.h"
#include "planner/schedule_tool/argument_text.h"
#include "planner/schedule_tool/lifetimes.h"
#include "planner/schedule_tool/verbs.h"

namespace pfeife::tool {
namespace {

/// Both directions between stages, as many as the schedule itself shows, at the given transfer
/// time.
StageCosts costs_for(const Schedule& schedule, const UnitCosts& units) {
  StageCosts costs =
      stage_costs_of(units, stage_count(schedule), slice_count(schedule), head_barriers(schedule));
  const Nanoseconds time = nanoseconds_from_ms(units.transfer);
  costs.pairs.clear();
  for (const StageGraph::Edge& e : requirements_of(schedule, true, units.mode).stages.edges)
    costs.pairs.push_back(
        {e.from, e.to, Bytes{1}, Bytes{e.gradient ? 1 : 0}, time, time, e.gradient});
  for (StageCosts::Slice& slice : costs.slices) slice.pairs = costs.pairs;
  return costs;
}

std::vector<std::string> attribution_row(const Trace& trace, const Schedule& schedule,
                                         RankId rank) {
  const Attribution a = attribution(trace, rank);
  const Holdings held = peak_holdings(schedule, rank);
  std::vector<std::string> row{to_string(rank), std::to_string(held.in_flight),
                               std::to_string(held.for_weight), percent_text(bubble(trace, rank))};
  for (const Nanoseconds part : {a.compute, a.dependency_wait, a.exposed_transfer, a.queue_wait,
                                 a.launch, a.reduction, a.optimizer, a.total()})
    row.push_back(ms_text(milliseconds(part)));
  return row;
}

}  // namespace

Timing time_schedule(const Schedule& schedule, const UnitCosts& units, const Semantics& semantics,
                     const EstimateOptions& options) {
  const std::string wrong = violations_text(schedule, semantics, units.mode);
  if (!wrong.empty()) throw ConfigError({}, "the schedule cannot run:\n" + wrong);
  const Placement placement = placement_of(schedule).value();
  const StageCosts costs = costs_for(schedule, units);
  Timing timing;
  timing.lowered = has_transfers(schedule) ? schedule : lower(schedule, costs, placement);
  const auto answer = estimate(
      dependencies(timing.lowered, stage_graph(costs), placement, semantics), costs, options);
  PFEIFE_CHECK(std::holds_alternative<Trace>(answer), "the judge saw no deadlock");
  timing.trace = std::get<Trace>(answer);
  return timing;
}

std::string timing_text(const Timing& timing) {
  const Trace& trace = timing.trace;
  std::string text = "step time " + ms_text(milliseconds(step_time(trace))) + " ms, bubble " +
                     percent_text(bubble(trace)) + ", critical rank " +
                     to_string(critical_rank(trace)) + "\n";
  if (const auto latency = forward_latency(trace))
    text += "latency of a microbatch " + ms_text(milliseconds(*latency)) + " ms\n";
  std::vector<std::vector<std::string>> rows{{"rank", "in flight", "I to W", "bubble", "compute",
                                              "waiting", "transfer", "queue", "launch", "reduction",
                                              "optimizer", "step [ms]"}};
  for (std::size_t r = 0; r < trace.ranks; ++r)
    rows.push_back(attribution_row(trace, timing.lowered, RankId{r}));
  return text + plain_grid(rows, true);
}

}  // namespace pfeife::tool
