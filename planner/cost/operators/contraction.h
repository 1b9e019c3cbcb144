// Products of several tensors by index names, as torch.einsum makes them: one after the other.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/model/graph.h"

namespace pfeife {

/// One product of two factors. A factor is an operand (by its number), or the result of an earlier
/// product (the number of operands + that product's number).
struct Contraction {
  struct Factor {
    std::size_t number = 0;
    std::int64_t elements = 0;
    bool copied = false;  ///< laid out anew before it is multiplied
  };
  Factor left, right;
  std::int64_t result = 0;  ///< elements
  double flops = 0;         ///< a multiply-add counts two; 0 if nothing is summed: element-wise
};

/// The products of `equation` ("bij,bjk->bik"; with "...", or without "->") on operands of these
/// types, in the order of `path` (pairs of positions in the list of what is left, each result put
/// at its end) or, without one, from left to right. One operand: none. Empty as well if the
/// equation does not fit the operands.
std::vector<Contraction> einsum_contractions(const std::string& equation,
                                             const std::vector<TensorType>& operands,
                                             const std::vector<std::int64_t>& path);

/// The products of a chain of matrices in the order of fewest multiplications; the first and the
/// last may be vectors.
std::vector<Contraction> chain_contractions(const std::vector<TensorType>& operands);

/// The contractions of an einsum or a chain of matrices.
std::vector<Contraction> contractions_of(const Graph& graph, const Node& node);

}  // namespace pfeife
