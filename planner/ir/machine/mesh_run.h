// A training run on a mesh: what is divided, by how much, in which order.
//   if (planned.mesh) std::puts(to_string(planned.mesh->recomputation).c_str());
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/ir/machine/allocator_settings.h"
#include "planner/ir/machine/mesh.h"
#include "planner/ir/machine/network.h"
#include "planner/ir/model/architecture.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/model/optimizer.h"
#include "planner/ir/model/recipe.h"
#include "planner/ir/model/recompute.h"

namespace pfeife {

/// What runs on a rank besides products and attention.
enum class RankKernels {
  Eager,  ///< operators as PyTorch has them
  /// Megatron-LM 0.14 with Transformer Engine 2.11: one product for query, key and value; a fused
  /// cross entropy on 16-bit logits; with ep, copies into the order of experts and back, and the
  /// router's weights within the activation (all-to-all dispatcher); weight gradients that are
  /// added to their sum by the product, in place of which autograd gets a tensor that is kept for
  /// each shape (get_dummy_wgrad); gradients zeroed, tested for NaN and scaled once a step.
  Megatron,
};
std::string to_string(RankKernels kernels);  ///< "eager", "megatron"

struct MeshRun {
  Architecture architecture;
  Mesh mesh;
  std::int64_t global_batch = 1;     ///< sequences a step
  std::int64_t microbatch_size = 1;  ///< sequences
  std::string schedule = "1f1b";     ///< a family that needs no costs
  std::int64_t stages_per_rank = 1;
  /// Stages of layers that take equally long; else of equally many, as layers_of_stages() says.
  bool balanced = false;
  /// None, Attention (scores, softmax, dropout, context of each layer), or Full (each layer; its
  /// input is kept).
  Recompute recomputation = Recompute::None;
  std::vector<Module> modules = {};  ///< recomputed besides, in every layer; sorted
  bool sequence_parallel = false;
  /// A message between hosts goes in tp parts, one from each rank, which are gathered where they
  /// arrive (Narayanan et al. 2021, sec. 4.1); else each rank sends all of it. With
  /// sequence_parallel a rank has but its part.
  bool scatter_gather = false;
  /// ZeRO: 0 all-reduces gradients; 1 divides the optimizer's state over dp, 2 gradients, too, 3
  /// parameters as well.
  int zero = 0;
  DType type = DType::Float16;
  RankKernels kernels = RankKernels::Eager;
  Format format = Format::Wide;  ///< of products of linear layers; the rest has `type`
  Optimizer optimizer = Optimizer::Adam;
  std::int64_t gradient_bytes = 2;  ///< an element, as gradients are reduced
  /// A layer's gradients are reduced beside the last backward of the layers before it (DDP, ZeRO
  /// up to 2; ZeRO 3 always does); else all of a rank's behind its last backward.
  bool overlap_reductions = false;
  double overlap_factor = 1;     ///< Layers::overlap_factor
  bool overlap_streams = false;  ///< Layers::steps: actions side by side are priced step by step
  /// Tokens that the rank with the most of a layer's experts gets, over the mean of the ranks among
  /// which they are divided. That rank is priced, and the same one in all layers: others wait for
  /// it.
  double expert_imbalance = 1;
  /// What layers keep for backward and hold besides while they run, over what the formula has of
  /// it: a measured peak says it (MeshQuestion::measured_peak).
  double activation_factor = 1;
  /// What tp reduces of the gradient of a product's input runs beside the product's weight gradient
  /// (Megatron-LM); for schedules whose backward is in one part.
  bool overlap_input_gradients = false;

  /// A token crosses once to each host that has experts of it (DeepEP); else once for each expert.
  bool once_a_host = false;
  /// The products of a rank's experts are a kernel an expert, some at a time; else one kernel.
  bool separate_experts = false;

