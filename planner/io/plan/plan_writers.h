// The writers of the table in plan_export.cc, each in a file of its name, and what they share.
#pragma once

#include <string>
#include <vector>

#include "planner/io/plan/plan_export.h"

namespace pfeife {

// What the writers of plan_export.h have in common: the stages of a plan in numbered modules, what
// is recomputed of them, and where they lie.

/// The stages of a model that is an embedding, a list of blocks, and a head.
struct StagesInModules {
  std::string list;  ///< path of the blocks: "net.model.layers"
  std::vector<std::int64_t> first =
      {};  ///< [stage] number of its first block, and behind the last one
  /// [stage] Modules outside of the list whose parameters it uses, in the order of the layers.
  std::vector<std::vector<std::string>> others = {};

  std::size_t stages() const { return first.size() - 1; }
  std::int64_t blocks() const { return first.back(); }
  std::int64_t blocks(std::size_t stage) const { return first[stage + 1] - first[stage]; }
};
/// A cut inside of a block, of the embedding or of the head is a reason to refuse. Errors:
/// ConfigError if the model has no list of blocks, or several.
StagesInModules stages_in_modules(const PlanToExport& planned, const std::string& title,
                                  std::vector<std::string>& refused);

/// What of the blocks is computed again.
struct RecomputedModules {
  std::vector<std::int64_t> blocks;  ///< [stage] how many
  bool stages = false;               ///< each as one piece: whole stages are
  std::int64_t attention = 0;        ///< blocks of which a piece alone is: their attention
  bool any = false;

  std::int64_t most() const;
  friend bool operator==(const RecomputedModules&, const RecomputedModules&) = default;
};
RecomputedModules recomputed_modules(const PlanToExport& planned, const StagesInModules& stages);
/// The same number of blocks of each stage, or all where a stage has fewer.
bool recomputes_equally(const RecomputedModules& again, const StagesInModules& stages);
/// Every block of every stage.
bool recomputes_all(const RecomputedModules& again, const StagesInModules& stages);
/// "3 2 2 0".
std::string listed(const std::vector<std::int64_t>& numbers);

/// Stage s on rank s mod D; or rank r has stages r and 2D - 1 - r.
enum class Placed { Loop, Folded, Otherwise };
Placed placed(const Placement& placement);

/// Which device runs which rank, and which microbatch is not recomputed: no framework has words for
/// these.
void add_common_losses(const PlanToExport& planned, const std::string& title,
                       std::vector<std::string>& refused);

/// The axes that divide the work are in this order, neighbours first.
bool in_order(const MeshRun& run, std::vector<Axis> order);
/// The order of a mesh's axes, where a framework has tp, cp, dp, pp alone, neighbours first.
void add_order(const PlanToExport& planned, const std::string& title,
               std::vector<std::string>& refused);
/// What stages share, where a framework refuses such models in a pipeline.
void add_shared_parameters(const PlanToExport& planned, const std::string& title,
                           std::vector<std::string>& refused);

/// The class of torch.distributed.pipelining that puts as many stages on the ranks, in the plan's
/// order: "Interleaved1F1B".
std::string torch_schedule(const PlanToExport& planned);
/// That class makes the plan's rows by itself.
bool says_all_rows(const PlanToExport& planned);
/// The rows without transfers, reductions and steps, as torch reads them ("compute_only").
std::string compute_rows(const Schedule& schedule);

/// Reasons for which a framework's plain decoder is not the model: unlike layers, windows, sinks,
/// norms of queries and keys.
void refuse_unlike_layers(const Architecture& model, const std::string& title,
                          std::vector<std::string>& refused);
/// Flags of pretrain_gpt.py for the model of an architecture.
std::vector<std::string> megatron_model(const MeshRun& run, std::vector<std::string>& refused);
/// Python lines of torchtitan_plan.py: MODEL, VOCABULARY, and the function model_spec(), which
/// makes the model of an architecture by torchtitan's own builders.
std::string torchtitan_model(const MeshRun& run, std::vector<std::string>& refused);
/// config.json of the model of an architecture, for transformers; "" if that is refused.
std::string hugging_face_config(const Architecture& model, const std::string& title,
                                std::vector<std::string>& refused);

/// What launch.sh starts on each host.
struct Launch {
  std::string title;                        ///< the framework's
  std::vector<std::string> variables = {};  ///< lines of the script's head, with their defaults
  std::string settings = {};                ///< lines of bash before the launch
  std::string program = {};                 ///< what torchrun starts, with its arguments
};
/// launch.sh: torchrun on each host, with hosts from the environment.
ExportedFile launch_script(const PlanToExport& planned, const Launch& launch);

/// "# a line of text" for each, in lines that fit.
std::string commented(const std::vector<std::string>& sentences);

// The writers of the table in plan_export.cc, each in a file of its name.

/// split_points.json; where torch.distributed.pipelining can run the plan, schedule_torch.csv and
/// run_in_torch.py, too.
Exported export_for_torch(const PlanToExport& planned);
/// megatron_args.sh, flags for Megatron-LM as a bash array, and launch.sh.
Exported export_for_megatron(const PlanToExport& planned);
/// torchtitan_plan.py, a config of a run, the rows as schedule_torchtitan.csv, and launch.sh.
Exported export_for_torchtitan(const PlanToExport& planned);
/// automodel.yaml, a recipe, the rows as schedule_automodel.csv, config.json, and launch.sh.
Exported export_for_automodel(const PlanToExport& planned);
/// deepspeed_plan.py, which makes a PipelineModule and trains it, config.json, and launch.sh.
Exported export_for_deepspeed(const PlanToExport& planned);
/// plan.RANK.et: a Chakra execution trace of each rank's step.
Exported export_for_chakra(const PlanToExport& planned);

}  // namespace pfeife
