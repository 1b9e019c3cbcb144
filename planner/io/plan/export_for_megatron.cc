// Megatron-LM's flags (Megatron Core 0.16 to 0.20), and launch.sh, which gives them to
// pretrain_gpt.py. --pipeline-model-parallel-layout is in its plain form, in which `E` is the
// embedding, `t` a block, `L` the head, and `|` ends a stage; stage s is on rank s mod pp.

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
                                       std::vector<std::string>& refused) {
  if (!again.any) return {};
  std::vector<std::string> flags{"--recompute-granularity full"};
  const std::string most = std::to_string(again.most());
  const bool all = recomputes_all(again, stages);
  if (again.most() == 0) {
    flags = {"--recompute-granularity selective"};
    if (again.attention < stages.blocks())
      refused.push_back("attention is recomputed in " + std::to_string(again.attention) + " of " +
                        std::to_string(stages.blocks()) +
                        " blocks: Megatron-LM recomputes its core in all");
  } else if (all && again.stages) {
    flags.insert(flags.end(), {"--recompute-method uniform", "--recompute-num-layers " + most});
  } else if (all) {
    flags.insert(flags.end(), {"--recompute-method uniform", "--recompute-num-layers 1"});
  } else {
    flags.insert(flags.end(), {"--recompute-method block", "--recompute-num-layers " + most});
    if (!recomputes_equally(again, stages))
      refused.push_back("the stages of the plan recompute " + listed(again.blocks) +
                        " blocks: Megatron-LM has one number for all");
    if (again.stages)
      refused.emplace_back(
          "whole stages are recomputed as one piece in the plan: Megatron-LM recomputes each block "
          "by itself");
    if (again.attention > 0)
      refused.emplace_back(
          "attention alone is recomputed in some blocks: Megatron-LM does not mix");
  }
  return flags;
}

/// Adds what the framework's own schedule for so many stages a rank differs in.
void compare_schedule(const PlanToExport& planned, std::vector<std::string>& refused) {
  const ScheduleSpec& spec = planned.plan.spec;
  const std::string own = spec.stages_per_rank > 1 ? "interleaved_1f1b" : "1f1b";
  if (spec.family != own && spec.ranks > 1)
    refused.push_back("the schedule " + spec.family + ": Megatron-LM runs " + own);
  if (placed(planned.plan.placement) != Placed::Loop)
    refused.emplace_back(
        "stages do not lie in turn on the ranks: Megatron-LM puts stage s on rank s "
        "mod pp");
  if (spec.stages_per_rank > 1 && spec.microbatches < spec.ranks)
    refused.push_back(std::to_string(spec.microbatches) +
                      " microbatches of an interleaved schedule on " + std::to_string(spec.ranks) +
                      " ranks: Megatron-LM takes at least as many as ranks");
}

std::vector<std::string> optimizer_flags(const Optimizer& optimizer,
                                         std::vector<std::string>& refused) {
  switch (optimizer.kind) {
    case Optimizer::Adam:
      return {"--optimizer adam", "--weight-decay 0"};
    case Optimizer::AdamW:
      return {"--optimizer adam"};
    case Optimizer::Sgd:
      return {"--optimizer sgd", "--sgd-momentum 0"};
    case Optimizer::Momentum:
      return {"--optimizer sgd", "--sgd-momentum 0.9"};
    default:
      refused.push_back("the optimizer " + to_string(optimizer) +
                        ": the export for Megatron-LM writes adam, adamw, sgd and momentum");
      return {};
  }
}

/// bf16 or fp16, and the type in which gradients are reduced.
std::vector<std::string> precision_flags(const PlanToExport& planned) {
  const MeshRun& run = planned.run;
  std::vector<std::string> flags;
  if (run.type == DType::BFloat16) flags.emplace_back("--bf16");
  if (run.type == DType::Float16) flags.emplace_back("--fp16");
  if (!planned.of_architecture) return flags;
  if (run.gradient_bytes > 2) flags.emplace_back("--accumulate-allreduce-grads-in-fp32");
  if (run.gradient_bytes == 2 && run.type == DType::BFloat16)
    flags.emplace_back("--grad-reduce-in-bf16");
  return flags;
}

