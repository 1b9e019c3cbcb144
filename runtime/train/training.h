// Training on data: the samples, the checkpoints, the steps.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "planner/io/tensors/checkpoint_file.h"
#include "runtime/execute/rank_pipeline.h"
#include "runtime/launch/start_ranks.h"
#include "runtime/model/graph_stage.h"
#include "runtime/model/pipeline.h"

namespace pfeife {

// Training data: a folder of .npy files, one for each of the model's inputs, with the samples in
// the input's batch dimension.
//
// Samples are read in their order, or each epoch in an order of its own (shuffled_order); one
// file's sample i belongs to the others' sample i. After the last the first follows. The last step
// of an epoch may be smaller; if the model was exported with a fixed batch size, samples that do
// not fill a step are left out.

/// The order of the samples of an epoch: torch.randperm(samples) of a CPU generator with the seed
/// `seed` + `epoch`, PyTorch's DistributedSampler's. The same on every rank and host.
at::Tensor shuffled_order(std::int64_t samples, std::uint64_t seed, std::int64_t epoch);

/// The model's inputs that the stages read.
std::set<ValueId> inputs_of(const Pipeline& pipeline, const std::vector<StageId>& stages);

class TrainingData {
 public:
  /// Maps FOLDER/<input>.npy for every input of the model. ConfigError naming the file: missing,
  /// another type or shape than the input, fewer samples than the other files or than a step needs.
  TrainingData(const std::filesystem::path& folder, const Pipeline& pipeline);

  std::int64_t samples() const { return samples_; }
  /// SHA-256 of names, types, shapes and content; of a file of more than 64 MiB, of 256 pieces of
  /// 64 KiB spread evenly over it. Equal data on all hosts have equal digests.
  std::string digest() const;
  /// How many samples the step has that starts at `sample` of the epoch.
  std::int64_t in_step(std::int64_t sample) const;
  /// Where the step after it starts; 0 begins an epoch.
  std::int64_t after(std::int64_t sample) const;
  /// The share of a replica in the step that starts at `sample` of the epoch, whose samples are
  /// those of the files in `order` ([samples], undefined: as they lie). The inputs `needed` are
  /// copies, the others may be views of the files, of which nothing is read.
  StepInputs step(std::uint64_t step, std::int64_t sample, const std::set<ValueId>& needed,
                  const Placing& placing, std::size_t replica = 0,
                  const at::Tensor& order = {}) const;

 private:
  const Pipeline& pipeline_;
  std::int64_t samples_ = 0, samples_per_step_ = 0;
  std::int64_t dimension(ValueId input) const;  ///< of the samples

  std::map<ValueId, at::Tensor> files_;
};

// Checkpoints that any plan of the same model can continue from.
//
// DIR/step-00000010 holds, from each rank, the tensors it holds (one that several ranks hold comes
// from the lowest): model-0000R-of-0000D.safetensors under the model's own names, and
// optimizer-0000R-of-0000D.safetensors under NAME/exp_avg and the like; from rank 0 an index as
// Hugging Face writes it, and checkpoint.json, which has the SHA-256 of every file. Of replicas the
// first writes, and gets the parts of the optimizer's state that the others have. All is written
// into a folder with another name, which is renamed when the disk has all of it; then the
// checkpoints before it go. All ranks must see the same folder.

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

// Training: steps on data, with checkpoints and progress.

struct TrainingSettings {
  int steps = 10;                      ///< of this run
  const TrainingData* data = nullptr;  ///< none: synthetic, from seed and step
  bool shuffle = false;                ///< each epoch in the shuffled_order() of the rank's seed
  std::filesystem::path save;          ///< folder of checkpoints; "" = none
  int save_every = 0;                  ///< steps; 0 = only after the last
  std::filesystem::path resume;        ///< a checkpoint; "" = from the model's own weights
};

/// After a step; of rank 0.
struct StepProgress {
  std::int64_t step = 0;  ///< steps done since training began, earlier runs included
  double loss = 0;        ///< mean over the samples of the step
  double learning_rate = 0;
  double seconds = 0;  ///< from the end of the step before
  double samples_per_second = 0;
  Bytes memory{0};  ///< most that a rank has held so far: its process, or its tensors on a device
};

/// Trains on this rank; every rank must call it. `report` is called on rank 0 after each step.
void train(const Pipeline& pipeline, const WeightSource& source, const RankOptions& options,
           const TrainingSettings& settings, const RankSeat& seat,
           const std::function<void(const StepProgress&)>& report);

/// "step 12: loss 3.25, learning rate 0.001, 118 samples/s, 310 MiB".
std::string to_string(const StepProgress& progress);

}  // namespace pfeife
