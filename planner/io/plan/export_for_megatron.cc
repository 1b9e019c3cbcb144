// Megatron-LM's flags (Megatron Core 0.16 to 0.20): the layout of
// --pipeline-model-parallel-layout in its plain form, in which `E` is the embedding, `t` a block,
// `L` the head, and `|` ends a stage; stage s is on rank s mod pp.

#include "planner/io/plan/plan_writers.h"

namespace pfeife {
namespace {

std::string layout_of(const StagesInModules& stages) {
  std::string layout;
  for (std::size_t s = 0; s < stages.stages(); ++s) {
    const std::int64_t blocks = stages.blocks(s);
    layout += s == 0 ? "E" : "|";
    if (blocks > 0) layout += blocks == 1 ? "t" : "t*" + std::to_string(blocks);
  }
  return layout + "L";
}

/// "full" makes units of a stage's first blocks, and each by itself with "block".
std::vector<std::string> recomputation(const RecomputedModules& again,
                                       const StagesInModules& stages,
                                       std::vector<std::string>& lost) {
  if (!again.any) return {};
  std::vector<std::string> flags{"--recompute-granularity full"};
  const std::string most = std::to_string(again.most());
  const bool all = recomputes_all(again, stages);
  if (again.most() == 0) {
    flags = {"--recompute-granularity selective"};
    lost.emplace_back(
        "attention is recomputed in some blocks of the plan: Megatron-LM recomputes its core in "
        "all");
  } else if (all && again.stages) {
    flags.insert(flags.end(), {"--recompute-method uniform", "--recompute-num-layers " + most});
  } else if (all) {
    flags.insert(flags.end(), {"--recompute-method uniform", "--recompute-num-layers 1"});
  } else {
    flags.insert(flags.end(), {"--recompute-method block", "--recompute-num-layers " + most});
    if (!again.equal())
      lost.push_back("the stages of the plan recompute " + listed(again.blocks) +
                     " blocks: Megatron-LM has one number for all, the largest");
    if (again.stages)
      lost.emplace_back(
          "whole stages are recomputed as one piece in the plan: Megatron-LM recomputes each block "
          "by itself");
    if (again.attention)
      lost.emplace_back("attention alone is recomputed in some blocks: Megatron-LM does not mix");
  }
  return flags;
}

/// What of the plan's schedule the framework's own, by the number of stages a rank, is not.
void compare_schedule(const PlanToExport& planned, std::vector<std::string>& lost) {
  const ScheduleSpec& spec = planned.plan.spec;
  const std::string own = spec.stages_per_rank > 1 ? "interleaved_1f1b" : "1f1b";
  if (spec.family != own && spec.ranks > 1)
    lost.push_back("the schedule " + spec.family + ": Megatron-LM runs " + own +
                   "; make the plan with plan: {for: megatron}");
  if (placed(planned.plan.placement) != Placed::Loop)
    lost.emplace_back(
        "stages do not lie in turn on the ranks: Megatron-LM puts stage s on rank s "
        "mod pp");
}

}  // namespace

Exported export_for_megatron(const PlanToExport& planned) {
  Exported exported;
  const StagesInModules stages = stages_in_modules(planned, "Megatron-LM", exported.lost);
  compare_schedule(planned, exported.lost);
  add_common_losses(planned, "Megatron-LM", exported.lost);
  const MeshRun& run = planned.run;
  const auto size = [&](Axis axis) { return run.mesh.size(axis); };
  std::vector<std::string> flags;
  const auto number = [&](const std::string& flag, std::int64_t value) {
    flags.push_back(flag + " " + std::to_string(value));
  };
  number("--tensor-model-parallel-size", size(Axis::Tensor));
  if (size(Axis::Context) > 1) number("--context-parallel-size", size(Axis::Context));
  if (run.mesh.experts > 1) number("--expert-model-parallel-size", run.mesh.experts);
  number("--pipeline-model-parallel-size", size(Axis::Pipeline));
  number("--num-layers", stages.blocks());
  // Without a pipeline there is nothing to lay out.
  if (stages.stages() > 1)
    flags.push_back("--pipeline-model-parallel-layout '" + layout_of(stages) + "'");
  if (!in_order(run, {Axis::Tensor, Axis::Context, Axis::Data, Axis::Pipeline})) {
    if (in_order(run, {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data}))
      flags.emplace_back("--use-tp-pp-dp-mapping");
    else
      exported.lost.emplace_back(
          "the order of the axes: Megatron-LM has tp, cp, dp, pp, or tp, cp, pp, dp");
  }
  if (run.sequence_parallel && size(Axis::Tensor) > 1) flags.emplace_back("--sequence-parallel");
  if (run.zero > 0) flags.emplace_back("--use-distributed-optimizer");
  if (run.overlap_reductions && size(Axis::Data) > 1) flags.emplace_back("--overlap-grad-reduce");
  if (run.zero == 2)
    exported.lost.emplace_back(
        "ZeRO 2: gradients stay whole in Megatron-LM's distributed optimizer");
  if (run.zero > 2)
    flags.insert(flags.end(),
                 {"--use-megatron-fsdp", "--data-parallel-sharding-strategy optim_grads_params"});
  number("--micro-batch-size", run.microbatch_size);
  number("--global-batch-size", run.global_batch);
  if (planned.of_architecture) number("--seq-length", run.architecture.sequence);
  if (run.type == DType::BFloat16) flags.emplace_back("--bf16");
  if (run.type == DType::Float16) flags.emplace_back("--fp16");
  std::vector<std::string> again =
      recomputation(recomputed_modules(planned, stages), stages, exported.lost);
  if (!run.modules.empty() && again.empty()) {
    again = {"--recompute-granularity selective", "--recompute-modules"};
    for (const Module module : run.modules) again.back() += " " + to_string(module);
  } else if (!run.modules.empty()) {
    exported.lost.push_back("modules recomputed (" + recomputed_text(run) +
                            ") besides blocks: Megatron-LM has one granularity");
  }
  flags.insert(flags.end(), again.begin(), again.end());

  std::string text =
      "# Megatron-LM: source this, then pretrain_gpt.py \"${PLAN_ARGS[@]}\" with the model's own "
      "flags\n" +
      commented(exported.lost);
  std::int64_t each = stages.blocks() / static_cast<std::int64_t>(stages.stages());
  bool even = planned.plan.spec.stages_per_rank > 1;
  for (std::size_t s = 0; s < stages.stages(); ++s) even = even && stages.blocks(s) == each;
  if (even)
    text += "# without a layout: --num-layers-per-virtual-pipeline-stage " + std::to_string(each) +
            "\n";
  for (std::size_t s = 0; s < stages.stages(); ++s)
    if (stages.blocks(s) == 0) {
      text += "# a stage without blocks is reported to hang (Megatron-LM issue 1852)\n";
      break;
    }
  text += "PLAN_ARGS=(\n";
  for (const std::string& flag : flags) text += "  " + flag + "\n";
  exported.files.push_back({"megatron_args.sh", text + ")\n"});
  return exported;
}

}  // namespace pfeife
