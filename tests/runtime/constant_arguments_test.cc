// Layouts and memory formats, whose numbers in a graph are those of LibTorch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "runtime/model/operators.h"
#include "runtime/model/split_backward.h"
#include "tests/cost/graph_builder.h"
#include "tests/runtime/pipelines.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using testing::dense;
using testing::GraphBuilder;
using testing::model_path;
using testing::tiny_models;

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

// Calls whose arguments have other names than the operator's schema: refused before anything runs.

TEST(ArgumentNames, OfNoSchemaAreRefusedByNodeAndName) {
  for (const std::string& model : tiny_models()) {
    const Graph graph = read_pt2(model_path(model));
    std::set<std::string> tried;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
      for (std::size_t a = 0; a < graph.nodes[n].arguments.size(); ++a) {
        const std::string name = graph.nodes[n].arguments[a].name;
        if (!tried.insert(graph.nodes[n].op + " " + name).second) continue;
        SCOPED_TRACE(graph.nodes[n].op + " " + name);
        Graph renamed = graph;
        renamed.nodes[n].arguments[a].name += "_";
        EXPECT_THAT(message_of([&] { effects_of(renamed); }),
                    ::testing::AllOf(::testing::HasSubstr("'" + renamed.nodes[n].name + "'"),
                                     ::testing::HasSubstr("argument '" + name)));
        deferred_kind(renamed, renamed.nodes[n]);
        EXPECT_EQ(synthetic_inputs(renamed, 1, MicrobatchId{0}, {}).size(), graph.inputs.size());
      }
  }
}

}  // namespace
}  // namespace pfeife