Launch launch(const PlanToExport& planned) {
  Launch script{.title = "Megatron-LM",
                .variables = {"MEGATRON_LM               its checkout (Megatron-LM)"}};
  script.settings = R"sh(MEGATRON_LM=${MEGATRON_LM:-Megatron-LM}
[[ -f $MEGATRON_LM/pretrain_gpt.py ]] || stop "no $MEGATRON_LM/pretrain_gpt.py; set MEGATRON_LM to a checkout of Megatron-LM"
. "$HERE/megatron_args.sh"
export PYTHONPATH="$MEGATRON_LM${PYTHONPATH:+:$PYTHONPATH}"
)sh";
  // With FSDP, collectives need queues of their own; else kernels and messages keep their order.
  if (planned.run.zero <= 2) script.settings += "export CUDA_DEVICE_MAX_CONNECTIONS=1\n";
  std::string model;
  if (!planned.of_architecture) {
    script.settings +=
        "# The plan's model is an archive, which has no flags: --hidden-size and so on.\n"
        "[[ -n ${MODEL_ARGS:-} ]] || stop \"the model's flags are missing; set MODEL_ARGS\"\n";
    script.variables.emplace_back("MODEL_ARGS                flags of the model (needed)");
    model = " $MODEL_ARGS";
  }
  script.program =
      "\"$MEGATRON_LM/pretrain_gpt.py\" \"${PLAN_ARGS[@]}\"" + model + " --train-iters \"$STEPS\"";
  return script;
}

}  // namespace

Exported export_for_megatron(const PlanToExport& planned) {
  Exported exported;
  const StagesInModules stages = stages_in_modules(planned, "Megatron-LM", exported.refused);
  compare_schedule(planned, exported.refused);
  add_common_losses(planned, "Megatron-LM", exported.refused);
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
  // Rounds of more microbatches than ranks, where these do not divide all.
  const ScheduleSpec& spec = planned.plan.spec;
  if (spec.stages_per_rank > 1 && spec.microbatches > spec.ranks &&
      spec.microbatches % spec.ranks != 0)
    number("--microbatch-group-size-per-virtual-pipeline-stage",
           static_cast<std::int64_t>(spec.microbatches / (spec.microbatches / spec.ranks)));
  // Without a pipeline there is nothing to lay out.
  if (stages.stages() > 1)
    flags.push_back("--pipeline-model-parallel-layout '" + layout_of(stages) + "'");
  if (!in_order(run, {Axis::Tensor, Axis::Context, Axis::Data, Axis::Pipeline})) {
    if (in_order(run, {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data}))
      flags.emplace_back("--use-tp-pp-dp-mapping");
    else
      exported.refused.emplace_back(
          "the order of the axes: Megatron-LM has tp, cp, dp, pp, or tp, cp, pp, dp");
  }
  if (run.sequence_parallel && size(Axis::Tensor) > 1) flags.emplace_back("--sequence-parallel");
  if (run.zero > 0) flags.emplace_back("--use-distributed-optimizer");
  if (run.overlap_reductions && size(Axis::Data) > 1) flags.emplace_back("--overlap-grad-reduce");
  if (run.zero == 2)
    exported.refused.emplace_back(
        "ZeRO 2: gradients stay whole in Megatron-LM's distributed optimizer");
  if (run.zero > 2)
    flags.insert(flags.end(),
                 {"--use-megatron-fsdp", "--data-parallel-sharding-strategy optim_grads_params",
                  "--ckpt-format fsdp_dtensor"});
  number("--micro-batch-size", run.microbatch_size);
  number("--global-batch-size", run.global_batch);
  const auto add = [&](const std::vector<std::string>& more) {
    flags.insert(flags.end(), more.begin(), more.end());
  };
  add(precision_flags(planned));
  if (planned.of_architecture) add(megatron_model(run, exported.refused));
  add(optimizer_flags(run.optimizer, exported.refused));
  add({"--lr 1e-4", "--lr-decay-style constant", "--mock-data", "--eval-iters 0",
       "--log-interval 1"});
  std::vector<std::string> again =
      recomputation(recomputed_modules(planned, stages), stages, exported.refused);
  if (!run.modules.empty() && again.empty()) {
    again = {"--recompute-granularity selective", "--recompute-modules"};
    for (const Module module : run.modules) again.back() += " " + to_string(module);
  } else if (!run.modules.empty()) {
    exported.refused.push_back("modules recomputed (" + recomputed_text(run) +
                               ") besides blocks: Megatron-LM has one granularity");
  }
  add(again);

  std::string text = "# Flags of Megatron-LM's pretrain_gpt.py, which launch.sh starts.\n";
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
  exported.files.push_back(launch_script(planned, launch(planned)));
  return exported;
}

}  // namespace pfeife
