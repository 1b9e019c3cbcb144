// DeepSpeed (0.19): a Python module that makes a PipelineModule, trains it on made-up tokens, and
// launch.sh. Boundaries of stages are a result there and no argument, so the first layer of each
// stage is marked in the name of its class, and `type:stagestart` cuts before each mark. Layers are
// those of transformers 5, made from config.json.
#include "planner/io/plan/plan_writers.h"

namespace pfeife {
namespace {

constexpr const char* kDeepspeedDoc =
    R"py("""A plan for DeepSpeed, as launch.sh runs it; or in a program of yours:

    from deepspeed_plan import CONFIG, pipeline
    engine, *_ = deepspeed.initialize(model=pipeline(layers, loss_fn=...), config=CONFIG | {...}, ...)

layers: modules or LayerSpecs in order: the embedding, each block, then norm and head together.
"""
import os
import sys

)py";

constexpr const char* kDeepspeedFunctions = R"py(

def marked(layers):
    """The layers, the first of each stage with a class that is called StageStart..."""
    if len(layers) != BLOCKS + 2:
        raise ValueError(f"{len(layers)} layers; the plan is for {BLOCKS + 2}: embedding, {BLOCKS} blocks, head")
    layers = list(layers)
    for number in FIRST_LAYERS:
        layer = layers[number]
        holder = "typename" if hasattr(layer, "typename") else "__class__"
        own = getattr(layer, holder)
        setattr(layer, holder, type("StageStart" + own.__name__, (own,), {}))
    return layers


def pipeline(layers, **more):
    """The PipelineModule of the plan."""
    from deepspeed.pipe import PipelineModule

    return PipelineModule(marked(layers), num_stages=len(FIRST_LAYERS), partition_method="type:stagestart",
                          activation_checkpoint_interval=RECOMPUTE_INTERVAL, **more)
)py";

/// The layers of an architecture, and training.
constexpr const char* kDeepspeedModel = R"py(

def loss(logits, labels):
    from torch.nn.functional import cross_entropy

    return cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def layers():
    """A LayerSpec for the embedding, each block, then norm and head together, by transformers' classes."""
    from importlib import import_module

    import torch
    from deepspeed.pipe import LayerSpec
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(HERE)
    config._attn_implementation = "sdpa"
    name = type(config).__name__.removesuffix("Config")
    code = import_module(type(config).__module__.replace(".configuration_", ".modeling_"))

    class Block(torch.nn.Module):
        def __init__(self, number):
            super().__init__()
            self.layer = getattr(code, name + "DecoderLayer")(config, number)
            self.rotary = getattr(code, name + "RotaryEmbedding")(config)
            for parameter in self.layer.parameters():
                if parameter.dim() > 1:
                    torch.nn.init.normal_(parameter, std=config.initializer_range)

        def forward(self, hidden):
            positions = torch.arange(hidden.shape[1], device=hidden.device)[None]
            turned = self.rotary(hidden, positions)
            out = self.layer(hidden, attention_mask=None, position_ids=positions, position_embeddings=turned)
            return out[0] if isinstance(out, tuple) else out

    class Head(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = getattr(code, name + "RMSNorm")(config.hidden_size, config.rms_norm_eps)
            self.head = torch.nn.Linear(config.hidden_size, config.vocab_size, bias=False)

        def forward(self, hidden):
            return self.head(self.norm(hidden))

    embedding = LayerSpec(torch.nn.Embedding, config.vocab_size, config.hidden_size)
    return [embedding, *(LayerSpec(Block, number) for number in range(BLOCKS)), LayerSpec(Head)]


def tokens():
    """Random tokens and the ones behind them, a microbatch at a time."""
    import torch

    while True:
        drawn = torch.randint(VOCABULARY, (CONFIG["train_micro_batch_size_per_gpu"], SEQUENCE + 1))
        yield drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous()
)py";

/// Where train() finds layers(), loss() and tokens(): those of an archive are the user's.
constexpr const char* kDeepspeedThis = R"py(

def source():
    return sys.modules[__name__]
)py";
constexpr const char* kDeepspeedUsers = R"py(

def source():
    """The user's module with layers(), loss(outputs, labels) and tokens()."""
    from importlib import import_module

    return import_module(os.environ["LAYERS"])
)py";

constexpr const char* kDeepspeedTrain = R"py(

def train(steps):
    import deepspeed
    import torch

    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    deepspeed.init_distributed()
    own = source()
    model = pipeline(own.layers(), loss_fn=own.loss)
    engine, *_ = deepspeed.initialize(model=model, config=CONFIG)
    data = own.tokens()
    for step in range(steps):
        value = engine.train_batch(data_iter=data)
        if engine.global_rank == 0:
            print(f"step {step + 1}: loss {float(value):.4f}", flush=True)


if __name__ == "__main__":
    train(int(sys.argv[1]))
)py";

std::string optimizer_section(const PlanToExport& planned, std::vector<std::string>& refused) {
  const Optimizer& optimizer = planned.run.optimizer;
  const std::string name = optimizer.kind == Optimizer::Adam    ? "Adam"
                           : optimizer.kind == Optimizer::AdamW ? "AdamW"
                           : optimizer.kind == Optimizer::Sgd   ? "SGD"
                                                                : "";
  if (name.empty())
    refused.push_back("the optimizer " + to_string(optimizer) +
                      ": the export for DeepSpeed writes adam, adamw and sgd");
  return "    \"optimizer\": {\"type\": \"" + name + "\", \"params\": {\"lr\": 1e-4}},\n";
}

