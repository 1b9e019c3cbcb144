// NeMo AutoModel's YAML (0.7 and its main branch of August 2026): a recipe on made-up tokens, with
// the model's config.json beside it, and launch.sh. Stages are lists of the names that Hugging
// Face's model has.
#include "planner/io/plan/plan_writers.h"

namespace pfeife {
namespace {

constexpr const char* kAutomodelRows = "schedule_automodel.csv";

/// A path in the exported module as one in the model that it wraps as `net`.
std::string unwrapped(const std::string& path) {
  return path.starts_with("net.") ? path.substr(4) : path;
}

std::vector<std::string> modules_of_stage(const PlanToExport& planned,
                                          const StagesInModules& stages, std::size_t s) {
  std::vector<std::string> names;
  const std::string list = planned.of_architecture ? "model.layers" : unwrapped(stages.list);
  const auto add_blocks = [&] {
    for (std::int64_t block = stages.first[s]; block < stages.first[s + 1]; ++block)
      names.push_back(list + "." + std::to_string(block));
  };
  if (planned.of_architecture) {
    if (s == 0) names.emplace_back("model.embed_tokens");
    add_blocks();
    if (s + 1 == stages.stages()) names.insert(names.end(), {"model.norm", "lm_head"});
  } else {
    add_blocks();
    for (const std::string& module : stages.others[s]) names.push_back(unwrapped(module));
  }
  // Every block reads the angles.
  if (list == "model.layers") names.emplace_back("model.rotary_emb");
  return names;
}

/// Sections that are the same for every plan.
constexpr const char* kRecipe = R"yaml(recipe: TrainFinetuneRecipeForNextTokenPrediction
rng:
  _target_: nemo_automodel.components.training.rng.StatefulRNG
  seed: 1
  ranked: true
dist_env:
  backend: nccl
  timeout_minutes: 30
checkpoint:
  enabled: false
loss_fn:
  _target_: nemo_automodel.components.loss.masked_ce.MaskedCrossEntropy
dataloader:
  _target_: torch.utils.data.DataLoader
  batch_size: null  # the data set makes batches
  num_workers: 0
)yaml";

std::string optimizer_section(const PlanToExport& planned, std::vector<std::string>& refused) {
  const Optimizer& optimizer = planned.run.optimizer;
  const std::string name = optimizer.kind == Optimizer::Adam    ? "Adam"
                           : optimizer.kind == Optimizer::AdamW ? "AdamW"
                           : optimizer.kind == Optimizer::Sgd   ? "SGD"
                                                                : "";
  if (name.empty())
    refused.push_back("the optimizer " + to_string(optimizer) +
                      ": the export for NeMo AutoModel writes adam, adamw and sgd");
  return "optimizer:\n  _target_: torch.optim." + name + "\n  lr: 1.0e-4\n";
}

/// Model and data of an architecture; launch.sh runs in this folder, where config.json is.
std::string model_sections(const PlanToExport& planned) {
  const Architecture& model = planned.run.architecture;
  const auto size = [](std::int64_t value) { return std::to_string(value) + "\n"; };
  return std::string("model:\n") +
         "  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_config\n"
         "  config:\n"
         "    _target_: transformers.AutoConfig.from_pretrained\n"
         "    pretrained_model_name_or_path: .\n"
         "  torch_dtype: float32  # masters; FSDP2 computes in bf16\n"
         "  attn_implementation: sdpa\n"
         "dataset:\n"
         "  _target_: "
         "nemo_automodel.components.datasets.llm.mock_iterable_dataset.MockIterableDataset\n"
         "  vocab_size: " +
         size(model.vocabulary) + "  seq_len: " + size(model.sequence) +
         "  num_samples: 1000000\n  batch_size: " +
         size(planned.run.microbatch_size *
              static_cast<std::int64_t>(planned.plan.spec.microbatches));
}

void refuse_run(const PlanToExport& planned, std::vector<std::string>& refused) {
  const MeshRun& run = planned.run;
  if (run.type == DType::Float16)
    refused.emplace_back("fp16: FSDP2 of NeMo AutoModel computes in bf16");
  if (planned.plan.spec.microbatches < planned.plan.spec.ranks)
    refused.push_back(std::to_string(planned.plan.spec.microbatches) + " microbatches on " +
                      std::to_string(planned.plan.spec.ranks) +
                      " ranks: AutoModel takes at least as many as ranks");
  const Architecture& model = run.architecture;
  if (run.mesh.experts > 1 && !model.latent && model.query_key_norm == QueryKeyNorm::None)
    refused.push_back("ep " + std::to_string(run.mesh.experts) +
                      ": AutoModel divides the experts of its own models (qwen3_moe, "
                      "deepseek_v3), and takes mixtral from transformers");
}

Launch launch(const PlanToExport& planned) {
  Launch script{.title = "NeMo AutoModel",
                .settings = "cd \"$HERE\"\n",
                .program =
                    "-m nemo_automodel.cli.app automodel.yaml "
                    "--step_scheduler.max_steps \"$STEPS\""};
  if (planned.of_architecture) return script;
  script.variables.emplace_back("MODEL                     name or folder of the model (needed)");
  script.settings +=
      "# The plan's model is an archive; AutoModel builds Hugging Face's.\n"
      "[[ -n ${MODEL:-} ]] || stop \"the model is missing; set MODEL to its name or folder\"\n";
  script.program += " --model.pretrained_model_name_or_path \"$MODEL\"";
  return script;
}

}  // namespace

