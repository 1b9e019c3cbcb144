// The same runs from shapes alone: the model's sizes and the cluster file of its devices.
#pragma once

#include "experiments/studies/shared_head/runs.h"
#include "planner/ir/machine/network.h"
#include "planner/mesh/mesh_price.h"

namespace pfeife::shared_head {

/// GPT as the authors' script trains it (pretrain_gpt.sh): Megatron-LM, fp16, fused attention, no
/// dropout, no recomputation, output layer and embedding untied. `redistributed` runs have the cuts
/// that this project finds for whole layers.
MeshRun mesh_run(const PublishedStages& run);

/// Estimated: the step and the memory of every rank. Nothing of the measured times is used.
MeshPrice from_shapes(const PublishedStages& run, const Network& network);

}  // namespace pfeife::shared_head
