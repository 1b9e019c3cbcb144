// What tensor parallelism reduces in backward, beside weight gradients.
#include <gtest/gtest.h>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/mesh/mesh_layers.h"
#include "tests/mesh/configs.h"

namespace pfeife {
namespace {

MeshRun tensor_parallel(bool sequence_parallel) {
  MeshRun run;
  run.architecture = read_architecture(kConfigs / "architectures/gpt_22b.yaml");
  run.architecture.layers = 3;
  run.mesh.sizes = {8, 1, 1, 1};
  run.microbatch_size = 4;
  run.sequence_parallel = sequence_parallel;
  return run;
}

// The piece before attention: its only product is that of query, key and value, whose weight
// gradient hides what is reduced of the gradient of its input, or what of it lasts no longer. In
// the piece behind attention the first product of the feed-forward layer does likewise.
TEST(InputGradients, AreReducedBesideWeightGradients) {
  for (const bool sequence_parallel : {false, true})
    for (const double port : {230e9, 10e9}) {
      Network network = read_network(kConfigs / "clusters/a100_sxm4_80gb_hosts.yaml");
      network.all_reduce.clear(), network.reduce_scatter.clear(), network.all_gather.clear();
      network.levels.front().bandwidth = {port};
      MeshRun run = tensor_parallel(sequence_parallel);
      const MeshLayers exposed = rank_layers(run, network);
      run.overlap_input_gradients = true;
      const MeshLayers hidden = rank_layers(run, network);
      const auto before = static_cast<std::size_t>(exposed.first[1]), after = before + 2;
      const auto backward = [](const MeshLayers& made, std::size_t l) {
        return made.layers.layers[l].times.front().backward_input;
      };
      const Bytes whole{std::int64_t{2048} * 4 * 6144 * 2};
      const Nanoseconds reduced = collective_time(
          sequence_parallel ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce, whole,
          {{8}}, network);
      const Nanoseconds weights = exposed.layers.layers[before].times.front().backward_weight;
      EXPECT_EQ(backward(exposed, before) - backward(hidden, before), std::min(reduced, weights));
      EXPECT_EQ(
          exposed.layers.collectives[before].backward - hidden.layers.collectives[before].backward,
          std::min(reduced, weights));
      EXPECT_EQ(weights < reduced, port < 1e11);
      const Nanoseconds gained = backward(exposed, after) - backward(hidden, after);
      EXPECT_GT(gained, Nanoseconds{0});
      EXPECT_LE(gained, reduced);
      // Forward and what the first and the last piece do are as before.
      for (std::size_t l = 0; l < exposed.layers.size(); ++l)
        EXPECT_EQ(exposed.layers.layers[l].times.front().forward,
                  hidden.layers.layers[l].times.front().forward);
    }
}

}  // namespace
}  // namespace pfeife
