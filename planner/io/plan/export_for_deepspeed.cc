// DeepSpeed (0.19): a Python module that makes a PipelineModule. Its boundaries are a result there
// and no argument, so the first layer of each stage is marked in the name of its class, and
// `type:stagestart` cuts before each mark.
#include "planner/io/plan/plan_writers.h"

namespace pfeife {
namespace {

constexpr const char* kDeepspeedDoc = R"py("""A plan for DeepSpeed:

    from deepspeed_plan import CONFIG, pipeline
    engine, *_ = deepspeed.initialize(model=pipeline(layers, loss_fn=...), config=CONFIG | {...}, ...)

layers: modules or LayerSpecs in order: the embedding, each block, then norm and head together.
"""
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

/// Number of a stage's first layer where the embedding is layer 0.
std::int64_t first_layer(const StagesInModules& stages, std::size_t s) {
  return s == 0 ? 0 : stages.first[s] + 1;
}

}  // namespace

Exported export_for_deepspeed(const PlanToExport& planned) {
  Exported exported;
  const char* const title = "DeepSpeed";
  const StagesInModules stages = stages_in_modules(planned, title, exported.lost);
  add_common_losses(planned, title, exported.lost);
  add_order(planned, title, exported.lost);
  const ScheduleSpec& spec = planned.plan.spec;
  if (spec.stages_per_rank > 1)
    exported.lost.push_back("several stages a rank: DeepSpeed has one, so there are " +
                            std::to_string(stages.stages()) +
                            " ranks; make the plan with plan: {for: deepspeed}");
  if (spec.family != "1f1b" && spec.ranks > 1)
    exported.lost.push_back("the schedule " + spec.family +
                            ": DeepSpeed runs 1f1b; make the plan with plan: {for: deepspeed}");
  const MeshRun& run = planned.run;
  if (run.mesh.size(Axis::Context) > 1 || run.mesh.experts > 1)
    exported.lost.emplace_back("cp and ep: DeepSpeed's pipelines have tp and dp beside them");
  if (run.zero > 1)
    exported.lost.push_back(
        "ZeRO " + std::to_string(run.zero) +
        ": DeepSpeed refuses it with pipelines, and divides the optimizer's state");
  const RecomputedModules again = recomputed_modules(planned, stages);
  if (again.any && !recomputes_all(again, stages))
    exported.lost.push_back("the stages recompute " + listed(again.blocks) +
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
    exported.lost.emplace_back(
        "a stage without layers, where two cuts lie in the embedding or in the head: DeepSpeed "
        "makes fewer stages");
  std::string config =
      "    \"train_micro_batch_size_per_gpu\": " + std::to_string(run.microbatch_size) +
      ",\n    \"gradient_accumulation_steps\": " + std::to_string(spec.microbatches) + ",\n";
  if (run.type == DType::BFloat16) config += "    \"bf16\": {\"enabled\": True},\n";
  if (run.type == DType::Float16) config += "    \"fp16\": {\"enabled\": True},\n";
  if (run.zero > 0) config += "    \"zero_optimization\": {\"stage\": 1},\n";
  const std::string degrees = std::to_string(run.mesh.size(Axis::Tensor)) + " tensor parallel, " +
                              std::to_string(run.mesh.size(Axis::Data)) + " replicas";
  exported.files.push_back(
      {"deepspeed_plan.py",
       kDeepspeedDoc + commented(exported.lost) + "BLOCKS = " + std::to_string(stages.blocks()) +
           "\nFIRST_LAYERS = [" + first +
           "]  # of each stage; the embedding is layer 0\nRECOMPUTE_INTERVAL = " +
           std::to_string(interval) + "\nCONFIG = {  # beside " + degrees + "\n" + config + "}\n" +
           kDeepspeedFunctions});
  return exported;
}

}  // namespace pfeife
