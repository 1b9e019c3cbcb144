// Einsums and grouped products whose weight gradient waits, beside torch's own backward.
#include <gtest/gtest.h>

#include "runtime/model/operators.h"
#include "runtime/model/split_backward.h"
#include "tests/cost/graph_builder.h"

namespace pfeife {
namespace {

using at::Tensor;
using testing::dense;
using testing::GraphBuilder;
using testing::Sizes;

struct Case {
  std::string op, equation;
  Sizes left, right, result;
  bool parameter_first = false;
};

Graph graph_of(const Case& c) {
  GraphBuilder g;
  const auto add = [&](const Sizes& sizes, bool parameter) {
    return parameter ? g.parameter("w", dense(sizes)) : g.input("x", dense(sizes));
  };
  const ValueId left = add(c.left, c.parameter_first), right = add(c.right, !c.parameter_first);
  if (c.op == "einsum")
    g.call("y", c.op, {{"equation", c.equation}, {"tensors", std::vector<ValueId>{left, right}}},
           dense(c.result));
  else
    g.call("y", c.op, {{"self", left}, {c.op == "bmm" ? "mat2" : "other", right}}, dense(c.result));
  return g.build();
}

torch::jit::Stack stack_of(const Case& c, const Tensor& left, const Tensor& right) {
  if (c.op != "einsum") return {left, right};
  return {c.equation, c10::List<Tensor>({left, right}), c10::IValue()};
}

// The received activation is a leaf as the parameter is: the one gets its gradient in I, the other
// in W alone.
TEST(SplitProducts, GiveTorchsGradientsOneInIAndOneInW) {
  for (const Case& c : {Case{"einsum", "bti,hio->bhto", {2, 3, 5}, {4, 5, 6}, {2, 4, 3, 6}},
                        Case{"einsum", "oi,ti->to", {6, 5}, {3, 5}, {3, 6}, true},
                        Case{"einsum", "eti,eio->eto", {2, 3, 5}, {2, 5, 6}, {2, 3, 6}},
                        Case{"bmm", "", {2, 3, 5}, {2, 5, 6}, {2, 3, 6}},
                        Case{"matmul", "", {2, 3, 5}, {2, 5, 6}, {2, 3, 6}}}) {
    SCOPED_TRACE(c.op + " " + c.equation);
    const Graph graph = graph_of(c);
    const auto how = deferred_kind(graph, graph.nodes.back());
    ASSERT_TRUE(how.has_value());
    const auto options = at::TensorOptions().dtype(at::kDouble);
    const Tensor left = at::rand(c.left, options).set_requires_grad(true),
                 right = at::rand(c.right, options).set_requires_grad(true),
                 gradient = at::rand(c.result, options);
    const Tensor expected =
        c.op == "einsum" ? at::einsum(c.equation, {left, right}) : at::matmul(left, right);
    const auto wanted = torch::autograd::grad({expected}, {left, right}, {gradient});
    for (const bool waits : {true, false}) {
      const auto queue =
          waits ? c10::make_intrusive<WeightQueue>() : c10::intrusive_ptr<WeightQueue>();
      torch::jit::Stack stack = stack_of(c, left, right);
      call_deferred(*how, NodeId{0}, stack, queue);
      EXPECT_TRUE(at::allclose(stack[0].toTensor(), expected));
      torch::autograd::backward({stack[0].toTensor()}, {gradient});
      const Tensor x = c.parameter_first ? right : left, w = c.parameter_first ? left : right;
      EXPECT_TRUE(at::allclose(x.grad(), wanted[c.parameter_first ? 1 : 0]));
      EXPECT_EQ(w.grad().defined(), !waits);
      if (waits) queue->run();
      ASSERT_TRUE(w.grad().defined());
      EXPECT_TRUE(at::allclose(w.grad(), wanted[c.parameter_first ? 0 : 1]));
      x.mutable_grad() = Tensor(), w.mutable_grad() = Tensor();
    }
  }
}

TEST(SplitProducts, LeaveAloneWhatHasNoGradientsByEinsum) {
  for (const Case& c : {Case{"einsum", "bii,io->bo", {2, 3, 3}, {3, 5}, {2, 5}},
                        Case{"einsum", "bij,io->bo", {2, 3, 4}, {3, 5}, {2, 5}},
                        Case{"bmm", "", {2, 3, 5}, {1, 5, 6}, {2, 3, 6}}}) {
    const Graph graph = graph_of(c);
    EXPECT_FALSE(deferred_kind(graph, graph.nodes.back())) << c.op << ' ' << c.equation;
  }
}

// 6 rows of 4 numbers for 3 experts, whose matrices are as torch has them, [8, 4], transposed.
TEST(SplitProducts, OfGroupsReachTheParameterBehindAView) {
  for (const bool made_here : {true, false}) {
    GraphBuilder g;
    const ValueId x = g.input("x", dense({6, 4})), ends = g.input("ends", dense({3}, DType::Int32));
    const ValueId w = g.parameter("w", dense({3, 8, 4}));
    const ValueId turned = g.call("turned", "transpose", {{"self", w}}, dense({3, 4, 8}));
    g.call("y", "_grouped_mm", {{"self", x}, {"mat2", turned}, {"offs", ends}}, dense({6, 8}));
    const Graph graph = g.build();
    const auto how = deferred_kind(graph, graph.nodes.back());
    ASSERT_TRUE(how.has_value());
    const Tensor rows = at::rand({8, 4}).set_requires_grad(true);
    const Tensor weight = at::rand({3, 8, 4}).set_requires_grad(true);
    const Tensor groups = at::tensor({2, 4, 8}, at::kInt);
    const Tensor gradient = at::rand({8, 8});
    const auto wanted = torch::autograd::grad(
        {at::_grouped_mm(rows, weight.transpose(1, 2), groups)}, {rows, weight}, {gradient});
    // From another stage or block: a leaf, whose gradient that one must get from I.
    const Tensor seen = made_here ? weight.transpose(1, 2)
                                  : weight.detach().transpose(1, 2).set_requires_grad(true);
    const auto queue = c10::make_intrusive<WeightQueue>();
    torch::jit::Stack stack{rows, seen, groups, c10::IValue(), c10::IValue()};
    call_deferred(*how, NodeId{1}, stack, queue);
    torch::autograd::backward({stack[0].toTensor()}, {gradient});
    EXPECT_TRUE(at::allclose(rows.grad(), wanted[0]));
    EXPECT_EQ(queue->pending.size(), made_here ? 1u : 0u);
    EXPECT_FALSE(weight.grad().defined());
    queue->run();
    if (made_here)
      EXPECT_TRUE(at::allclose(weight.grad(), wanted[1]));
    else
      EXPECT_TRUE(at::allclose(seen.grad().transpose(1, 2), wanted[1]));
  }
}

}  // namespace
}  // namespace pfeife
