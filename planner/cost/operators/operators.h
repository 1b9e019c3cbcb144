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

#include "planner/ir/model/graph.h"

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
  None,              ///< metadata only
  Create,            ///< writes its results from nothing (arange, zeros)
  Stream,            ///< element-wise, copies, reductions: bound by memory
  Product,           ///< linear, addmm, matmul: its weight's gradient can wait for W
  GroupedProduct,    ///< the products of experts: the same, also of a parameter's view
  OtherProduct,      ///< with all gradients in I: baddbmm, cdist, bilinear
  Einsum,            ///< products of any number of tensors; of two, a weight's gradient can wait
  Convolution,       ///< its weight's gradient can wait for W
  OtherConvolution,  ///< the same, with all gradients in I: transposed ones
  Recurrent,         ///< lstm, gru and their cells: a product a step
  Attention,         ///< scaled_dot_product_attention
  StateSpace,        ///< of a Mamba-2 layer, from its product in to its product out
  LayerNorm,         ///< normalises rows: one pass
  ChannelNorm,  ///< normalises channels or groups: a pass for the statistics, a pass to apply them
  Lookup,       ///< reads rows of a table (embedding, index, gather)
  Bag,          ///< reads rows of a table and adds them up (embedding_bag)
  Sort,         ///< orders keys and their positions: some passes over both
  Fourier,      ///< a pass over the data for each dimension that is transformed
};

/// What autograd keeps, if the result needs a gradient.
enum class Keeps {
  Nothing,
  Input,                ///< first argument
  InputCopy,            ///< a copy of the first argument, which is then overwritten
  RealInput,            ///< the same, unless it is complex
  InputAndOutput,       ///< first argument and results
  InputUnlessConstant,  ///< the same of a padding, but nothing if it pads with a number
  InputUnlessMean,      ///< the same, but nothing if the result is one mean a channel
  Output,
  OtherOperand,      ///< of two tensors each iff the other needs a gradient (mul)
  Divisor,           ///< the same, and the divisor always (div)
  ProductOperands,   ///< the same for products and convolutions; copies that they make of operands
  Gates,             ///< lstm, gru: input, result and what the gates made of each step
  Statistics,        ///< input and 8 B per normalised row, group or channel
  RowScale,          ///< the same with 4 B; a CPU keeps the normalised rows as well
  Attention,         ///< fused: q, k, v, mask, output, 4 B a query row
  StateSpace,        ///< its first argument, the scan's result, 4 B a norm; the rest it makes again
  Mask,              ///< dropout: its mask
  LogSoftmax,        ///< cross entropy: fp32 log-softmax and labels
  Power,             ///< input; all that it reads and returns if the exponent is a tensor
  Everything,        ///< all that it reads and returns
  BothInputs,        ///< all tensors that it reads (mse)
  Difference,        ///< l1 loss: the difference of its inputs
  Indices,           ///< embedding, index: the indices
  IndicesAndSource,  ///< the same, and what is added or copied there
  OutputIndices,     ///< sort, topk: those that it returns
  Extremum,          ///< min, max: of two tensors both, of one the result's place
  Condition,         ///< where, masked_fill: the condition
  InputAndIndices,   ///< max pooling: input and an int64 an output element
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
  std::string_view name;  ///< without "aten::"; of other namespaces in full
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

/// An operator of torch's core set that needs no row, or gets none.
struct OperatorWithoutRow {
  std::string_view name;  ///< without "aten::"
  std::string_view why;
};
std::span<const OperatorWithoutRow> operators_without_row();

/// True if the call draws random numbers: by its row, and for dropout by its probability.
bool draws_random_numbers(const Node& node, const OperatorTraits* traits);

}  // namespace pfeife
