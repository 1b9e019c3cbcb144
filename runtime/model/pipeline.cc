#include "runtime/model/pipeline.h"

#include "planner/ir/basics/error.h"
#include "planner/ir/judge/validate.h"
#include "planner/ir/schedule/lower.h"

namespace pfeife {
namespace {

bool has_transfers_or_steps(const Schedule& schedule) {
  bool lowered = false;
  for (const auto& row : schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& a) { lowered = lowered || !is_compute(a.op); });
  return lowered;
}

/// Every row may be issued as it stands, on any transport: also where SEND, RECV and REDUCE_GRAD
/// wait for their partners.
void require_right(const Pipeline& pipeline) {
  if (pipeline.stages.stages != stage_count(pipeline.schedule))
    throw ConfigError({"schedule"}, stream_all("has ", stage_count(pipeline.schedule),
                                               " stages, the cuts make ", pipeline.stages.stages));
  const auto violations =
      validate(pipeline.schedule, {pipeline.stages, pipeline.microbatches, /*lowered=*/true},
               {.queues = Queues::None, .links = Links::Delay, .blocking = true});
  if (violations.empty()) return;
  const Violation& first = violations.front();
  throw ConfigError(
      {"schedule"},
      stream_all("rank ", first.rank.value, ", cell ", first.position, ": ", first.message,
                 violations.size() > 1 ? stream_all(" (and ", violations.size() - 1, " more)") : "",
                 "; lower the compute-only schedule for this partition"));
}

}  // namespace

std::vector<RankId> Pipeline::replica_ranks(std::size_t replica) const {
  std::vector<RankId> found;
  for (std::size_t r = 0; r < ranks(); ++r) found.push_back(number(replica, RankId{r}));
  return found;
}

std::vector<RankId> Pipeline::copies_of(RankId rank) const {
  std::vector<RankId> found;
  for (std::size_t d = 0; d < replicas.count; ++d) found.push_back(number(d, rank));
  return found;
}

Pipeline make_pipeline(Graph graph, std::span<const NodeId> cuts, const Schedule& schedule,
                       const Placement& placement, Mode mode) {
  Pipeline pipeline;
  pipeline.graph = std::move(graph);
  pipeline.effects = effects_of(pipeline.graph);
  pipeline.split = split_graph(pipeline.graph, pipeline.effects, cuts);
  if (placement.stages() != pipeline.split.stages.size())
    throw ConfigError({"schedule"},
                      stream_all("places ", placement.stages(), " stages, the cuts make ",
                                 pipeline.split.stages.size()));
  pipeline.stages =
      requirements_of(schedule, stage_graph(pipeline.graph, pipeline.split, placement), mode)
          .stages;
  pipeline.placement = placement;
  if (const std::size_t slices = slice_count(schedule); slices > 1)
    throw ConfigError({"schedule"},
                      stream_all("cuts each microbatch into ", slices,
                                 " slices, which nothing runs yet: a stage would have to keep keys "
                                 "and values between them; run a plan of whole microbatches"));
  pipeline.microbatches = microbatch_count(schedule);
  pipeline.schedule =
      has_transfers_or_steps(schedule)
          ? schedule
          : lower(schedule, unit_costs(pipeline.graph, pipeline.split, placement), placement);
  require_right(pipeline);
  pipeline.tasks = dependencies(pipeline.schedule, pipeline.stages, placement, Semantics{});
  return pipeline;
}

void add_norm_reduction(Pipeline& pipeline) {
  add_norm_reduction(pipeline.schedule);
  pipeline.tasks =
      dependencies(pipeline.schedule, pipeline.stages, pipeline.placement, Semantics{});
}

Pipeline unsplit_pipeline(Graph graph, std::size_t microbatches) {
  Schedule schedule{{{}}};
  for (std::size_t m = 0; m < microbatches; ++m) {
    const MicrobatchId id{m};
    schedule.rows[0].push_back(forward(StageId{0}, id));
    schedule.rows[0].push_back(backward(StageId{0}, id));
  }
  Pipeline pipeline = make_pipeline(std::move(graph), {}, schedule, round_robin(1, 1));
  pipeline.plain_backward = true;
  return pipeline;
}

}  // namespace pfeife
