// torchtitan's configuration (0.3, and the fields of its main branch of August 2026): a Python
// module whose function returns the config of a run on made-up tokens, and launch.sh. The rows come
// as CSV unless the schedule is one whose name says all. Stages are lists of module names; a name
// that no model has would be ignored there, so every block is named once.
#include "planner/io/plan/plan_writers.h"

namespace pfeife {
namespace {

constexpr const char* kTorchtitanRows = "schedule_torchtitan.csv";

constexpr const char* kTorchtitanDoc = R"py("""A plan for torchtitan, as launch.sh runs it:

    torchrun ... -m torchtitan.train --module torchtitan_plan --config planned

with this folder on PYTHONPATH.
"""
)py";

constexpr const char* kTorchtitanFunctions = R"py(

def apply(config):
    """The config, with the plan in it."""
    spec = getattr(config, "model_spec", None)
    if spec is not None and len(spec.model.layers) != BLOCKS:
        raise ValueError(f"the config's model has {len(spec.model.layers)} layers; the plan is for {BLOCKS}")
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
    training.mixed_precision_param = PRECISION
    if len(STAGES) > 1:
        training.disable_cuda_graphs = True  # torchtitan refuses them with a pipeline
    config.activation_checkpoint = None
    if RECOMPUTE:
        from torchtitan.distributed.activation_checkpoint import FullAC

        config.activation_checkpoint = FullAC.Config()
    return config
)py";

/// With a model of its own: tokens are made up, and no tokenizer is read.
constexpr const char* kTorchtitanRun = R"py(

def planned():
    from dataclasses import dataclass

    import torch
    from torchtitan.components.dataloader import BaseDataLoader
    from torchtitan.components.loss import CrossEntropyLoss
    from torchtitan.components.optimizer import OptimizersContainer, ParamGroupConfig
    from torchtitan.components.tokenizer import BaseTokenizer
    from torchtitan.config import TrainingConfig
    from torchtitan.trainer import Trainer

    class NoTokenizer(BaseTokenizer):
        @dataclass(kw_only=True, slots=True)
        class Config(BaseTokenizer.Config):
            pass

        def __init__(self, config, *, tokenizer_path=None):
            super().__init__()

        def encode(self, *args, **kwargs):
            raise NotImplementedError("tokens are made up")

        decode = encode

        def get_vocab_size(self):
            return VOCABULARY

    class RandomTokens(BaseDataLoader):
        @dataclass(kw_only=True, slots=True)
        class Config(BaseDataLoader.Config):
            pass

        def __init__(self, config, *, dp_rank, seq_len, local_batch_size, **rest):
            self.shape = local_batch_size, seq_len
            self.random = torch.Generator().manual_seed(dp_rank)

        def __iter__(self):
            batch, length = self.shape
            positions = torch.arange(length).repeat(batch, 1)
            while True:
                tokens = torch.randint(VOCABULARY, (batch, length + 1), generator=self.random)
                yield {"input": tokens[:, :-1].contiguous(), "positions": positions}, tokens[:, 1:].contiguous()

        def state_dict(self):
            return {"random": self.random.get_state()}

        def load_state_dict(self, state):
            if state:
                self.random.set_state(state["random"])

    group = ParamGroupConfig(pattern=".*", optimizer_name=OPTIMIZER, optimizer_kwargs={"lr": 1e-4})
    config = Trainer.Config(
        model_spec=model_spec(),
        loss=CrossEntropyLoss.Config(global_vocab_size=VOCABULARY),
        tokenizer=NoTokenizer.Config(),
        dataloader=RandomTokens.Config(),
        optimizer=OptimizersContainer.Config(param_groups=[group]),
        training=TrainingConfig(disable_cuda_graphs=True),
    )
    config.metrics.log_freq = 1
    config.lr_scheduler.warmup_steps = 0
    return apply(config)
)py";

/// The plan's model is an archive: the config that trains it is the user's.
constexpr const char* kTorchtitanBase = R"py(
BASE = os.environ.get("TORCHTITAN_BASE", "")


def planned():
    if ":" not in BASE:
        raise ValueError("set TORCHTITAN_BASE to MODULE:FUNCTION, a torchtitan config of the model")
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

/// torchtitan's name of the optimizer; the config of an archive has its own.
std::string optimizer_name(const PlanToExport& planned, std::vector<std::string>& refused) {
  const Optimizer& optimizer = planned.run.optimizer;
  if (optimizer.kind == Optimizer::Adam) return "Adam";
  if (optimizer.kind == Optimizer::AdamW) return "AdamW";
  if (planned.of_architecture)
    refused.push_back("the optimizer " + to_string(optimizer) +
                      ": the export for torchtitan writes adam and adamw");
  return "";
}

Launch launch(bool own_model) {
  Launch script{.title = "torchtitan",
                .settings = "export PYTHONPATH=\"$HERE${PYTHONPATH:+:$PYTHONPATH}\"\n",
                .program =
                    "-m torchtitan.train --module torchtitan_plan --config planned "
                    "--training.steps \"$STEPS\""};
  if (own_model) return script;
  script.variables.emplace_back("TORCHTITAN_BASE           MODULE:FUNCTION, a config of the model");
  script.settings +=
      "# The plan's model is an archive, for which torchtitan has a config of yours.\n"
      "[[ -n ${TORCHTITAN_BASE:-} ]] || stop \"the model's config is missing; set TORCHTITAN_BASE "
      "to MODULE:FUNCTION, such as torchtitan.models.llama3.config_registry:llama3_8b\"\n"
      "export TORCHTITAN_BASE\n";
  return script;
}

}  // namespace

Exported export_for_torchtitan(const PlanToExport& planned) {
  Exported exported;
  const char* const title = "torchtitan";
  const StagesInModules stages = stages_in_modules(planned, title, exported.refused);
  add_common_losses(planned, title, exported.refused);
  add_order(planned, title, exported.refused);
  if (planned.run.zero == 1 || planned.run.zero == 2)
    exported.refused.push_back("ZeRO " + std::to_string(planned.run.zero) +
                               ": FSDP divides parameters, too, and keeps them whole between uses");
  add_shared_parameters(planned, title, exported.refused);
  if (placed(planned.plan.placement) == Placed::Otherwise)
    exported.refused.emplace_back(
        "the ranks of the stages: torchtitan puts them in turn, or rank r has r and 2 pp - 1 - r");
  const RecomputedModules again = recomputed_modules(planned, stages);
  if (again.any && !recomputes_all(again, stages))
    exported.refused.push_back(
        "the stages recompute " + listed(again.blocks) +
        " whole blocks: torchtitan has one policy for the model, every block");
  if (planned.run.type == DType::Float16)
    exported.refused.emplace_back("fp16: torchtitan trains in bf16 or fp32");
  const bool rows = !says_all_rows(planned);
  const bool own_model = planned.of_architecture;
  const std::string optimizer = optimizer_name(planned, exported.refused);

  std::string text =
      std::string(kTorchtitanDoc) + (own_model ? "" : "import importlib\nimport os\n") +
      "from pathlib import Path\n\nBLOCKS = " + std::to_string(stages.blocks()) +
      "\nMICROBATCHES = " + std::to_string(planned.plan.spec.microbatches) + "\n" +
      "MICROBATCH_SIZE = " + std::to_string(planned.run.microbatch_size) + "\n" +
      "GLOBAL_BATCH = " + std::to_string(planned.run.global_batch) + "\n" + "SEQUENCE = " +
      (own_model ? std::to_string(planned.run.architecture.sequence) : "None  # the config's own") +
      "\nPRECISION = \"" + (planned.run.type == DType::BFloat16 ? "bfloat16" : "float32") +
      "\"\nRECOMPUTE = " + (again.any ? "True" : "False") + "\n";
  if (own_model)
    text += "OPTIMIZER = \"" + optimizer + "\"\n" + torchtitan_model(planned.run, exported.refused);
  text +=
      "\n\ndef layers(first, end):\n"
      "    return [f\"layers.{number}\" for number in range(first, end)]\n\n\n" +
      stage_lines(stages) + parallelism(planned, rows) + kTorchtitanFunctions +
      (own_model ? kTorchtitanRun : kTorchtitanBase);
  exported.files.push_back({"torchtitan_plan.py", std::move(text)});
  if (rows) exported.files.push_back({kTorchtitanRows, compute_rows(planned.plan.schedule)});
  exported.files.push_back(launch_script(planned, launch(own_model)));
  return exported;
}

}  // namespace pfeife