Exported export_for_automodel(const PlanToExport& planned) {
  Exported exported;
  const char* const title = "NeMo AutoModel";
  const StagesInModules stages = stages_in_modules(planned, title, exported.refused);
  add_common_losses(planned, title, exported.refused);
  add_order(planned, title, exported.refused);
  add_shared_parameters(planned, title, exported.refused);
  const MeshRun& run = planned.run;
  if (placed(planned.plan.placement) == Placed::Otherwise)
    exported.refused.emplace_back(
        "the ranks of the stages: AutoModel puts them in turn, or rank r has r and 2 pp - 1 - r");
  const RecomputedModules again = recomputed_modules(planned, stages);
  if (again.any && !recomputes_all(again, stages))
    exported.refused.push_back(
        "the stages recompute " + listed(again.blocks) +
        " whole blocks: AutoModel has one switch for the model, every block");
  if (run.zero == 1 || run.zero == 2)
    exported.refused.push_back("ZeRO " + std::to_string(run.zero) +
                               ": FSDP2 divides parameters, too");
  const bool rows = !says_all_rows(planned);
  refuse_run(planned, exported.refused);

  std::string text = std::string("# A plan for NeMo AutoModel, as launch.sh runs it.\n") + kRecipe +
                     optimizer_section(planned, exported.refused);
  std::string config;
  if (planned.of_architecture) {
    config = hugging_face_config(run.architecture, title, exported.refused);
    text += model_sections(planned);
  } else {
    text +=
        "model:\n  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n"
        "  torch_dtype: float32  # masters; FSDP2 computes in bf16\n"
        "dataset:\n  _target_: "
        "nemo_automodel.components.datasets.llm.mock_iterable_dataset.MockIterableDataset\n"
        "  num_samples: 1000000\n  batch_size: " +
        std::to_string(run.microbatch_size *
                       static_cast<std::int64_t>(planned.plan.spec.microbatches)) +
        "\n";
  }
  const auto line = [&](const std::string& key, const std::string& value) {
    text += key + ": " + value + "\n";
  };
  const auto number = [&](const std::string& key, std::int64_t value) {
    line(key, std::to_string(value));
  };
  text += "distributed:\n";
  line("  strategy", "fsdp2");
  number("  tp_size", run.mesh.size(Axis::Tensor));
  number("  cp_size", run.mesh.size(Axis::Context));
  number("  pp_size", run.mesh.size(Axis::Pipeline));
  number("  ep_size", run.mesh.experts);
  number("  dp_size", run.mesh.size(Axis::Data));
  if (run.zero == 0) number("  dp_replicate_size", run.mesh.size(Axis::Data));
  line("  sequence_parallel", run.sequence_parallel ? "true" : "false");
  line("  activation_checkpointing", again.any ? "true" : "false");
  if (planned.plan.spec.ranks > 1) {
    text += "  pipeline:\n";
    line("    pp_schedule", torch_schedule(planned));
    if (rows) line("    pp_schedule_csv", kAutomodelRows);
    number("    pp_microbatch_size", run.microbatch_size);
    text += "    module_fqns_per_model_part:\n";
    for (std::size_t s = 0; s < stages.stages(); ++s) {
      std::string names;
      for (const std::string& name : modules_of_stage(planned, stages, s))
        names += (names.empty() ? "" : ", ") + name;
      text += "      - [" + names + "]\n";
    }
  }
  text += "step_scheduler:\n";
  number("  local_batch_size",
         run.microbatch_size * static_cast<std::int64_t>(planned.plan.spec.microbatches));
  number("  global_batch_size", run.global_batch);
  number("  num_epochs", 1);
  number("  max_steps", 20);
  number("  ckpt_every_steps", 1000000);
  exported.files.push_back({"automodel.yaml", std::move(text)});
  if (rows) exported.files.push_back({kAutomodelRows, compute_rows(planned.plan.schedule)});
  if (!config.empty()) exported.files.push_back({"config.json", std::move(config)});
  exported.files.push_back(launch_script(planned, launch(planned)));
  return exported;
}

}  // namespace pfeife
