// What ATen operators mean to a planner: one table, a row an operator.
//
// A row says how the result relates to memory (view, in place, fresh), what kind of work the
// operator is, and what autograd keeps for its backward. Rules that need shapes are functions over
// (Graph, Node) in aliasing.h, saved.h and work.h; they switch on the columns here, never on names.
// To add an operator, add its row. Source of the columns: derivatives.yaml and the schemas of
// PyTorch 2.11.
#pragma once

#include <string>
#include <string_view>

namespace pfeife {

/// How the result relates to memory.
enum class Memory {
  View,        ///< always shares the storage of its first argument
  ViewIfFits,  ///< shares it if the strides allow (reshape, flatten)
  ViewIfSame,  ///< shares it if nothing has to change (contiguous, to)
  ViewIfIdle,  ///< shares it if it does nothing (dropout with p = 0 or outside training)
  InPlace,     ///< writes into the storage of its first argument and returns it
  Fresh,       ///< allocates its results
};

/// What it computes; decides time and FLOPs.
enum class Work {
  None,     ///< metadata only
  Create,   ///< writes its results from nothing (arange, zeros); depends on no tensor's contents
  Stream,   ///< element-wise, copies, reductions: bound by memory
  Product,  ///< linear, addmm, matmul
  Convolution,
  Attention,  ///< scaled_dot_product_attention
  Norm,       ///< layer, group and batch norm
  Lookup,     ///< embedding
};

/// What autograd keeps, if the result needs a gradient.
enum class Keeps {
  Nothing,
  Input,  ///< first argument
  Output,
  OtherOperand,     ///< of two tensors each iff the other needs a gradient (mul)
  Divisor,          ///< the same, and the divisor always (div)
  ProductOperands,  ///< the same for products, copies of operands that cannot be flattened included
  InputAndWeight,   ///< convolution
  Statistics,       ///< input and 8 B per normalised row, group or channel
  Attention,        ///< q, k, v, output, 4 B a query row
  Mask,             ///< dropout: its mask
  LogSoftmax,       ///< cross entropy: fp32 log-softmax and labels
  BothInputs,       ///< mse
  Indices,          ///< embedding, index, gather: the indices
  Condition,        ///< where, masked_fill: the condition
  InputAndIndices,  ///< max pooling: input and an int64 an output element
};

struct OperatorTraits {
  std::string_view name;  ///< without "aten::"
  Memory memory = Memory::Fresh;
  Work work = Work::Stream;
  Keeps keeps = Keeps::Nothing;
  bool random = false;
  bool metadata_only =
      false;  ///< reads only the shape and type of its tensor argument (zeros_like)
};

/// The row of an operator, by name without overload ("aten::linear"); nullptr if the table does not
/// know it.
const OperatorTraits* find_operator(const std::string& op);

}  // namespace pfeife
