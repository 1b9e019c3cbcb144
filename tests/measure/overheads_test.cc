// What a profile says of stages reaches the costs that every engine and the search read.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "planner/cost/stages/stage_costs.h"
#include "planner/inputs/read_layers.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/model/profile_file.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/ir/machine/cluster.h"

namespace pfeife {
namespace {

constexpr Nanoseconds us(std::int64_t count) { return Nanoseconds{1000 * count}; }

// By hand: 30 + 50 + 4 us a microbatch and stage are 42 us for F and 42 us for B or I, besides the
// 7 us that the cluster's file gives each.
TEST(StageOverheads, LengthenFAndBOfEveryStageByHalfOfTheirSum) {
  const std::filesystem::path model = PFEIFE_SOURCE_DIR "/configs/models/tiny_mlp.pt2";
  const Graph graph = read_pt2(model);
  Profile profile;
  profile.graph_digest = graph.digest;
  profile.device_kind = "core";
  profile.training = {Precision::Fp32, Optimizer::Adam, graph.microbatch_size};
  profile.source = FigureSource::Measured;
  profile.nodes.assign(graph.nodes.size(), NodeProfile{us(1), us(2), us(3)});
  profile.parameters.resize(graph.parameters.size());
  const auto file = std::filesystem::temp_directory_path() /
                    ("pfeife_overheads_" + std::to_string(::getpid()) + ".yaml");
  const Cluster cluster = uniform_cluster(
      2, {.name = "core", .type = DeviceType::Cpu, .memory = 4 * kGiB, .stage_overhead = us(7)},
      {1e9}, us(5));
  const ModelFiles files{.model = model, .profile = file};
  const auto costs = [&](const std::optional<StageOverheads>& overheads) {
    profile.stage_overheads = overheads;
    write_file(file, profile_text(profile, graph));
    const Layers layers = read_layers(files, cluster);
    std::int32_t cut = 0;
    while (!layers.layers[static_cast<std::size_t>(cut)].no_cut_after.empty()) ++cut;
    return stage_costs(layers, Partition{{cut}}, round_robin(2, 2),
                       with_measured_overheads(cluster, files))
        .stages;
  };
  const auto without = costs(std::nullopt), with = costs(StageOverheads{us(30), us(50), us(4)});
  std::filesystem::remove(file);
  Nanoseconds nodes{0};
  for (std::size_t s = 0; s < 2; ++s) {
    nodes += without[s].forward - us(7);
    EXPECT_EQ(with[s].forward, without[s].forward + us(42));
    EXPECT_EQ(with[s].backward_input, without[s].backward_input + us(42));
    EXPECT_EQ(with[s].backward_weight, without[s].backward_weight);
  }
  EXPECT_EQ(nodes, us(static_cast<std::int64_t>(graph.nodes.size())));
}

}  // namespace
}  // namespace pfeife
