// The planner's messages are those of the runtime: for any legal cuts of any model that can be
// executed here, both send the same bytes between the same stages, hold the same parameters, and
// reduce the gradients of the same stages together.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "planner/cost/layers/grouping.h"
#include "planner/cost/operators/roofline.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/io/cluster/cluster_reader.h"
#include "tests/runtime/pipelines.h"

namespace pfeife {
namespace {

using testing::model_path;

struct Bytes2 {
  std::int64_t forward = 0, backward = 0;
  friend bool operator==(const Bytes2&, const Bytes2&) = default;
};
void PrintTo(const Bytes2& bytes, std::ostream* out) {
  *out << bytes.forward << " there, " << bytes.backward << " back";
}
using Messages = std::map<std::pair<std::int64_t, std::int64_t>, Bytes2>;

/// Nodes of the graph's order before each cut, as plans name them.
std::vector<NodeId> cut_nodes(const Layers& layers, const Partition& partition) {
  std::vector<NodeId> nodes;
  for (const std::int32_t cut : partition.cuts)
    nodes.push_back(layers.layers[static_cast<std::size_t>(cut)].nodes.back());
  return nodes;
}

Messages planned(const StageCosts& costs) {
  Messages messages;
  for (const StagePair& pair : costs.pairs)
    messages[{pair.from.value, pair.to.value}] = {pair.bytes.value, pair.gradient_bytes.value};
  return messages;
}

Messages executed(const Graph& graph, const GraphSplit& split) {
  Messages messages;
  for (const Crossing& c : split.crossings) {
    Bytes2& message = messages[{c.from.value, c.to.value}];
    message.forward += graph.value(c.value).type.bytes().value;
    if (c.gradient) message.backward += graph.value(c.value).type.bytes().value;
  }
  return messages;
}

/// Stages that share a parameter with a stage of another rank.
std::set<StageId> reducing(const StageGraph& stages) {
  std::set<StageId> found;
  for (const auto& group : stages.tied) found.insert(group.begin(), group.end());
  return found;
}

/// Bytes of parameters that each stage holds, each once a stage.
std::vector<std::int64_t> parameter_bytes(const Graph& graph, const GraphSplit& split) {
  std::vector<std::int64_t> held;
  for (const StageSlice& slice : split.stages) {
    held.push_back(0);
    for (const ParameterId p : slice.parameters)
      held.back() += graph.parameters[p.index()].type.bytes().value;
  }
  return held;
}

class PlannedMessages : public ::testing::TestWithParam<const char*> {};

TEST_P(PlannedMessages, AreThoseThatTheRuntimeSends) {
  const Graph graph = read_pt2(model_path(GetParam()));
  const DeviceKind kind =
      read_cluster(std::filesystem::path(PFEIFE_SOURCE_DIR) / "configs/clusters/laptop.yaml")
          .kinds.front();
  const Training training{Precision::Fp32, Optimizer::Adam, graph.microbatch_size};
  const Layers layers = layers_from_graph(graph, {roofline_profile(graph, kind, training)});
  const auto effects = effects_of(graph);
  std::vector<std::int32_t> legal;
  for (std::int32_t cut = 0; cut + 1 < static_cast<std::int32_t>(layers.size()); ++cut)
    if (layers.layers[static_cast<std::size_t>(cut)].no_cut_after.empty()) legal.push_back(cut);
  ASSERT_FALSE(legal.empty());

  const Cluster two = uniform_cluster(2, kind, BytesPerSecond{1e9}, Nanoseconds{1});

  std::vector<Partition> partitions;
  for (std::size_t i = 0; i < legal.size(); i += 1 + legal.size() / 150)
    partitions.push_back({{legal[i]}});
  std::mt19937_64 random(1);
  for (int i = 0; i < 40; ++i) {
    std::vector<std::int32_t> cuts = legal;
    std::ranges::shuffle(cuts, random);
    cuts.resize(std::min<std::size_t>(cuts.size(), 2 + random() % 5));
    std::ranges::sort(cuts);
    partitions.push_back({cuts});
  }
  for (const Partition& partition : partitions) {
    const StageCosts costs =
        stage_costs(layers, partition, round_robin(partition.stages(), partition.stages()),
                    uniform_cluster(partition.stages(), kind, BytesPerSecond{1e9}, Nanoseconds{1}));
    const GraphSplit split = split_graph(graph, effects, cut_nodes(layers, partition));
    SCOPED_TRACE("cuts after layers " + ::testing::PrintToString(partition.cuts));
    EXPECT_EQ(planned(costs), executed(graph, split));
    // Both say what has to be reduced, for a placement where ranks have several stages, too.
    const Placement folded = round_robin(partition.stages(), 2);
    EXPECT_EQ(reducing(stage_graph(stage_costs(layers, partition, folded, two))),
              reducing(stage_graph(graph, split, folded)));
    const std::vector<std::int64_t> held = parameter_bytes(graph, split);
    for (std::size_t s = 0; s < held.size(); ++s)
      EXPECT_EQ(costs.stages[s].parameters.value, held[s]) << "stage " << s;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PlannedMessages,
                         ::testing::Values("tiny_mlp", "tiny_gpt", "tiny_convnet", "tiny_unet",
                                           "tiny_shared", "gpt_cpu", "gpt2_large", "llama2_7b",
                                           "swin_b", "densenet121", "sdxl_unet", "t5_large"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace pfeife
