#include <algorithm>

#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/backward_passes.h"
#include "planner/schedule_tool/verbs.h"

namespace pfeife::tool {
namespace {

Placement placement_or_error(const Schedule& schedule) {
  if (auto placement = placement_of(schedule)) return *placement;
  throw ConfigError({},
                    "a stage is on two ranks, or the stages are not numbered from 0 without a gap "
                    "(`validate` names them)");
}

void check_stage(StageId stage, std::size_t stages, const char* option) {
  if (stage.index() >= stages)
    throw ConfigError({}, std::string(option) + ": there is no stage " + to_string(stage) +
                              ", only " + std::to_string(stages));
}

void add_skips(StageCosts& costs, const LowerRequest& request) {
  for (const StageGraph::Edge& skip : request.skips) {
    check_stage(skip.to, costs.stages.size(), "--skip");
    if (find_pair(costs, skip.from, skip.to)) continue;
    const Nanoseconds time = nanoseconds_from_ms(request.costs.transfer);
    const bool gradient = skip.gradient && request.costs.mode == Mode::Train;
    costs.pairs.push_back(
        {skip.from, skip.to, Bytes{1}, Bytes{gradient ? 1 : 0}, time, time, gradient});
    std::ranges::sort(costs.pairs, {}, [](const StagePair& p) { return std::pair{p.from, p.to}; });
  }
}

}  // namespace

Schedule lower_schedule(const Schedule& schedule, const LowerRequest& request) {
  // A schedule with transfers is refused below: with these words, the mistake would seem another.
  if (const std::string wrong =
          has_transfers(schedule) ? "" : violations_text(schedule, {}, request.costs.mode);
      !wrong.empty())
    throw ConfigError({}, "the schedule cannot run:\n" + wrong);
  Schedule compute = schedule;
  if (request.merge_backward) compute = merge_backward(compute);
  if (request.split_backward) compute = split_backward(compute);
  const Placement placement = placement_or_error(compute);
  StageCosts costs = stage_costs_of(request.costs, placement.stages(), slice_count(compute),
                                    head_barriers(compute));
  add_skips(costs, request);
  for (StageCosts::Slice& slice : costs.slices) slice.pairs = costs.pairs;
  for (const auto& group : request.tied) {
    for (const StageId stage : group) check_stage(stage, placement.stages(), "--tied");
    costs.reductions.push_back({group, Bytes{1}, Nanoseconds{0}});
  }
  return lower(compute, costs, placement, request.options);
}

}  // namespace pfeife::tool