  std::int64_t microbatches() const;  ///< of each pipeline
  friend bool operator==(const MeshRun&, const MeshRun&) = default;
};

inline constexpr double kMostActivations = 16;  ///< MeshRun::activation_factor at most

/// The memory of a run of the question's model that was measured: what its fullest rank had
/// allocated at most, and how it was divided. The rest of the run is as the question has it.
struct MeasuredPeak {
  Bytes bytes{0};  ///< torch.cuda.max_memory_allocated()
  std::int64_t tp = 1, cp = 1, pp = 1, dp = 1, ep = 1;
  std::int64_t microbatch_size = 1;
  std::int64_t global_batch = 0;  ///< 0 = the question's
  std::int64_t stages_per_rank = 1;
  int zero = 0;
  Recompute recomputation = Recompute::None;
  friend bool operator==(const MeasuredPeak&, const MeasuredPeak&) = default;
};
/// The run whose peak was measured, with stages of equally many layers where that divides.
MeshRun measured_run(const MeasuredPeak& peak, MeshRun run);

/// What is left open of a run: each list what may be chosen, in the order in which equals are
/// preferred; of sizes, an empty list = all that fit.
struct MeshQuestion {
  MeshRun run;  ///< all that is not open
  std::int64_t devices = 1;
  std::vector<std::int64_t> tp, cp, pp, dp, ep;
  std::vector<std::int64_t> microbatch_size;
  std::vector<std::int64_t> stages_per_rank{1, 2, 4};
  std::vector<int> zero{0, 1, 3};
  std::vector<Recompute> recomputation{Recompute::None, Recompute::Attention, Recompute::Full};
  /// What Recompute::Selective recomputes: these modules; empty = each of modules_to_try().
  std::vector<Module> modules = {};
  std::optional<MeasuredPeak> measured_peak = {};
  /// As PlanSettings has them.
  std::optional<AllocatorSettings> allocator = AllocatorSettings{};
  std::optional<double> memory_margin = {};
  std::optional<Bytes> reserve = {};
  friend bool operator==(const MeshQuestion&, const MeshQuestion&) = default;
};

/// ConfigError without a place if `size` does not divide the `whole` of `what`, with the nearest
/// sizes that do: "tp 3 does not divide the 64 heads; nearest: tp 2 or 4".
void must_divide(const std::string& name, std::int64_t size, const std::string& what,
                 std::int64_t whole);

/// Refuses a run that cannot be divided: ConfigError without a place, that names what does not
/// divide what, and the nearest sizes that do.
void check_run(const MeshRun& run);

/// The modules that the layers of a model have.
std::vector<Module> modules_of(const Architecture& architecture);
/// Each one of modules_of(), the first two, the first three, and so on: what a search of selective
/// recomputation tries.
std::vector<std::vector<Module>> modules_to_try(const Architecture& architecture);
/// "none", "full", "layernorm+moe_act".
std::string recomputed_text(const MeshRun& run);

/// Whether context parallelism can divide the model: its attention is fused.
bool divides_context(const Architecture& architecture);

/// A device of the mesh: its reserve has room for context and communicators, one each axis.
DeviceKind mesh_device(const MeshRun& run, const Network& network);

/// "bf16", "fp16", or the format.
std::string precision_of(const MeshRun& run);

/// [level] Devices of `mesh` in each domain of `network`: all of a domain's; where a domain is made
/// of several hosts or inner domains, the most of it, in whole ones, with which the mesh lies alike
/// in every domain. The rest of a domain is then left to others.
std::vector<std::int64_t> used_domains(const Mesh& mesh, const Network& network);
/// Neighbouring ranks of a pipeline that are in one domain of so many devices of the mesh.
std::size_t ranks_in_domain(const Mesh& mesh, std::int64_t devices);
/// What the links of a rank of a pipeline are called that reach over `level`: port, nic, level2.
std::string level_link(std::size_t level);

/// What messages between the ranks of a pipeline have of `network`: with scatter_gather the wires
/// of tp devices of a host, and the gathering in their rate and latency.
Network message_network(const MeshRun& run, Network network);

/// [stage] transformer layers. Equally many; or one less in the first and the last stage, for the
/// embedding and the head, where that divides. ConfigError if neither does.
std::vector<std::int64_t> layers_of_stages(const MeshRun& run);

}  // namespace pfeife
