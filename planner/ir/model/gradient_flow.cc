#include "planner/ir/model/gradient_flow.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace pfeife {
namespace {

// Operators with floating outputs that depend on no value of their inputs, or hide that they do.
constexpr std::array<std::string_view, 12> kPassNoGradient = {
    "aten::detach",    "aten::detach_",    "aten::zeros_like", "aten::ones_like",
    "aten::full_like", "aten::empty_like", "aten::rand_like",  "aten::randn_like",
    "aten::new_zeros", "aten::new_ones",   "aten::new_full",   "aten::new_empty"};

// Operators of aten whose output may share the storage of their first argument, by LibTorch's
// schemas; a blank around each.
constexpr std::string_view kMayBeViews =
    " _conj _neg_view _reshape_alias adjoint alias as_strided broadcast_to chunk conj contiguous "
    "diagonal dsplit expand expand_as flatten hsplit imag lift_fresh linalg_diagonal mH mT "
    "matrix_H moveaxis movedim narrow numpy_T permute positive ravel real reshape reshape_as "
    "resolve_conj resolve_neg select slice split split_with_sizes squeeze swapaxes swapdims t "
    "tensor_split to transpose type_as unbind unflatten unfold unsqueeze view view_as "
    "view_as_complex view_as_real vsplit ";

bool may_be_view(const std::string& op) {
  return op.starts_with("aten::") &&
         kMayBeViews.find(" " + op.substr(6) + " ") != std::string_view::npos;
}

bool in_place(const Node& node) { return node.op.ends_with('_') && !node.op.ends_with("__"); }

const ValueId* first_argument_tensor(const Node& node) {
  return node.arguments.empty() ? nullptr : std::get_if<ValueId>(&node.arguments.front().value);
}

// Marks what `node` writes into, and what that is a view of.
void mark_written(Graph& graph, const Node& node) {
  const ValueId* written = first_argument_tensor(node);
  while (written != nullptr) {
    Value& value = graph.values[written->index()];
    if (value.role != ValueRole::Intermediate || !is_floating(value.type.dtype)) return;
    if (value.requires_grad) return;  // then so does what it is a view of
    value.requires_grad = true;
    const Node& producer = graph.nodes[value.producer->index()];
    if (!in_place(producer) && !may_be_view(producer.op)) return;
    written = first_argument_tensor(producer);
  }
}

}  // namespace

void propagate_requires_grad(Graph& graph) {
  for (Value& value : graph.values)
    if (value.role == ValueRole::Intermediate) value.requires_grad = false;
  for (const Node& node : graph.nodes) {
    if (std::ranges::find(kPassNoGradient, node.op) != kPassNoGradient.end()) continue;
    const std::vector<ValueId> inputs = inputs_of(node);
    const bool reaches = std::any_of(inputs.begin(), inputs.end(),
                                     [&](ValueId id) { return graph.value(id).requires_grad; });
    if (!reaches) continue;
    for (const ValueId output : node.outputs) {
      Value& value = graph.values[output.index()];
      value.requires_grad = is_floating(value.type.dtype);
    }
    if (in_place(node)) mark_written(graph, node);
  }
}

}  // namespace pfeife
