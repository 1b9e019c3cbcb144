#include "planner/cost/operators.h"

#include <algorithm>
#include <array>

namespace pfeife {
namespace {

using M = Memory;
using W = Work;
using K = Keeps;

// Sorted by name.
constexpr std::array kOperators = std::to_array<OperatorTraits>({
    {"abs", M::Fresh, W::Stream, K::Input},
    {"adaptive_avg_pool2d", M::Fresh, W::Stream, K::Nothing},
    {"add", M::Fresh, W::Stream, K::Nothing},
    {"add_", M::InPlace, W::Stream, K::Nothing},
    {"addmm", M::Fresh, W::Product, K::ProductOperands},
    {"alias", M::View, W::None, K::Nothing},
    {"arange", M::Fresh, W::Create, K::Nothing},
    {"avg_pool2d", M::Fresh, W::Stream, K::Input},
    {"batch_norm", M::Fresh, W::Norm, K::Statistics},
    {"bernoulli_", M::InPlace, W::Create, K::Nothing, true},
    {"bmm", M::Fresh, W::Product, K::ProductOperands},
    {"broadcast_tensors", M::View, W::None, K::Nothing},
    {"cat", M::Fresh, W::Stream, K::Nothing},
    {"chunk", M::View, W::None, K::Nothing},
    {"clamp", M::Fresh, W::Stream, K::Input},
    {"clone", M::Fresh, W::Stream, K::Nothing},
    {"concat", M::Fresh, W::Stream, K::Nothing},
    {"contiguous", M::ViewIfSame, W::Stream, K::Nothing},
    {"conv1d", M::Fresh, W::Convolution, K::InputAndWeight},
    {"conv2d", M::Fresh, W::Convolution, K::InputAndWeight},
    {"conv3d", M::Fresh, W::Convolution, K::InputAndWeight},
    {"copy_", M::InPlace, W::Stream, K::Nothing},
    {"cos", M::Fresh, W::Stream, K::Input},
    {"cross_entropy_loss", M::Fresh, W::Stream, K::LogSoftmax},
    {"detach", M::View, W::None, K::Nothing},
    {"div", M::Fresh, W::Stream, K::Divisor},
    {"div_", M::InPlace, W::Stream, K::Divisor},
    {"dropout", M::ViewIfIdle, W::Stream, K::Mask, true},
    {"embedding", M::Fresh, W::Lookup, K::Indices},
    {"empty", M::Fresh, W::None, K::Nothing},
    {"eq", M::Fresh, W::Stream, K::Nothing},
    {"exp", M::Fresh, W::Stream, K::Output},
    {"expand", M::View, W::None, K::Nothing},
    {"fill_", M::InPlace, W::Create, K::Nothing},
    {"flatten", M::ViewIfFits, W::Stream, K::Nothing},
    {"full", M::Fresh, W::Create, K::Nothing},
    {"full_like", M::Fresh, W::Create, K::Nothing, false, true},
    {"gather", M::Fresh, W::Stream, K::Indices},
    {"ge", M::Fresh, W::Stream, K::Nothing},
    {"gelu", M::Fresh, W::Stream, K::Input},
    {"group_norm", M::Fresh, W::Norm, K::Statistics},
    {"gt", M::Fresh, W::Stream, K::Nothing},
    {"hardtanh", M::Fresh, W::Stream, K::Input},
    {"hardtanh_", M::InPlace, W::Stream, K::Output},
    {"index", M::Fresh, W::Stream, K::Indices},
    {"layer_norm", M::Fresh, W::Norm, K::Statistics},
    {"le", M::Fresh, W::Stream, K::Nothing},
    {"leaky_relu", M::Fresh, W::Stream, K::Input},
    {"lift_fresh_copy", M::Fresh, W::Stream, K::Nothing},
    {"linear", M::Fresh, W::Product, K::ProductOperands},
    {"log", M::Fresh, W::Stream, K::Input},
    {"log_softmax", M::Fresh, W::Stream, K::Output},
    {"lt", M::Fresh, W::Stream, K::Nothing},
    {"masked_fill", M::Fresh, W::Stream, K::Condition},
    {"masked_fill_", M::InPlace, W::Stream, K::Condition},
    {"matmul", M::Fresh, W::Product, K::ProductOperands},
    {"max_pool2d", M::Fresh, W::Stream, K::InputAndIndices},
    {"mean", M::Fresh, W::Stream, K::Nothing},
    {"min", M::Fresh, W::Stream, K::BothInputs},
    {"mm", M::Fresh, W::Product, K::ProductOperands},
    {"mse_loss", M::Fresh, W::Stream, K::BothInputs},
    {"mul", M::Fresh, W::Stream, K::OtherOperand},
    {"mul_", M::InPlace, W::Stream, K::OtherOperand},
    {"ne", M::Fresh, W::Stream, K::Nothing},
    {"neg", M::Fresh, W::Stream, K::Nothing},
    {"new_ones", M::Fresh, W::Create, K::Nothing, false, true},
    {"new_zeros", M::Fresh, W::Create, K::Nothing, false, true},
    {"ones", M::Fresh, W::Create, K::Nothing},
    {"ones_like", M::Fresh, W::Create, K::Nothing, false, true},
    {"pad", M::Fresh, W::Stream, K::Nothing},
    {"permute", M::View, W::None, K::Nothing},
    {"pow", M::Fresh, W::Stream, K::Input},
    {"relu", M::Fresh, W::Stream, K::Output},
    {"relu_", M::InPlace, W::Stream, K::Output},
    {"reshape", M::ViewIfFits, W::Stream, K::Nothing},
    {"roll", M::Fresh, W::Stream, K::Nothing},
    {"rsqrt", M::Fresh, W::Stream, K::Output},
    {"rsub", M::Fresh, W::Stream, K::Nothing},
    {"scaled_dot_product_attention", M::Fresh, W::Attention, K::Attention, true},
    {"select", M::View, W::None, K::Nothing},
    {"sigmoid", M::Fresh, W::Stream, K::Output},
    {"silu", M::Fresh, W::Stream, K::Input},
    {"silu_", M::InPlace, W::Stream, K::Input},
    {"sin", M::Fresh, W::Stream, K::Input},
    {"slice", M::View, W::None, K::Nothing},
    {"softmax", M::Fresh, W::Stream, K::Output},
    {"split", M::View, W::None, K::Nothing},
    {"split_with_sizes", M::View, W::None, K::Nothing},
    {"sqrt", M::Fresh, W::Stream, K::Output},
    {"squeeze", M::View, W::None, K::Nothing},
    {"stack", M::Fresh, W::Stream, K::Nothing},
    {"sub", M::Fresh, W::Stream, K::Nothing},
    {"sum", M::Fresh, W::Stream, K::Nothing},
    {"t", M::View, W::None, K::Nothing},
    {"tanh", M::Fresh, W::Stream, K::Output},
    {"to", M::ViewIfSame, W::Stream, K::Nothing},
    {"transpose", M::View, W::None, K::Nothing},
    {"unbind", M::View, W::None, K::Nothing},
    {"unflatten", M::View, W::None, K::Nothing},
    {"unsqueeze", M::View, W::None, K::Nothing},
    {"upsample_nearest2d", M::Fresh, W::Stream, K::Nothing},
    {"view", M::View, W::None, K::Nothing},
    {"where", M::Fresh, W::Stream, K::Condition},
    {"zeros", M::Fresh, W::Create, K::Nothing},
    {"zeros_like", M::Fresh, W::Create, K::Nothing, false, true},
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

}  // namespace pfeife
