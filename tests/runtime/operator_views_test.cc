// The planner's table of operators against the schemas of LibTorch: which results are views.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "planner/cost/operators/operators.h"
#include "planner/ir/model/gradient_flow.h"
#include "runtime/device/aten.h"

namespace pfeife {
namespace {

/// Views that no archive has: of sparse and nested tensors, of names, of derivatives forwards, and
/// what tracing inserts and takes away again.
constexpr std::array kNoRow{"_autocast_to_full_precision",
                            "_autocast_to_reduced_precision",
                            "_fw_primal",
                            "_indices",
                            "_make_dual",
                            "_nested_get_values",
                            "_nested_view_from_buffer",
                            "_nested_view_from_jagged",
                            "_sparse_broadcast_to",
                            "_test_autograd_multiple_dispatch_view",
                            "_unpack_dual",
                            "_values",
                            "align_to",
                            "ccol_indices",
                            "coalesce",
                            "col_indices",
                            "crow_indices",
                            "indices",
                            "pin_memory",
                            "refine_names",
                            "rename",
                            "row_indices",
                            "slice_inverse",
                            "values"};

bool returns_a_view(const c10::FunctionSchema& schema) {
  bool reads = false;
  for (const c10::Argument& argument : schema.arguments())
    if (const auto* alias = argument.alias_info()) {
      if (alias->isWrite()) return false;
      reads = true;
    }
  const auto is_tensor = [](const c10::Argument& result) {
    return result.alias_info() != nullptr && (result.type()->kind() == c10::TypeKind::TensorType ||
                                              result.type()->kind() == c10::TypeKind::ListType);
  };
  return reads && std::ranges::any_of(schema.returns(), is_tensor);
}

/// Names without "aten::".
std::set<std::string> views_of_libtorch() {
  std::set<std::string> views;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (op && name.name.starts_with("aten::") && returns_a_view(op->schema()))
      views.insert(name.name.substr(6));
  }
  return views;
}

bool needs_a_row(const std::string& view) {
  return std::ranges::find(kNoRow, view) == kNoRow.end();
}

TEST(OperatorTable, EveryViewOfLibTorchHasARowThatSaysSo) {
  const std::set<std::string> views = views_of_libtorch();
  for (const std::string& name : views) {
    if (!needs_a_row(name)) continue;
    const OperatorTraits* row = find_operator("aten::" + name);
    ASSERT_NE(row, nullptr) << name;
    EXPECT_TRUE(row->memory == Memory::View || row->memory == Memory::ViewIfFits ||
                row->memory == Memory::ViewIfSame)
        << name;
  }
  for (const char* name : kNoRow) EXPECT_TRUE(views.contains(name)) << name << " is no view now";
}

// x = zeros, v = a view of x, v.copy_(parameter): x needs a gradient from then on, whatever view.
TEST(GradientFlow, AWriteIntoAnyViewReachesWhatItIsAViewOf) {
  for (const std::string& name : views_of_libtorch()) {
    if (!needs_a_row(name) || name == "detach") continue;
    Graph graph;
    graph.values.resize(4);
    for (Value& value : graph.values) value.type = {DType::Float32, {2, 2}, {2, 1}, 0};
    graph.values[0].producer = NodeId{0};
    graph.values[1].producer = NodeId{1};
    graph.values[2].role = ValueRole::Parameter;
    graph.values[2].requires_grad = true;
    graph.values[3].producer = NodeId{2};
    graph.nodes = {{.name = "x", .op = "aten::zeros", .outputs = {ValueId{0}}},
                   {.name = "v",
                    .op = "aten::" + name,
                    .arguments = {{"self", ValueId{0}}},
                    .outputs = {ValueId{1}}},
                   {.name = "written",
                    .op = "aten::copy_",
                    .arguments = {{"self", ValueId{1}}, {"src", ValueId{2}}},
                    .outputs = {ValueId{3}}}};
    propagate_requires_grad(graph);
    EXPECT_TRUE(graph.values[0].requires_grad) << name;
  }
}

}  // namespace
}  // namespace pfeife
