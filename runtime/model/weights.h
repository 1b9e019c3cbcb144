// Parameters and buffers of a rank, and numbers from their names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "planner/io/model/pt2_weights.h"
#include "planner/ir/model/graph.h"
#include "planner/ir/schedule/graph_split.h"
#include "runtime/model/operators.h"

namespace pfeife {

// Numbers from names, for seeds: what a name stands for draws the same wherever it lies.

/// FNV-1a.
inline std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

// The tensors a rank holds: parameters, buffers and constants of its stages, read from the archive
// or initialised.

/// Parameters (leaves that record gradients if trainable), buffers and constants. One of each a
/// rank: stages of the rank that share a parameter share the tensor.
struct RankTensors {
  std::map<ParameterId, at::Tensor> parameters;
  std::map<ValueId, at::Tensor> buffers;
};

/// Where tensors come from. Cheap to copy; nothing is read before it is asked for.
class WeightSource {
 public:
  /// The archive at `path`, mapped into memory: pages are read as they are touched, and in-place
  /// updates leave the file alone. What a graph-only archive lacks is initialised from `seed` and
  /// the tensor's name alone, hence equal for every partition: matrices and filters normal with
  /// deviation 1/sqrt(fan in), vectors called "weight" and variances 1, everything else 0.
  WeightSource(std::filesystem::path path, std::uint64_t seed);

  /// The model's graph for microbatches of `samples` samples.
  Graph graph(std::int64_t samples) const;
  /// The named tensor of the model (its own first name).
  at::Tensor tensor(const std::string& name, const TensorType& type) const;
  /// The file has contents for it.
  bool has(const std::string& name) const { return weights_->has(name); }

 private:
  at::Tensor storage(std::size_t index) const;

  std::filesystem::path path_;
  std::uint64_t seed_;
  std::shared_ptr<const Pt2Weights> weights_;  // shared by the copies of the ranks of a process
};

/// The tensors of the given stages, each rank its own copy.
RankTensors load_tensors(const Graph& graph, const GraphSplit& split,
                         std::span<const StageId> stages, const WeightSource& source,
                         const Placing& placing);

/// Numbers for every input of the model for one microbatch, from `seed` and `microbatch` alone:
/// normal floats; integers below the size of what they index (embedding rows, classes). Where the
/// model names a loss weight, labels that the loss leaves out are among them, and the floats that
/// the weight is computed from are not negative.
std::map<ValueId, at::Tensor> synthetic_inputs(const Graph& graph, std::uint64_t seed,
                                               MicrobatchId microbatch, const Placing& placing);

/// A 64-bit number that depends on all parts: seeds of what must not share random numbers.
std::uint64_t mixed_seed(std::initializer_list<std::uint64_t> parts);

}  // namespace pfeife
