#include "planner/ir/result/not_executed.h"

#include <algorithm>

#include "planner/ir/schedule/schedule.h"

namespace pfeife {
namespace {

using To = const PlanToExecute&;

bool sliced(To planned) { return slice_count(planned.plan.schedule) > 1; }
bool offloads(To planned) { return planned.plan.activations.offloads(); }
bool forward(To planned) { return planned.plan.training.mode == Mode::Forward; }
bool in_format(To planned) { return planned.format != Format::Wide; }
bool splits_backward(To planned) {
  return std::ranges::any_of(planned.plan.schedule.rows, [](const auto& row) {
    return std::ranges::any_of(row, [](const Cell& cell) {
      const auto* action = std::get_if<Action>(&cell);
      return action && action->op == Op::BackwardInput;
    });
  });
}

constexpr const char* kExport = "export";
constexpr const char* kShard = "Pipeline(shard=)";
constexpr const char* kFormat =
    "no export says in which format linear layers compute; export a plan of the mesh in bf16, and "
    "switch the format on in the framework";

constexpr NotExecuted kNotExecuted[] = {
    {kExport, "forward only",
     "frameworks take plans of training steps; export for torch, which takes both", forward},
    {kExport, "slices",
     "no framework's format has slices of a microbatch; export a plan of whole microbatches "
     "(without plan.slices)",
     sliced},
    {kExport, "offload",
     "no framework's format says what goes to the host; export a plan that offloads nothing "
     "(without plan.offload)",
     offloads},
    {kExport, "fp8, nvfp4 and other formats of linear layers", kFormat, in_format},
    {"torch", "fp8, nvfp4 and other formats of linear layers", kFormat, in_format},
    {kShard, "offload",
     "FSDP2 lets go of whole weights behind each forward, which autograd has saved for the "
     "backward; use replicas, or offload nothing",
     offloads},
    {kShard, "backward split into I and W",
     "FSDP2 gathers weights and sums gradients in hooks of whole backwards; use replicas, or plan "
     "for families without I and W (1f1b, interleaved_1f1b, looped, gpipe)",
     splits_backward},
    {kShard, "slices", "FSDP2's hooks are of whole microbatches; use replicas, or plan 1f1b",
     sliced},
    {"Pipeline(compile=)", "slices",
     "a stage is compiled for whole microbatches; leave compile out, or plan 1f1b", sliced},
    {"pipe(**batch)", "slices",
     "outputs are put together of whole microbatches; pipe.evaluate(**batch) gives the loss",
     sliced},
    {"Pipeline.step", "forward only",
     "its rows have F alone (training.mode: forward); pipe(**batch) and pipe.evaluate(**batch) run "
     "it; to train, plan without mode=\"forward\"",
     forward}};

}  // namespace

std::span<const NotExecuted> not_executed() { return kNotExecuted; }

std::string why_not_executed(std::string_view where, const PlanToExecute& planned) {
  for (const NotExecuted& row : kNotExecuted)
    if (row.where == where && row.has(planned))
      return std::string("the plan has ") + row.what + ": " + row.reason;
  return "";
}

}  // namespace pfeife
