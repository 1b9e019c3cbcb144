// Checkpoints that any plan of the same model can continue from.
//
// DIR/step-00000010 holds, from each rank, the tensors it holds (one that several ranks hold comes
// from the lowest): model-0000R-of-0000D.safetensors under the model's own names, and
// optimizer-0000R-of-0000D.safetensors under NAME/exp_avg and the like; from rank 0 an index as
// Hugging Face writes it, and checkpoint.json, which has the SHA-256 of every file. Of replicas the
// first writes, and gets the parts of the optimizer's state that the others have. All is written
// into a folder with another name, which is renamed when the disk has all of it; then the
// checkpoints before it go. All ranks must see the same folder.
#pragma once

#include <filesystem>

#include "planner/io/tensors/checkpoint_file.h"
#include "runtime/execute/rank_pipeline.h"

namespace pfeife {

/// Every rank must call it. `info`: what training has reached; its files are filled in.
void save_checkpoint(const std::filesystem::path& folder, const Pipeline& pipeline,
                     RankPipeline& own, const RankOptions& options, CheckpointInfo info,
                     Transport& transport);

/// The complete checkpoint with most steps in `folder`, or `folder` itself if it is one.
/// ConfigError if there is none.
std::filesystem::path newest_checkpoint(const std::filesystem::path& folder);

/// Reads what this rank needs: parameters, buffers, and the complete state of the optimizer.
/// `checkpoint` as newest_checkpoint gives it. ConfigError naming the tensor that is not there or
/// has another shape.
void load_checkpoint(const std::filesystem::path& checkpoint, const CheckpointInfo& info,
                     const Pipeline& pipeline, Optimizer optimizer, RankPipeline& own);

/// Errors: ConfigError naming `file` if the checkpoint is of another model.
void require_model(const std::filesystem::path& file, const CheckpointInfo& info,
                   const Graph& graph);

/// Removes what an interrupted save has left in `folder`.
void remove_partial_checkpoints(const std::filesystem::path& folder);

}  // namespace pfeife
