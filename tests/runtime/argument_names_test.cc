// Calls whose arguments have other names than the operator's schema: refused before anything runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "runtime/model/operators.h"
#include "runtime/model/split_backward.h"
#include "tests/runtime/pipelines.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using testing::model_path;
using testing::tiny_models;

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
