// Memory that comes and goes while single nodes run, by hand.
#include "planner/cost/operators/liveness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cost/graph_builder.h"

namespace pfeife {
namespace {

using testing::dense;
using ::testing::ElementsAre;
using testing::GraphBuilder;
using testing::Start;

// x -> neg a -> neg b -> gelu y. Forward, nobody keeps x and a (128 B each), gelu keeps b. While b
// is computed: a, and the gradients of a and b. p's gradient is held while x's backward runs.
TEST(Temporary, IsWhatLivesWhileANodeRuns) {
  Start g(dense({4, 8}));
  const ValueId a = g.call("a", "neg", {{"self", g.x}}, dense({4, 8}));
  const ValueId b = g.call("b", "neg", {{"self", a}}, dense({4, 8}));
  g.call("y", "gelu", {{"self", b}}, dense({4, 8}));
  const Graph graph = g.build();
  const GraphFacts facts(graph, Precision::Fp32);
  const SavedMemory saved = saved_memory(facts, DeviceType::Gpu);
  // add: gradient of x (handed on) and of p. neg: gradients of x and a, or x and a themselves.
  const PassBytes same{Bytes{256}, Bytes{256}, Bytes{256}, Bytes{0}};
  const auto less = [](std::int64_t forward) {
    return PassBytes{Bytes{forward}, Bytes{256}, Bytes{256}, Bytes{0}};
  };
  EXPECT_THAT(temporary_bytes(facts, saved), ElementsAre(less(128), same, less(128), less(128)));
}

// A residual stream: s = x + tanh(x), of which tanh keeps its result. The gradient of the sum
// serves tanh's result as well, so that two tensors, x's and the sum's, live on the way back, not
// three.
TEST(Temporary, AGradientHandedOnIsNoSecondTensor) {
  Start g(dense({4, 8}));
  const ValueId f = g.call("f", "tanh", {{"self", g.x}}, dense({4, 8}));
  g.call("s", "add", {{"self", g.x}, {"other", f}}, dense({4, 8}));
  const Graph graph = g.build();
  const GraphFacts facts(graph, Precision::Fp32);
  const SavedMemory saved = saved_memory(facts, DeviceType::Gpu);
  const auto backward = [](std::int64_t forward) {
    return PassBytes{Bytes{forward}, Bytes{256}, Bytes{256}, Bytes{0}};
  };
  EXPECT_THAT(temporary_bytes(facts, saved),
              ElementsAre(backward(128), backward(128), backward(256)));
}

TEST(GrowsMemory, ByWhatIsAllocatedKeptAndFreed) {
  GraphBuilder g;
  const ValueId data = g.input("data", dense({4, 8})), w = g.parameter("w", dense({8, 8}));
  const ValueId y = g.call("y", "linear", {{"input", data}, {"weight", w}}, dense({4, 8}));
  const ValueId n = g.call("n", "neg", {{"self", y}}, dense({4, 8}));   // y dies
  const ValueId t = g.call("t", "tanh", {{"self", n}}, dense({4, 8}));  // n dies, t is kept
  const ValueId m = g.call("m", "gelu", {{"self", t}}, dense({4, 8}));  // t is kept anyway
  const ValueId v = g.call("v", "view", {{"self", m}}, dense({32}));
  g.call("s", "sum", {{"self", v}}, dense({}));
  const Graph graph = g.build();
  const GraphFacts facts(graph, Precision::Fp32);
  const SavedMemory saved = saved_memory(facts, DeviceType::Gpu);
  const std::vector<bool> none(6, false);
  EXPECT_THAT(grows_memory(facts, saved, none),
              ElementsAre(true, false, false, true, false, false));
}

}  // namespace
}  // namespace pfeife
