// From layers and a partition to what each stage costs where it is placed.
#pragma once

#include "planner/cost/stages/stage_temporary.h"
#include "planner/cost/stages/summed_layers.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/step_norm.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// Times, memory and messages of every stage. `layers` must have times for every device kind of
/// `cluster`, `partition` must be legal and have as many stages as `placement`. A value is sent
/// once to each stage that reads it; a storage or parameter counts once a stage (a parameter once a
/// rank); stages on different ranks that share a parameter reduce its gradient together.
/// DeviceKind::stage_overhead is added to each forward and each backward-input, iteration_overhead
/// to the optimizer of the first stage of each rank.
///
/// A recomputed stage keeps only what it receives and what it reads of the model's inputs from F to
/// B or I, which begins with the layers' forward again; what F would save then exists within that
/// action. Blocks are recomputed one by one (recomputed_layers.h). What the last microbatch keeps
/// is in StageCosts::last.
///
/// A stage that offloads a share has it of what it saves alone (saved_alone), in the time that its
/// device's host_link takes. Errors: ConfigError if the device has none.
///
/// Layers of Mode::Forward make costs without a backward: a stage keeps nothing behind its F.
///
/// Optimizer steps wait for `norm`. `sums`: the prefix sums of the layers, made once and passed to
/// every call.
StageCosts stage_costs(const SummedLayers& sums, const Partition& partition,
                       const Placement& placement, const Cluster& cluster,
                       const Activations& activations = {}, StepNorm norm = StepNorm::None);
/// The costs of a plan: of its cuts, recomputation and offloading, and of the slices that its
/// schedule has. Builds the sums on each call.
StageCosts stage_costs(const Layers& layers, const Plan& plan, const Cluster& cluster);

/// Time of REDUCE_NORM: one number of all ranks, and where gradients are clipped what the slowest
/// rank takes for the norm of its own and to scale them. (fp16's search for infinities is part of
/// the optimizer's times.) nullopt if there is none.
std::optional<Nanoseconds> norm_time(const Layers& layers, StepNorm norm,
                                     const Partition& partition, const Placement& placement,
                                     const Cluster& cluster);
/// The part of it that does not depend on the cuts.
Nanoseconds norm_exchange_time(StepNorm norm, const std::vector<DeviceId>& device_of_rank,
                               const Cluster& cluster);
/// What a device takes to clip so many gradients, of so many parameters: it reads them for the
/// norm, reads them again and writes them, by an operator each for a parameter on a CPU, by two for
/// all of them on a GPU.
Nanoseconds clipping_time(const DeviceKind& kind, Bytes gradients, std::int64_t parameters);
/// norm_time() is no less, whatever the cuts: some rank has its share of the gradients.
Nanoseconds least_norm_time(const Layers& layers, StepNorm norm,
                            const std::vector<DeviceId>& device_of_rank, const Cluster& cluster);

/// stage_costs() in two steps, for several choices of recomputed stages on the same cuts:
/// collected_stage_costs() does the expensive part, which all choices share; with_recomputation()
/// applies one choice.
StageCosts collected_stage_costs(const SummedLayers& sums, const Partition& partition,
                                 const Placement& placement, const Cluster& cluster);
/// `recomputed` without blocks.
StageCosts with_recomputation(StageCosts collected, const Activations& activations,
                              const Placement& placement, const Cluster& cluster);

}  // namespace pfeife
