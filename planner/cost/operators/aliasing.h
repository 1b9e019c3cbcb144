// Which values of a graph share a storage, and who writes into it.
#pragma once

#include <vector>

#include "planner/cost/operators/operators.h"
#include "planner/ir/model/graph.h"

namespace pfeife {

struct Aliasing {
  /// A write into a storage after it was allocated.
  struct Write {
    NodeId node;
    ValueId storage;
    friend bool operator==(const Write&, const Write&) = default;
  };
  std::vector<ValueId> storage;  ///< [value] the value that allocated its storage; itself if fresh
  std::vector<Write> writes;     ///< in order of execution, running statistics of norms included
};

/// Follows views (by strides where an operator only may view) and in-place operators. `traits` by
/// node and `types` by value (GraphFacts::types): a cast that changes nothing is a view. Operators
/// without a row allocate, or, if their name ends in '_', write into their first argument. Linear.
Aliasing aliasing(const Graph& graph, const std::vector<const OperatorTraits*>& traits,
                  const std::vector<DType>& types);

/// True if a tensor of this layout can be seen with these sizes without a copy
/// (torch.Tensor.view's rule).
bool viewable(const TensorType& from, const std::vector<std::int64_t>& sizes);
/// True if both lay out their (equal) sizes in the same way; dimensions of size 1 have no layout.
bool same_layout(const TensorType& a, const TensorType& b);
/// Size of dimension number `i` from the back, at least 1; 1 if there are not so many.
std::int64_t extent_from_back(const TensorType& type, std::size_t i);
/// True if the elements lie densely in row-major order.
bool contiguous(const TensorType& type);

}  // namespace pfeife
