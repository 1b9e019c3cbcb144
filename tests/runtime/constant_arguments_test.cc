// Layouts and memory formats, whose numbers in a graph are those of LibTorch.
#include <gtest/gtest.h>

#include "runtime/model/operators.h"
#include "tests/cost/graph_builder.h"

namespace pfeife {
namespace {

using testing::dense;
using testing::GraphBuilder;

at::Tensor called(const std::string& op, std::vector<Argument> arguments, const at::Tensor& self) {
  GraphBuilder g;
  arguments.insert(arguments.begin(), {"self", g.input("self", dense({2, 3, 4, 5}))});
  g.call("made", op, std::move(arguments), dense({2, 3, 4, 5}));
  const Graph graph = g.build();
  Call call = compile_call(graph, graph.nodes.front(), {});
  call.stack.at(call.holes.at(0).argument) = self;
  call.op.callBoxed(call.stack);
  return call.stack.at(0).toTensor();
}

TEST(ConstantArguments, MemoryFormatsAreThoseOfTheGraph) {
  const at::Tensor transposed = at::rand({5, 4, 3, 2}).permute({3, 2, 1, 0});
  const auto strides = [&](at::MemoryFormat format) {
    const MemoryFormat code{static_cast<std::int64_t>(format)};
    return called("clone", {{"memory_format", code}}, transposed).strides().vec();
  };
  EXPECT_EQ(strides(at::MemoryFormat::Contiguous), (std::vector<std::int64_t>{60, 20, 5, 1}));
  EXPECT_EQ(strides(at::MemoryFormat::Preserve), transposed.strides().vec());
  EXPECT_EQ(strides(at::MemoryFormat::ChannelsLast), (std::vector<std::int64_t>{60, 1, 15, 3}));
}

TEST(ConstantArguments, DenseLayoutsAreExecuted) {
  const Layout dense_layout{static_cast<std::int64_t>(c10::kStrided)};
  EXPECT_EQ(called("zeros_like", {{"layout", dense_layout}}, at::rand({2, 3, 4, 5})).layout(),
            c10::kStrided);
}

}  // namespace
}  // namespace pfeife
