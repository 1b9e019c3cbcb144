// The kernels that operators run, forward and backward: FLOPs and bytes.
//
// FLOPs: a multiply-add counts two; forward equal to torch.utils.flop_counter on products,
// convolutions and attention; everything else is bound by memory and counts none. Bytes: what has
// to move to and from memory if nothing stays in a cache. Eager execution: nothing is fused that
// PyTorch's own operators do not fuse.
#pragma once

#include <span>
#include <vector>

#include "planner/cost/operators/graph_facts.h"
#include "planner/cost/operators/saved.h"
#include "planner/ir/machine/measured_products.h"
#include "planner/ir/model/operator_cost.h"
#include "planner/ir/model/recipe.h"

namespace pfeife {

enum class Pass {
  Forward,
  BackwardInput,   ///< gradients of activations, and of the parameters that come with them
  BackwardWeight,  ///< gradients left to W (deferred_to_weight)
};

struct Kernel {
  Pass pass = Pass::Forward;
  Flops flops;
  Bytes bytes{0};
  double share = 1;              ///< of the efficiency of a large square product
  DType type = DType::Float32;   ///< of what is multiplied
  std::int64_t times = 1;        ///< launched so often, each with these FLOPs and bytes
  Format format = Format::Wide;  ///< that its operands are cast to
  std::int64_t cast = 0;         ///< elements of the operand that is cast for it
  double sequence = 0;           ///< of fused attention: sqrt(queries x keys)
  /// By which a measured time is found; groups 0 = it has none. Of a kernel without FLOPs: it adds
  /// this product's result to a sum.
  ProductShape product = {};
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

/// Part of a large square product's efficiency that these reach. Assumptions, not fitted:
/// convolutions with their gathered windows; fused attention with its softmax between two products.
inline constexpr double kConvolutionShare = 0.7;
inline constexpr double kAttentionShare = 0.45;
/// Products of experts that run at a time where each is a kernel: the streams of Transformer
/// Engine's GroupedLinear (github.com/NVIDIA/TransformerEngine, multi_stream_cublas_gemm).
inline constexpr std::int64_t kExpertStreams = 4;
/// Attention backward computes the scores again and makes four more products: five for two.
inline constexpr double kAttentionBackward = 2.5;

/// Finds the kernels of nodes. Borrows its arguments.
class KernelList {
 public:
  /// `costs` go before the rows of the table.
  KernelList(const GraphFacts& facts, const SavedMemory& saved, DeviceType device,
             std::span<const OperatorCost> costs = {});

  /// All kernels of node `n`, for one microbatch, in no particular order. Rules:
  /// - a parameter's gradient is added to the sum of the microbatches: two reads and a write;
  /// - a value that k operators read gets k gradients: every reader but the last adds its own;
  /// - autocast's casts are kernels, of parameters once for each node and microbatch; their
  ///   gradients are cast back;
  /// - an operator without a row reads its inputs and writes its outputs, and backward the reverse.
  std::vector<Kernel> at(NodeId n) const;

 private:
  const GraphFacts& facts_;
  const SavedMemory& saved_;
  DeviceType device_;
  std::span<const OperatorCost> costs_;
  std::vector<NodeId> last_reader_;  // [value] the last node that hands it a gradient
};

}  // namespace pfeife
