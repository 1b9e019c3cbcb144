// Which values of a graph share a storage, and who writes into it.
#pragma once

#include <vector>

#include "planner/ir/graph.h"

namespace pfeife {

struct Aliasing {
  std::vector<ValueId>
      storage;  ///< [value] the value that allocated its storage; itself for a fresh one
  /// A write into a storage after it was allocated.
  struct Write {
    NodeId node;
    ValueId storage;
  };
  std::vector<Write> writes;  ///< in order of execution; running statistics of batch norms included
};

/// Follows views (by strides where an operator only may view) and in-place operators. Unknown
/// operators allocate; an unknown one whose name ends in '_' writes into its first argument.
/// Linear.
Aliasing aliasing(const Graph& graph);

/// True if a tensor of this layout can be seen with these sizes without a copy (torch.Tensor.view's
/// rule).
bool viewable(const TensorType& from, const std::vector<std::int64_t>& sizes);
/// True if the elements lie densely in row-major order.
bool contiguous(const TensorType& type);

/// The tensor argument `name`, or argument number `index` if the name is empty; nullptr-like
/// ValueId{-1} if absent.
ValueId tensor_argument(const Node& node, const std::string& name);
ValueId first_tensor(const Node& node);
double number_argument(const Node& node, const std::string& name, double otherwise);
bool flag_argument(const Node& node, const std::string& name, bool otherwise);

}  // namespace pfeife
