#include "planner/cost/operators.h"

#include <algorithm>
#include <array>

#include "planner/ir/arguments.h"

namespace pfeife {
namespace {

using M = Memory;
using W = OperatorWork;
using K = Keeps;
using G = Gradient;
using A = Autocast;
using R = Randomness;
constexpr bool kMetadata = true;

// Sorted by name.
constexpr std::array kOperators = std::to_array<OperatorTraits>({
    {"abs", M::Fresh, W::Stream, K::Input, G::Uses, A::First},
    {"adaptive_avg_pool2d", M::Fresh, W::Stream, K::InputUnlessMean, G::Copies, A::First},
    {"add", M::Fresh, W::Stream, K::Nothing, G::Passes, A::Widest},
    {"add_", M::InPlace, W::Stream, K::Nothing, G::Passes, A::First},
    {"addmm", M::Fresh, W::Product, K::ProductOperands, G::None, A::Narrow},
    {"alias", M::View, W::None, K::Nothing, G::Passes, A::First},
    {"arange", M::Fresh, W::Create, K::Nothing, G::None, A::First},
    {"avg_pool2d", M::Fresh, W::Stream, K::Input, G::Copies, A::First},
    {"batch_norm", M::Fresh, W::ChannelNorm, K::Statistics, G::None, A::First},
    {"bernoulli_", M::InPlace, W::Create, K::Nothing, G::None, A::First, R::Always},
    {"bmm", M::Fresh, W::Product, K::ProductOperands, G::None, A::Narrow},
    {"broadcast_tensors", M::View, W::None, K::Nothing, G::Passes, A::First},
    {"cat", M::Fresh, W::Stream, K::Nothing, G::Passes, A::Widest},
    {"chunk", M::View, W::None, K::Nothing, G::Copies, A::First},
    {"clamp", M::Fresh, W::Stream, K::Input, G::Uses, A::First},
    {"clone", M::Fresh, W::Stream, K::Nothing, G::Passes, A::First},
    {"concat", M::Fresh, W::Stream, K::Nothing, G::Passes, A::Widest},
    {"contiguous", M::ViewIfSame, W::Stream, K::Nothing, G::Passes, A::First},
    {"conv1d", M::Fresh, W::Convolution, K::ProductOperands, G::None, A::Narrow},
    {"conv2d", M::Fresh, W::Convolution, K::ProductOperands, G::None, A::Narrow},
    {"conv3d", M::Fresh, W::Convolution, K::ProductOperands, G::None, A::Narrow},
    {"copy_", M::InPlace, W::Stream, K::Nothing, G::Passes, A::First},
    {"cos", M::Fresh, W::Stream, K::Input, G::Uses, A::First},
    {"cross_entropy_loss", M::Fresh, W::Stream, K::LogSoftmax, G::Uses, A::Wide},
    {"detach", M::View, W::None, K::Nothing, G::None, A::First},
    {"div", M::Fresh, W::Stream, K::Divisor, G::Uses, A::Widest},
    {"div_", M::InPlace, W::Stream, K::Divisor, G::Uses, A::First},
    {"dropout", M::ViewIfIdle, W::Stream, K::Mask, G::Uses, A::First, R::Dropout},
    {"embedding", M::Fresh, W::Lookup, K::Indices, G::None, A::First},
    {"empty", M::Fresh, W::None, K::Nothing, G::None, A::First},
    {"empty_like", M::Fresh, W::None, K::Nothing, G::None, A::First, R::Never, kMetadata},
    {"eq", M::Fresh, W::Stream, K::Nothing, G::None, A::First},
    {"exp", M::Fresh, W::Stream, K::Output, G::Uses, A::Wide},
    {"expand", M::View, W::None, K::Nothing, G::Passes, A::First},
    {"expand_as", M::View, W::None, K::Nothing, G::Passes, A::First},
    {"fill_", M::InPlace, W::Stream, K::Nothing, G::None, A::First},
    {"flatten", M::ViewIfFits, W::Stream, K::Nothing, G::Passes, A::First},
    {"full", M::Fresh, W::Create, K::Nothing, G::None, A::First},
    {"full_like", M::Fresh, W::Create, K::Nothing, G::None, A::First, R::Never, kMetadata},
    {"gather", M::Fresh, W::Lookup, K::BothInputs, G::None, A::First},
    {"ge", M::Fresh, W::Stream, K::Nothing, G::None, A::First},
    {"gelu", M::Fresh, W::Stream, K::Input, G::Uses, A::First},
    {"group_norm", M::Fresh, W::ChannelNorm, K::Statistics, G::None, A::Wide},
    {"gt", M::Fresh, W::Stream, K::Nothing, G::None, A::First},
    {"hardtanh", M::Fresh, W::Stream, K::Input, G::Uses, A::First},
    {"hardtanh_", M::InPlace, W::Stream, K::Output, G::Uses, A::First},
    {"index", M::Fresh, W::Lookup, K::Indices, G::None, A::First},
    {"layer_norm", M::Fresh, W::LayerNorm, K::Statistics, G::None, A::Wide},
    {"le", M::Fresh, W::Stream, K::Nothing, G::None, A::First},
    {"leaky_relu", M::Fresh, W::Stream, K::Input, G::Uses, A::First},
    {"leaky_relu_", M::InPlace, W::Stream, K::Output, G::Uses, A::First},
    {"lift_fresh_copy", M::Fresh, W::Stream, K::Nothing, G::None, A::First},
    {"linear", M::Fresh, W::Product, K::ProductOperands, G::None, A::Narrow},
    {"log", M::Fresh, W::Stream, K::Input, G::Uses, A::Wide},
    {"log_softmax", M::Fresh, W::Stream, K::Output, G::Uses, A::Wide},
    {"lt", M::Fresh, W::Stream, K::Nothing, G::None, A::First},
    {"masked_fill", M::Fresh, W::Stream, K::Condition, G::Uses, A::First},
    {"masked_fill_", M::InPlace, W::Stream, K::Condition, G::Uses, A::First},
    {"matmul", M::Fresh, W::Product, K::ProductOperands, G::None, A::Narrow},
    {"max_pool2d", M::Fresh, W::Stream, K::InputAndIndices, G::Uses, A::First},
    {"mean", M::Fresh, W::Stream, K::Nothing, G::Copies, A::First},
    {"min", M::Fresh, W::Stream, K::BothInputs, G::Uses, A::Widest},
    {"mm", M::Fresh, W::Product, K::ProductOperands, G::None, A::Narrow},
    {"mse_loss", M::Fresh, W::Stream, K::BothInputs, G::Uses, A::Wide},
    {"mul", M::Fresh, W::Stream, K::OtherOperand, G::Uses, A::Widest},
    {"mul_", M::InPlace, W::Stream, K::OtherOperand, G::Uses, A::First},
    {"narrow", M::View, W::None, K::Nothing, G::Fills, A::First},
    {"ne", M::Fresh, W::Stream, K::Nothing, G::None, A::First},
    {"neg", M::Fresh, W::Stream, K::Nothing, G::Copies, A::First},
    {"new_empty", M::Fresh, W::None, K::Nothing, G::None, A::First, R::Never, kMetadata},
    {"new_full", M::Fresh, W::Create, K::Nothing, G::None, A::First, R::Never, kMetadata},
    {"new_ones", M::Fresh, W::Create, K::Nothing, G::None, A::First, R::Never, kMetadata},
    {"new_zeros", M::Fresh, W::Create, K::Nothing, G::None, A::First, R::Never, kMetadata},
    {"ones", M::Fresh, W::Create, K::Nothing, G::None, A::First},
    {"ones_like", M::Fresh, W::Create, K::Nothing, G::None, A::First, R::Never, kMetadata},
    {"pad", M::Fresh, W::Stream, K::Nothing, G::Copies, A::First},
    {"permute", M::View, W::None, K::Nothing, G::Passes, A::First},
    {"pow", M::Fresh, W::Stream, K::Input, G::Uses, A::Wide},
    {"relu", M::Fresh, W::Stream, K::Output, G::Uses, A::First},
    {"relu_", M::InPlace, W::Stream, K::Output, G::Uses, A::First},
    {"reshape", M::ViewIfFits, W::Stream, K::Nothing, G::Passes, A::First},
    {"roll", M::Fresh, W::Stream, K::Nothing, G::Copies, A::First},
    {"rsqrt", M::Fresh, W::Stream, K::Output, G::Uses, A::Wide},
    {"rsub", M::Fresh, W::Stream, K::Nothing, G::Copies, A::Widest},
    {"scaled_dot_product_attention", M::Fresh, W::Attention, K::Attention, G::None, A::Narrow,
     R::Dropout},
    {"select", M::View, W::None, K::Nothing, G::Fills, A::First},
    {"sigmoid", M::Fresh, W::Stream, K::Output, G::Uses, A::First},
    {"silu", M::Fresh, W::Stream, K::Input, G::Uses, A::First},
    {"sin", M::Fresh, W::Stream, K::Input, G::Uses, A::First},
    {"slice", M::View, W::None, K::Nothing, G::Fills, A::First},
    {"softmax", M::Fresh, W::Stream, K::Output, G::Uses, A::Wide},
    {"split", M::View, W::None, K::Nothing, G::Copies, A::First},
    {"split_with_sizes", M::View, W::None, K::Nothing, G::Copies, A::First},
    {"sqrt", M::Fresh, W::Stream, K::Output, G::Uses, A::First},
    {"squeeze", M::View, W::None, K::Nothing, G::Passes, A::First},
    {"stack", M::Fresh, W::Stream, K::Nothing, G::Passes, A::Widest},
    {"sub", M::Fresh, W::Stream, K::Nothing, G::Passes, A::Widest},
    {"sum", M::Fresh, W::Stream, K::Nothing, G::Passes, A::Wide},
    {"t", M::View, W::None, K::Nothing, G::Passes, A::First},
    {"tanh", M::Fresh, W::Stream, K::Output, G::Uses, A::First},
    {"to", M::ViewIfSame, W::Stream, K::Nothing, G::Copies, A::First},
    {"transpose", M::View, W::None, K::Nothing, G::Passes, A::First},
    {"unbind", M::View, W::None, K::Nothing, G::Copies, A::First},
    {"unflatten", M::View, W::None, K::Nothing, G::Passes, A::First},
    {"unsqueeze", M::View, W::None, K::Nothing, G::Passes, A::First},
    {"upsample_nearest2d", M::Fresh, W::Stream, K::Nothing, G::Copies, A::First},
    {"view", M::View, W::None, K::Nothing, G::Passes, A::First},
    {"view_as", M::View, W::None, K::Nothing, G::Passes, A::First},
    {"where", M::Fresh, W::Stream, K::Condition, G::Uses, A::Widest},
    {"zeros", M::Fresh, W::Create, K::Nothing, G::None, A::First},
    {"zeros_like", M::Fresh, W::Create, K::Nothing, G::None, A::First, R::Never, kMetadata},
});
static_assert(std::ranges::is_sorted(kOperators, {}, &OperatorTraits::name));

}  // namespace

const OperatorTraits* find_operator(const std::string& op) {
  constexpr std::string_view kSpace = "aten::";
  if (!op.starts_with(kSpace)) return nullptr;
  const std::string_view name = std::string_view(op).substr(kSpace.size());
  const auto at = std::ranges::lower_bound(kOperators, name, {}, &OperatorTraits::name);
  return at != kOperators.end() && at->name == name ? &*at : nullptr;
}

std::span<const OperatorTraits> operator_table() { return kOperators; }

bool draws_random_numbers(const Node& node, const OperatorTraits* traits) {
  if (traits == nullptr) return false;
  if (traits->randomness != Randomness::Dropout) return traits->randomness == Randomness::Always;
  if (traits->work == OperatorWork::Attention) return number_argument(node, "dropout_p", 0) > 0;
  return number_argument(node, "p", 0.5) > 0 && flag_argument(node, "train", true);
}

}  // namespace pfeife
