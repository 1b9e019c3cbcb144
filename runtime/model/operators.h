// Operators of a graph as calls of LibTorch's dispatcher, and what their schemas say about storages
// and random numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/ir/model/graph.h"
#include "planner/ir/model/node_effects.h"
#include "runtime/device/aten.h"

namespace pfeife {

/// LibTorch's names of our types.
c10::ScalarType scalar_type(DType dtype);
DType dtype_of(c10::ScalarType type);

/// How a graph is placed when it is made executable.
struct Placing {
  at::Device device = at::kCPU;
  /// Floats of 16 and 32 bits, and complex numbers of them, become float64 everywhere: to compare
  /// gradients exactly.
  bool double_precision = false;
};
/// The dtype that tensors of `dtype` have under `placing`.
c10::ScalarType placed_type(DType dtype, const Placing& placing);

/// Effects of every node. ConfigError naming node and operator if LibTorch has no such operator.
std::vector<NodeEffects> effects_of(const Graph& graph);

/// An operator call with its constants in place and holes for tensors.
struct Call {
  c10::OperatorHandle op;
  std::vector<c10::IValue> stack;  ///< arguments by position; holes are None
  struct Hole {
    std::size_t argument = 0;
    ValueId value;
  };
  struct ListHole {
    std::size_t argument = 0;
    std::vector<std::optional<ValueId>> values;
    bool optional = false;  ///< Tensor?[] rather than Tensor[]
  };
  std::vector<Hole> holes;
  std::vector<ListHole> list_holes;
};

/// The call of `node`. ConfigError naming the node and the argument if the schema does not take it.
Call compile_call(const Graph& graph, const Node& node, const Placing& placing);

}  // namespace pfeife
