// torchtitan's configuration (0.3 and its main branch of August 2026): a Python module whose
// function returns the config of a run. The rows come as CSV unless the schedule is one whose name
// says all. Stages are lists of module names; a name that no model has would be ignored there, so
// every block is named once.
#include "planner/io/plan/plan_writers.h"

namespace pfeife {
namespace {

constexpr const char* kTorchtitanRows = "schedule_torchtitan.csv";

constexpr const char* kTorchtitanDoc = R"py("""A plan for torchtitan:

    torchrun ... -m torchtitan.train --module torchtitan_plan --config planned

with this folder on PYTHONPATH. BASE is a config of the model that the plan was made for.
"""
)py";

constexpr const char* kTorchtitanFunctions = R"py(

def apply(config):
    """The config, with the plan in it."""
    for name, value in PARALLELISM.items():
        setattr(config.parallelism, name, value)
    training = config.training
    if hasattr(config.parallelism, "num_pp_microbatches"):
        config.parallelism.num_pp_microbatches = MICROBATCHES
        if SEQUENCE:
            training.max_context_length = SEQUENCE
            training.num_tokens_per_microbatch_per_dp_rank = MICROBATCH_SIZE * SEQUENCE
            training.num_tokens_per_train_step = GLOBAL_BATCH * SEQUENCE
    else:  # 0.3
        config.parallelism.pipeline_parallel_microbatch_size = MICROBATCH_SIZE
        training.local_batch_size = MICROBATCHES * MICROBATCH_SIZE
        training.global_batch_size = GLOBAL_BATCH
        if SEQUENCE:
            training.seq_len = SEQUENCE
    if len(STAGES) > 1:
        training.disable_cuda_graphs = True  # torchtitan refuses them with a pipeline
    config.activation_checkpoint = None
    if RECOMPUTE:
        from torchtitan.distributed.activation_checkpoint import FullAC

        config.activation_checkpoint = FullAC.Config()
    return config


def planned():
    module, _, name = BASE.partition(":")
    return apply(getattr(importlib.import_module(module), name)())
)py";

/// `["tok_embeddings", *layers(0, 3)]` for each stage.
std::string stage_lines(const StagesInModules& stages) {
  std::string text = "STAGES = [\n";
  for (std::size_t s = 0; s < stages.stages(); ++s) {
    std::string names = s == 0 ? "\"tok_embeddings\"" : "";
    const auto add = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
    if (stages.blocks(s) > 0)
      add("*layers(" + std::to_string(stages.first[s]) + ", " +
          std::to_string(stages.first[s + 1]) + ")");
    if (s + 1 == stages.stages()) add("\"norm\", \"lm_head\"");
    text += "    [" + names + "],\n";
  }
  return text + "]\n";
}

std::string parallelism(const PlanToExport& planned, bool rows) {
  std::string text = "PARALLELISM = {\n";
  const auto add = [&](const std::string& name, const std::string& value) {
    text += "    \"" + name + "\": " + value + ",\n";
  };
  const MeshRun& run = planned.run;
  const auto size = [&](Axis axis) { return std::to_string(run.mesh.size(axis)); };
  add("data_parallel_replicate_degree", run.zero > 0 ? "1" : size(Axis::Data));
  add("data_parallel_shard_degree", run.zero > 0 ? size(Axis::Data) : "1");
  if (run.zero > 0) add("fsdp_reshard_after_forward", run.zero > 2 ? "\"always\"" : "\"never\"");
  add("tensor_parallel_degree", size(Axis::Tensor));
  add("enable_sequence_parallel", run.sequence_parallel ? "True" : "False");
  add("context_parallel_degree", size(Axis::Context));
  add("expert_parallel_degree", std::to_string(run.mesh.experts));
  add("pipeline_parallel_degree", size(Axis::Pipeline));
  if (run.mesh.size(Axis::Pipeline) > 1) {
    add("pipeline_parallel_schedule", "\"" + torch_schedule(planned) + "\"");
    if (rows)
      add("pipeline_parallel_schedule_csv",
          std::string("str(Path(__file__).with_name(\"") + kTorchtitanRows + "\"))");
    add("module_fqns_per_model_part", "STAGES");
  }
  return text + "}\n";
}

}  // namespace

Exported export_for_torchtitan(const PlanToExport& planned) {
  Exported exported;
  const char* const title = "torchtitan";
  const StagesInModules stages = stages_in_modules(planned, title, exported.lost);
  add_common_losses(planned, title, exported.lost);
  add_order(planned, title, exported.lost);
  if (planned.run.zero == 1 || planned.run.zero == 2)
    exported.lost.push_back("ZeRO " + std::to_string(planned.run.zero) +
                            ": FSDP divides parameters, too, and keeps them whole between uses");
  add_shared_parameters(planned, title, exported.lost);
  if (placed(planned.plan.placement) == Placed::Otherwise)
    exported.lost.emplace_back(
        "the ranks of the stages: torchtitan puts them in turn, or rank r has r and 2 pp - 1 - r");
  const RecomputedModules again = recomputed_modules(planned, stages);
  if (again.any && !recomputes_all(again, stages))
    exported.lost.push_back("the stages recompute " + listed(again.blocks) +
                            " whole blocks: torchtitan has one policy for the model, every block");
  const bool rows = !says_all_rows(planned);

  std::string text = kTorchtitanDoc + commented(exported.lost) +
                     "import importlib\nfrom pathlib import Path\n\n"
                     "BASE = \"torchtitan.models.llama3.config_registry:llama3_8b\"\n"
                     "# What it must have: " +
                     std::to_string(stages.blocks()) + " layers.\n" +
                     "MICROBATCHES = " + std::to_string(planned.plan.spec.microbatches) + "\n" +
                     "MICROBATCH_SIZE = " + std::to_string(planned.run.microbatch_size) + "\n" +
                     "GLOBAL_BATCH = " + std::to_string(planned.run.global_batch) + "\n" +
                     "SEQUENCE = " +
                     (planned.of_architecture ? std::to_string(planned.run.architecture.sequence)
                                              : "None  # the config's own") +
                     "\nRECOMPUTE = " + (again.any ? "True" : "False") +
                     "\n\n\ndef layers(first, end):\n"
                     "    return [f\"layers.{number}\" for number in range(first, end)]\n\n\n" +
                     stage_lines(stages) + parallelism(planned, rows) + kTorchtitanFunctions;
  exported.files.push_back({"torchtitan_plan.py", std::move(text)});
  if (rows) exported.files.push_back({kTorchtitanRows, compute_rows(planned.plan.schedule)});
  return exported;
}

}  // namespace pfeife
