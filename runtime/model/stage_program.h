// What runs a stage's nodes, with batch norm's statistics, and what autograd keeps of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "planner/ir/result/plan.h"
#include "planner/ir/schedule/graph_split.h"
#include "runtime/device/aten.h"
#include "runtime/model/operators.h"
#include "runtime/model/split_backward.h"

namespace pfeife {

// Told of every tensor that autograd keeps for backward.

/// While it lives, `note` is called for every tensor that this thread's forward saves: parameters,
/// buffers and inputs as well, a tensor as often as it is saved. It is given the tensor that
/// autograd holds in the place of the saved one: over the same storage, without history, and gone
/// when autograd lets go of it.
class SavedTensorNotes {
 public:
  explicit SavedTensorNotes(std::function<void(const at::Tensor& held)> note);
  ~SavedTensorNotes();
  SavedTensorNotes(const SavedTensorNotes&) = delete;
  SavedTensorNotes& operator=(const SavedTensorNotes&) = delete;

 private:
  std::function<void(const at::Tensor&)> note_;
};

// Deferred batch norm: running statistics of the whole batch of a step, updated once, as without
// microbatches. What normalises a microbatch are its own statistics, as ever. Kim et al. 2020,
// "torchgpipe: On-the-fly pipeline parallelism for training giant models", section 4.2.

/// Places of a batch norm's arguments in its call, if it keeps running statistics and trains.
struct BatchNormArguments {
  std::size_t input = 0, mean = 0, variance = 0, momentum = 0;
};
std::optional<BatchNormArguments> batch_norm_arguments(const Call& call);

/// Statistics of the microbatches of one step of a stage, not yet in the model's buffers.
class BatchStatistics {
 public:
  /// Calls a batch norm on one microbatch ([samples, channels, ...]) and leaves the running
  /// statistics among its arguments as they are. `counts`: whether the microbatch is one more of
  /// this step (false: it is computed again).
  void call(std::uint64_t node, const Call& call, const BatchNormArguments& at,
            std::vector<c10::IValue>& stack, bool counts);
  /// Whether a counter of batches may run: once a step for each node.
  bool first(std::uint64_t node) { return counted_.insert(node).second; }
  /// Updates the running statistics with those of all microbatches since the last call:
  /// running = (1 - momentum) running + momentum batch, the variance with n - 1.
  void commit();

 private:
  struct OfNode {
    at::Tensor running_mean, running_variance;  ///< the model's
    double momentum = 0;
    double count = 0;          ///< numbers a channel
    at::Tensor mean, squares;  ///< their mean; sum of squared distances from it
  };
  std::map<std::uint64_t, OfNode> nodes_;
  std::set<std::uint64_t> counted_;
};

// A stage's nodes as operator calls in order: compiled once for each size of microbatches.

struct StageOptions {
  Placing placing;
  bool split_backward = false;  ///< I and W will be asked for
  bool plain_backward = false;  ///< nothing of split_backward.h in B: autograd's functions alone
  bool recompute = false;       ///< F keeps only its inputs; B or I computes it again
  std::vector<NodeRange> blocks = {};     ///< B or I computes each of them again, by itself
  std::optional<MicrobatchId> kept = {};  ///< of which nothing is computed again
  std::set<MicrobatchId> offloaded = {};  ///< what it saves of them goes to the host and comes back
  double offload_share = 1;               ///< of the bytes
  Bytes least_offloaded{4096};            ///< smaller storages stay
  std::optional<at::ScalarType> autocast =
      {};                         ///< the forward runs under LibTorch's autocast to it
  bool defer_batch_norm = false;  ///< running statistics of a step's whole batch
  bool training = true;           ///< false: no gradients, dropout off, statistics as they are
  std::uint64_t seed = 0;         ///< of random operators
};

/// A node's call.
struct Instruction {
  Call call;
  std::uint64_t node = 0;
  bool random = false;
  bool returns_list = false;
  std::optional<Deferral> deferred;
  std::optional<BatchNormArguments> batch_norm;  ///< whose statistics are deferred
  bool counts_batches = false;  ///< batch norm's counter, once a step where statistics are deferred
  /// Arguments that are trainable parameters which several instructions of the stage read in
  /// autocast's type: one cast for all of them.
  std::vector<std::size_t> casts;
  std::vector<ValueId> outputs;
  std::vector<ValueId> last_uses;  ///< values nobody reads afterwards
};
using StageProgram = std::vector<Instruction>;

/// Instructions [begin, end) of a program that B or I runs again.
struct ProgramBlock {
  std::size_t begin = 0, end = 0;
  std::vector<ValueId> inputs;   ///< made before it or received: what it keeps; sorted
  std::vector<ValueId> outputs;  ///< made in it and read behind it; sorted
  std::vector<ValueId> buffers;  ///< that it reads; sorted
};

/// The `blocks` that have instructions in the program, in order. `needed`: values that stay
/// after the last node.
std::vector<ProgramBlock> program_blocks(const Graph& graph, const StageProgram& program,
                                         std::span<const NodeRange> blocks,
                                         const std::vector<ValueId>& needed);

/// The program of a stage of `graph`, which is bound to some size of microbatches. `received` and
/// `sent`: values that come from and go to other stages; what is needed after the last node stays.
/// ConfigError naming the node if the operator does not take its arguments.
StageProgram compile_stage(const Graph& graph, const std::vector<NodeEffects>& effects,
                           const StageSlice& slice, std::span<const ValueId> received,
                           std::span<const ValueId> sent, const StageOptions& options);

/// The call's arguments with the values of its holes, [value].
std::vector<c10::IValue> arguments(const Instruction& instruction,
                                   const std::vector<at::Tensor>& values);

}  // namespace pfeife
