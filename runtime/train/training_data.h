// Training data: a folder of .npy files, one for each of the model's inputs, with the samples in
// the input's batch dimension.
//
// Samples are read in their order, or each epoch in an order of its own (shuffled_order); one
// file's sample i belongs to the others' sample i. After the last the first follows. The last step
// of an epoch may be smaller; if the model was exported with a fixed batch size, samples that do
// not fill a step are left out.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/model/graph_stage.h"
#include "runtime/model/pipeline.h"

namespace pfeife {

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

}  // namespace pfeife
