// What slices of a sequence need to know of a mesh's layers: keys and values, and where attention
// is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cost/stages/sliced_stage_costs.h"
#include "planner/io/cluster/network_reader.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/mesh/mesh_layers.h"
#include "tests/mesh/configs.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

/// Eight layers on four H100, tp 2 and pp 2.
MeshRun llama() {
  MeshRun run;
  run.architecture = read_architecture(kConfigs / "architectures/llama3_8b.yaml");
  run.architecture.layers = 8, run.architecture.sequence = 4096;
  run.mesh.sizes = {2, 1, 2, 1};
  run.global_batch = 8, run.type = DType::BFloat16;
  return run;
}
Layers layers_of(const MeshRun& run) {
  return mesh_layers(run, read_network(kConfigs / "clusters/h100_sxm_hosts.yaml")).layers;
}

// Llama 3 8B has 8 heads of keys and values of 128 elements, of which tp 2 leaves 4 on a rank, for
// each of 4,096 tokens, in 2 bytes.
TEST(MeshSlices, KeysAndValuesAreThoseOfARank) {
  for (const bool sequence_parallel : {false, true}) {
    MeshRun run = llama();
    run.sequence_parallel = sequence_parallel;
    const Layers layers = layers_of(run);
    ASSERT_TRUE(layers.sequence) << layers.whole_because;
    EXPECT_EQ(layers.sequence->tokens, 4096);
    ASSERT_EQ(layers.sequence->attention.size(), layers.size());
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const bool attends = l > 0 && l + 1 < layers.size() && (l - 1) % 3 == 1;
      EXPECT_EQ(layers.sequence->attention[l] > 0, attends) << l;
      EXPECT_EQ(layers.sequence->keys_values[l],
                Bytes{attends ? 2 * 4 * 128 * 4096 * std::int64_t{2} : 0})
          << l;
    }
  }
}

// Twice the tokens are twice the work of everything but attention, which is four times.
TEST(MeshSlices, AttentionIsWhatGrowsWithTheSquare) {
  MeshRun run = llama();
  run.architecture.sequence = 16384;
  const Layers once = layers_of(run);
  run.architecture.sequence = 32768;
  const Layers twice = layers_of(run);
  const auto forward = [](const Layers& layers, std::size_t l) {
    return seconds(layers.layers[l].times.front().forward);
  };
  const double share = once.sequence->attention[2];
  EXPECT_NEAR(forward(twice, 2) / forward(once, 2), 4 * share + 2 * (1 - share), 0.15);
}

TEST(MeshSlices, WhatDividesOrPassesTheSequenceOtherwiseSaysSo) {
  const auto why = [](const MeshRun& run) { return not_sliced_because(layers_of(run), 2); };
  EXPECT_EQ(why(llama()), "");
  MeshRun run = llama();
  run.mesh.sizes = {1, 2, 2, 1};
  EXPECT_THAT(why(run), HasSubstr("cp 1"));
  run = llama();
  run.mesh.sizes = {1, 1, 2, 2}, run.zero = 3;
  EXPECT_THAT(why(run), HasSubstr("zero 2 or less"));
  run = llama();
  run.architecture.attention = AttentionKind::Plain;
  EXPECT_THAT(why(run), HasSubstr("attention: fused"));
  run = llama();
  run.architecture.window = 1024;
  EXPECT_THAT(why(run), HasSubstr("attends to a part"));
  run.architecture.window = 4096;
  EXPECT_EQ(why(run), "");
}

}  // namespace
}  // namespace pfeife
