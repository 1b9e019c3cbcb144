// lower(): checks its input, then runs the passes in the order that torch.distributed.pipelining
// has them, so that its tables come out cell for cell: parameters, reductions, transfers; our
// optimizer step last.
#include "planner/ir/schedule/lower.h"

#include <algorithm>

#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/lowering.h"

namespace pfeife {
namespace {

std::string place(std::size_t rank, std::size_t position) {
  return "rank " + std::to_string(rank) + ", position " + std::to_string(position);
}

/// What is wrong with a microbatch of a schedule of S slices each.
std::string slices_text(MicrobatchId found, std::size_t slices) {
  const std::string others = "the schedule cuts every microbatch into " + std::to_string(slices);
  if (found.slices == 1) return "it names no slice, but " + others + " slices";
  return "it names slice " + std::to_string(found.slice()) +
         (slices == 1 ? ", but the first action names none" : ", but " + others);
}

void check_action(const Action& action, std::size_t rank, std::size_t position,
                  const Placement& placement, std::size_t slices) {
  if (is_head_collective(action.op))
    throw ConfigError({}, place(rank, position) + ": " + to_string(action) +
                              ": S and T say when the ranks wait for one another; rows do not name "
                              "the collective");
  if (is_transfer(action.op) || is_copy(action.op))
    throw ConfigError(
        {}, place(rank, position) + ": " + to_string(action) +
                ": the schedule has transfers already; lowering takes a compute-only one");
  if (is_compute(action.op) != action.microbatch.has_value())
    throw ConfigError({}, place(rank, position) + ": " + to_string(action) + ": a microbatch is " +
                              (action.microbatch ? "there" : "missing"));
  if (action.microbatch && static_cast<std::size_t>(action.microbatch->slices) != slices)
    throw ConfigError({}, place(rank, position) + ": " + to_string(action) + ": " +
                              slices_text(*action.microbatch, slices));
  if (action.stage.index() >= placement.stages())
    throw ConfigError({}, place(rank, position) + ": " + to_string(action) + ": there are only " +
                              std::to_string(placement.stages()) + " stages");
  if (placement.rank(action.stage).index() != rank)
    throw ConfigError({}, place(rank, position) + ": " + to_string(action) + ": stage " +
                              to_string(action.stage) + " is placed on rank " +
                              to_string(placement.rank(action.stage)));
}

/// What an action does that nothing else may do again: F, one of B and I, W, S, T.
unsigned deed(Op op) {
  if (is_head(op)) return op == Op::HeadShare ? 8u : 16u;
  const std::optional<Direction> way = operation(op).passes;
  return !way ? 4u : *way == Direction::Forward ? 1u : 2u;
}

std::string head_text(std::size_t barriers) {
  if (barriers == 0) return "have the output layer on the last stage";
  return "share the output layer over all ranks with " + std::to_string(barriers) +
         (barriers == 1 ? " barrier" : " barriers");
}

void check_twice(const Schedule& schedule, std::size_t stages, std::size_t microbatches) {
  std::vector<unsigned char> done(stages * microbatches, 0);
  for (std::size_t r = 0; r < schedule.ranks(); ++r)
    for (std::size_t p = 0; p < schedule.rows[r].size(); ++p)
      for_each_action(schedule.rows[r][p], [&](const Action& a) {
        if (!is_compute(a.op)) return;
        unsigned char& known = done[a.stage.index() * microbatches + a.microbatch->index()];
        if (known & deed(a.op))
          throw ConfigError({}, place(r, p) + ": " + to_string(a) + " is there a second time");
        known = static_cast<unsigned char>(known | deed(a.op));
      });
}

/// Rows and costs agree on who has the output layer, and B waits for what its costs assume.
void check_head(const Schedule& schedule, const StageCosts& costs, const Placement& placement) {
  const std::size_t rows = head_barriers(schedule), priced = costs.head ? costs.head->barriers : 0;
  if (rows != priced)
    throw ConfigError({}, "the rows " + head_text(rows) + ", the costs are those of stages that " +
                              head_text(priced));
  if (rows > 0 && placement.stages() != placement.ranks())
    throw ConfigError({}, std::to_string(placement.stages()) + " stages on " +
                              std::to_string(placement.ranks()) +
                              " ranks: ranks that share the output layer have one stage each");
}

/// Everything the passes rely on: places, nothing twice, tables no larger than what fills them.
void check(const Schedule& schedule, const StageCosts& costs, const Placement& placement) {
  if (costs.stages.size() != placement.stages())
    throw ConfigError({}, "costs for " + std::to_string(costs.stages.size()) +
                              " stages, a placement for " + std::to_string(placement.stages()));
  if (schedule.ranks() != placement.ranks())
    throw ConfigError({}, "a schedule for " + std::to_string(schedule.ranks()) +
                              " ranks, a placement on " + std::to_string(placement.ranks()));
  std::size_t computed = 0;
  const std::size_t slices = slice_count(schedule);
  for (std::size_t r = 0; r < schedule.ranks(); ++r)
    for (std::size_t p = 0; p < schedule.rows[r].size(); ++p)
      for_each_action(schedule.rows[r][p], [&](const Action& action) {
        check_action(action, r, p, placement, slices);
        computed += is_compute(action.op);
      });
  check_head(schedule, costs, placement);
  const std::size_t stages = placement.stages(), microbatches = microbatch_count(schedule);
  if (microbatches > 0 && stages > computed / microbatches)
    throw ConfigError({}, "only " + std::to_string(computed) + " actions for " +
                              std::to_string(stages) + " stages and " +
                              std::to_string(microbatches) +
                              " microbatches: forwards are missing (validate names them)");
  if (slices > 1 && costs.slices.size() != slices)
    throw ConfigError({}, "the schedule cuts every microbatch into " + std::to_string(slices) +
                              " slices, the costs are those of " +
                              (costs.slices.empty() ? "whole microbatches"
                                                    : std::to_string(costs.slices.size())) +
                              "; here a schedule of whole microbatches is needed");
  check_twice(schedule, stages, microbatches);
}

void drop_idle(Schedule& schedule) {
  for (auto& row : schedule.rows)
    std::erase_if(row,
                  [](const Cell& cell) { return std::holds_alternative<std::monostate>(cell); });
}

}  // namespace

bool has_transfers(const Schedule& schedule) {
  const auto transfers = [](const Cell& cell) {
    const auto* action = std::get_if<Action>(&cell);
    return action && (is_transfer(action->op) || is_copy(action->op));
  };
  return std::ranges::any_of(schedule.rows,
                             [&](const auto& row) { return std::ranges::any_of(row, transfers); });
}

Schedule lower(const Schedule& compute_only, const StageCosts& costs, const Placement& placement,
               const LoweringOptions& options) {
  check(compute_only, costs, placement);
  const lowering::Context context = lowering::context_of(compute_only, costs, placement);
  const bool torch = options.transfers == TransferOrder::Torch;
  if (torch && costs.head)
    throw ConfigError({},
                      "torch.distributed.pipelining has no S and T: rows that share the output "
                      "layer over all ranks are lowered by the time transfers are ready");
  Schedule schedule = compute_only;
  if (!(torch && options.keep_idle)) drop_idle(schedule);
  if (options.unshard) lowering::add_unshard_reshard(schedule);
  if (options.reduce_grad == ReduceGrad::EveryStage ||
      (options.reduce_grad == ReduceGrad::Tied && context.stages.replicas))
    lowering::add_untied_reduce_grad(schedule, context);
  const bool reduce = options.reduce_grad != ReduceGrad::None;
  schedule = torch ? lowering::add_transfers_torch(schedule, context, reduce)
                   : lowering::add_transfers_ready(schedule, context, reduce);
  if (options.optimizer_step) lowering::add_optimizer_steps(schedule, context);
  if (costs.norm) add_norm_reduction(schedule);
  if (!offloads(costs)) return schedule;
  return with_offload(schedule, costs, placement, [](StageId, MicrobatchId) { return true; });
}

namespace lowering {

Context context_of(const Schedule& schedule, const StageCosts& costs, const Placement& placement) {
  const StageGraph stages = stage_graph(costs);
  return {costs, placement, stages, microbatch_count(schedule), StageEdges(stages)};
}

void throw_cyclic(const std::vector<std::string>& waiting) {
  std::string message = "this order can never run, with any kind of transfers:";
  for (const std::string& sentence : waiting) message += "\n  " + sentence;
  throw ConfigError({}, message);
}

}  // namespace lowering
}  // namespace pfeife