Launch launch(bool own_model) {
  Launch script{.title = "DeepSpeed", .program = "\"$HERE/deepspeed_plan.py\" \"$STEPS\""};
  if (own_model) return script;
  script.variables.emplace_back(
      "LAYERS                    module with the model's layers (needed)");
  script.settings =
      "# The plan's model is an archive, whose layers DeepSpeed takes from a module of yours.\n"
      "[[ -n ${LAYERS:-} ]] || stop \"the model is missing; set LAYERS to a module with layers(), "
      "loss(outputs, labels) and tokens()\"\nexport LAYERS\n";
  return script;
}

/// Number of a stage's first layer where the embedding is layer 0.
std::int64_t first_layer(const StagesInModules& stages, std::size_t s) {
  return s == 0 ? 0 : stages.first[s] + 1;
}

}  // namespace

Exported export_for_deepspeed(const PlanToExport& planned) {
  Exported exported;
  const char* const title = "DeepSpeed";
  const StagesInModules stages = stages_in_modules(planned, title, exported.refused);
  add_common_losses(planned, title, exported.refused);
  add_order(planned, title, exported.refused);
  const ScheduleSpec& spec = planned.plan.spec;
  if (spec.stages_per_rank > 1)
    exported.refused.push_back(std::to_string(spec.stages_per_rank) +
                               " stages a rank: DeepSpeed has one");
  if (spec.family != "1f1b" && spec.ranks > 1)
    exported.refused.push_back("the schedule " + spec.family + ": DeepSpeed runs 1f1b");
  const MeshRun& run = planned.run;
  if (run.mesh.size(Axis::Context) > 1 || run.mesh.experts > 1)
    exported.refused.emplace_back("cp and ep: DeepSpeed's pipelines have dp beside them");
  if (run.mesh.size(Axis::Tensor) > 1)
    exported.refused.push_back(
        "tp " + std::to_string(run.mesh.size(Axis::Tensor)) +
        ": the layers of this export are whole; plan with parallel: {tp: 1}");
  if (run.zero > 1)
    exported.refused.push_back("ZeRO " + std::to_string(run.zero) +
                               ": DeepSpeed has 0 and 1 with pipelines");
  const RecomputedModules again = recomputed_modules(planned, stages);
  if (again.any && !recomputes_all(again, stages))
    exported.refused.push_back("the stages recompute " + listed(again.blocks) +
                               " whole blocks: DeepSpeed has one interval for all, every layer");
  // A stage as one piece, or each of its layers.
  const std::int64_t interval = !again.any ? 0 : again.stages ? again.most() + 2 : 1;

  std::string first;
  std::int64_t last = -1;
  bool empty = false;
  for (std::size_t s = 0; s < stages.stages(); ++s) {
    const std::int64_t layer = first_layer(stages, s);
    empty = empty || layer == last;
    last = layer;
    first += (first.empty() ? "" : ", ") + std::to_string(layer);
  }
  if (empty)
    exported.refused.emplace_back(
        "a stage without layers, where two cuts lie in the embedding or in the head: DeepSpeed "
        "makes fewer stages");
  std::string config =
      "    \"train_micro_batch_size_per_gpu\": " + std::to_string(run.microbatch_size) +
      ",\n    \"gradient_accumulation_steps\": " + std::to_string(spec.microbatches) + ",\n";
  if (run.type == DType::BFloat16) config += "    \"bf16\": {\"enabled\": True},\n";
  if (run.type == DType::Float16) config += "    \"fp16\": {\"enabled\": True},\n";
  if (run.zero > 0) config += "    \"zero_optimization\": {\"stage\": 1},\n";
  if (again.any) config += "    \"pipeline\": {\"use_reentrant\": False},\n";
  config += optimizer_section(planned, exported.refused);
  std::string text = kDeepspeedDoc + std::string("BLOCKS = ") + std::to_string(stages.blocks()) +
                     "\nFIRST_LAYERS = [" + first +
                     "]  # of each stage; the embedding is layer 0\nRECOMPUTE_INTERVAL = " +
                     std::to_string(interval) + "\nCONFIG = {\n" + config + "}\n";
  const bool own_model = planned.of_architecture;
  const Architecture& model = run.architecture;
  std::string model_config;
  if (own_model) {
    model_config = hugging_face_config(model, title, exported.refused);
    if (model.tied_embedding)
      exported.refused.emplace_back("a tied embedding: the layers of this export share nothing");
    text += "HERE = os.path.dirname(os.path.abspath(__file__))  # with config.json\nVOCABULARY = " +
            std::to_string(model.vocabulary) + "\nSEQUENCE = " + std::to_string(model.sequence) +
            "\n";
  }
  text += kDeepspeedFunctions;
  text += own_model ? std::string(kDeepspeedModel) + kDeepspeedThis : kDeepspeedUsers;
  exported.files.push_back({"deepspeed_plan.py", text + kDeepspeedTrain});
  if (!model_config.empty()) exported.files.push_back({"config.json", std::move(model_config)});
  exported.files.push_back(launch_script(planned, launch(own_model)));
  return exported;
}

}  // namespace pfeife
