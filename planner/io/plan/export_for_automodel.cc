// NeMo AutoModel's YAML (0.7 and its main branch of August 2026): the section `distributed` of a
// recipe, and its batch. Stages are lists of the names that Hugging Face's model has.
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

}  // namespace

Exported export_for_automodel(const PlanToExport& planned) {
  Exported exported;
  const char* const title = "NeMo AutoModel";
  const StagesInModules stages = stages_in_modules(planned, title, exported.lost);
  add_common_losses(planned, title, exported.lost);
  add_order(planned, title, exported.lost);
  add_shared_parameters(planned, title, exported.lost);
  const MeshRun& run = planned.run;
  if (placed(planned.plan.placement) == Placed::Otherwise)
    exported.lost.emplace_back(
        "the ranks of the stages: AutoModel puts them in turn, or rank r has r and 2 pp - 1 - r");
  const RecomputedModules again = recomputed_modules(planned, stages);
  if (again.any && !recomputes_all(again, stages))
    exported.lost.push_back("the stages recompute " + listed(again.blocks) +
                            " whole blocks: AutoModel has one switch for the model, every block");
  if (run.zero == 1 || run.zero == 2)
    exported.lost.push_back("ZeRO " + std::to_string(run.zero) + ": FSDP2 divides parameters, too");
  const bool rows = !says_all_rows(planned);

  std::string text =
      "# A plan for NeMo AutoModel: sections of a recipe.\n" + commented(exported.lost);
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
  exported.files.push_back({"automodel.yaml", std::move(text)});
  if (rows) exported.files.push_back({kAutomodelRows, compute_rows(planned.plan.schedule)});
  return exported;
}

}  // namespace pfeife
