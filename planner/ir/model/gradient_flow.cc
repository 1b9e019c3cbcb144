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

// Operators whose output may share the storage of their first argument, by LibTorch's schemas.
constexpr std::array<std::string_view, 55> kMayBeViews = {"aten::_conj",
                                                          "aten::_neg_view",
                                                          "aten::_reshape_alias",
                                                          "aten::adjoint",
                                                          "aten::alias",
                                                          "aten::as_strided",
                                                          "aten::broadcast_to",
                                                          "aten::chunk",
                                                          "aten::conj",
                                                          "aten::contiguous",
                                                          "aten::diagonal",
                                                          "aten::dsplit",
                                                          "aten::expand",
                                                          "aten::expand_as",
                                                          "aten::flatten",
                                                          "aten::hsplit",
                                                          "aten::imag",
                                                          "aten::lift_fresh",
                                                          "aten::linalg_diagonal",
                                                          "aten::mH",
                                                          "aten::mT",
                                                          "aten::matrix_H",
                                                          "aten::moveaxis",
                                                          "aten::movedim",
                                                          "aten::narrow",
                                                          "aten::numpy_T",
                                                          "aten::permute",
                                                          "aten::positive",
                                                          "aten::ravel",
                                                          "aten::real",
                                                          "aten::reshape",
                                                          "aten::reshape_as",
                                                          "aten::resolve_conj",
                                                          "aten::resolve_neg",
                                                          "aten::select",
                                                          "aten::slice",
                                                          "aten::split",
                                                          "aten::split_with_sizes",
                                                          "aten::squeeze",
                                                          "aten::swapaxes",
                                                          "aten::swapdims",
                                                          "aten::t",
                                                          "aten::tensor_split",
                                                          "aten::to",
                                                          "aten::transpose",
                                                          "aten::type_as",
                                                          "aten::unbind",
                                                          "aten::unflatten",
                                                          "aten::unfold",
                                                          "aten::unsqueeze",
                                                          "aten::view",
                                                          "aten::view_as",
                                                          "aten::view_as_complex",
                                                          "aten::view_as_real",
                                                          "aten::vsplit"};

template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, const std::string& op) {
  return std::find(names.begin(), names.end(), op) != names.end();
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
    if (!in_place(producer) && !among(kMayBeViews, producer.op)) return;
    written = first_argument_tensor(producer);
  }
}

}  // namespace

void propagate_requires_grad(Graph& graph) {
  for (Value& value : graph.values)
    if (value.role == ValueRole::Intermediate) value.requires_grad = false;
  for (const Node& node : graph.nodes) {
    if (among(kPassNoGradient, node.op)) continue;
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
