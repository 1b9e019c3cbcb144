// Calls whose arguments have other names than the operator's schema: an archive may say anything.
#include <gtest/gtest.h>

#include <set>

#include "planner/cost/operators/graph_facts.h"
#include "planner/cost/operators/roofline.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/ir/model/arguments.h"

namespace pfeife {
namespace {

DeviceKind device_of_type(DeviceType type) {
  DeviceKind kind;
  kind.name = "test";
  kind.type = type;
  kind.memory_bandwidth = {1e12};
  kind.peak = {{"fp32", {1e13}}, {"tf32", {1e14}}, {"bf16", {2e14}}};
  kind.gemm_efficiency = {{"fp32", {{{Flops{1e9}, 0.5}}}}, {"bf16", {{{Flops{1e9}, 0.5}}}}};
  return kind;
}

void expect_costs(const Graph& graph) {
  for (const DeviceType type : {DeviceType::Cpu, DeviceType::Gpu})
    for (const Precision precision : {Precision::Fp32, Precision::Bf16Amp}) {
      const Profile profile = roofline_profile(graph, device_of_type(type),
                                               {precision, Optimizer::Adam, graph.microbatch_size});
      ASSERT_EQ(profile.nodes.size(), graph.nodes.size());
      for (const NodeProfile& node : profile.nodes) {
        EXPECT_GE(node.forward.count(), 0);
        EXPECT_GE(node.saved, Bytes{0});
      }
    }
}

// Each argument of each operator, one at a time.
TEST(ArgumentNames, OfNoOperatorAreCharged) {
  std::set<std::string> tried;
  for (const char* name : {"tiny_gpt", "tiny_convnet", "tiny_unet", "timm_vit_g14", "sdxl_unet"}) {
    const Graph graph = read_pt2(std::string(PFEIFE_SOURCE_DIR "/configs/models/") + name + ".pt2");
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
      for (std::size_t a = 0; a < graph.nodes[n].arguments.size(); ++a) {
        const std::string call = graph.nodes[n].op + " " + graph.nodes[n].arguments[a].name;
        if (!tried.insert(call).second) continue;
        SCOPED_TRACE(call);
        Graph renamed = graph;
        renamed.nodes[n].arguments[a].name += "_";
        expect_costs(renamed);
      }
  }
  EXPECT_GT(tried.size(), 60u);
}

TEST(ArgumentNames, OfNoOperandOfAProductMakeAnUnknownOperator) {
  const Graph graph = read_pt2(PFEIFE_SOURCE_DIR "/configs/models/tiny_gpt.pt2");
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].op != "aten::linear") continue;
    Graph renamed = graph;
    for (Argument& argument : renamed.nodes[n].arguments)
      if (argument.name == "input") argument.name = "inputs";
    EXPECT_NE(GraphFacts(graph, Precision::Fp32).traits[n], nullptr);
    EXPECT_EQ(GraphFacts(renamed, Precision::Fp32).traits[n], nullptr);
    return;
  }
  FAIL() << "the model has no linear layer";
}

}  // namespace
}  // namespace pfeife
