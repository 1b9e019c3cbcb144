// What ATen operators mean to a planner: one table, a row an operator.
//
// A row says how the result relates to memory (view, in place, fresh), what kind of work the
// operator is, what autograd keeps for its backward, what that backward does, and how autocast
// treats it. Rules that need shapes are functions over a GraphFacts in saved.h, work.h and
// liveness.h; they switch on the columns here. Source of the columns: derivatives.yaml and the
// schemas of PyTorch 2.11; autocast: its operator lists for CUDA.
//
// To add an operator, add its row. An operator without a row is charged by the bytes it reads and
// writes, its inputs and outputs count as kept, and a warning names it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "planner/ir/graph.h"

namespace pfeife {

/// How the result relates to memory.
enum class Memory {
  View,        ///< always shares the storage of its first argument
  ViewIfFits,  ///< shares it if the strides allow (reshape, flatten)
  ViewIfSame,  ///< shares it if neither type nor layout has to change (contiguous, to)
  ViewIfIdle,  ///< shares it if it does nothing (dropout with p = 0 or outside training)
  InPlace,     ///< writes into the storage of its first argument and returns it
  Fresh,       ///< allocates its results
};

/// What it computes; decides time and FLOPs.
enum class OperatorWork {
  None,     ///< metadata only
  Create,   ///< writes its results from nothing (arange, zeros)
  Stream,   ///< element-wise, copies, reductions: bound by memory
  Product,  ///< linear, addmm, matmul
  Convolution,
  Attention,    ///< scaled_dot_product_attention
  LayerNorm,    ///< normalises rows: one pass
  ChannelNorm,  ///< normalises channels or groups: a pass for the statistics, a pass to apply them
  Lookup,       ///< reads rows of a table (embedding, index, gather)
};

/// What autograd keeps, if the result needs a gradient.
enum class Keeps {
  Nothing,
  Input,            ///< first argument
  InputUnlessMean,  ///< the same, but nothing if the result is one mean a channel
  Output,
  OtherOperand,     ///< of two tensors each iff the other needs a gradient (mul)
  Divisor,          ///< the same, and the divisor always (div)
  ProductOperands,  ///< the same for products and convolutions; copies that they make of operands
  Statistics,       ///< input and 8 B per normalised row, group or channel
  Attention,        ///< fused: q, k, v, mask, output, 4 B a query row
  Mask,             ///< dropout: its mask
  LogSoftmax,       ///< cross entropy: fp32 log-softmax and labels
  BothInputs,       ///< mse
  Indices,          ///< embedding, index: the indices
  Condition,        ///< where, masked_fill: the condition
  InputAndIndices,  ///< max pooling: input and an int64 an output element
};

/// What backward does for each operand that needs a gradient (work other than products,
/// convolutions, attention, norms and look-ups, which have rules of their own).
enum class Gradient {
  None,    ///< passes none on
  Passes,  ///< the incoming gradient itself, or a view of it; summed where the operand was
           ///< broadcast
  Copies,  ///< one kernel from the incoming gradient to the operand's
  Uses,    ///< the same, reading what was kept as well
  Fills,   ///< zeros of the operand's size, and the incoming gradient into its place (slice)
};

/// In which type it runs under autocast.
enum class Autocast {
  First,   ///< that of its first floating argument
  Widest,  ///< the widest of its floating arguments
  Narrow,  ///< 16 bits
  Wide,    ///< fp32
};

enum class Randomness { Never, Always, Dropout };

struct OperatorTraits {
  std::string_view name;  ///< without "aten::"
  Memory memory = Memory::Fresh;
  OperatorWork work = OperatorWork::Stream;
  Keeps keeps = Keeps::Nothing;
  Gradient gradient = Gradient::None;
  Autocast autocast = Autocast::First;
  Randomness randomness = Randomness::Never;
  bool metadata_only = false;  ///< reads only shape and type of its tensors (zeros_like)
};

/// The row of an operator, by name without overload ("aten::linear"); nullptr if the table does not
/// know it.
const OperatorTraits* find_operator(const std::string& op);

/// All rows, sorted by name.
std::span<const OperatorTraits> operator_table();

/// True if the call draws random numbers: by its row, and for dropout by its probability.
bool draws_random_numbers(const Node& node, const OperatorTraits* traits);

}  // namespace pfeife
