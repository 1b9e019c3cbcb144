// A stage's nodes as operator calls in order: compiled once for each size of microbatches.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <vector>

#include "planner/ir/result/plan.h"
#include "planner/ir/schedule/graph_split.h"
#include "runtime/model/batch_statistics.h"
#include "runtime/model/operators.h"
#include "runtime/model/split_backward.h"

namespace pfeife {

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
