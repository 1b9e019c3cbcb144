// Which of the shipped models can be cut into slices of their sequence, and why the others cannot.
#include "planner/cost/layers/sequence_of_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cost/layers/grouping.h"
#include "planner/cost/operators/roofline.h"
#include "planner/io/model/pt2_reader.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

Layers layers_of_model(const std::string& name) {
  const Graph graph = read_pt2(PFEIFE_SOURCE_DIR "/configs/models/" + name + ".pt2");
  const FactsByPrecision facts(graph);
  DeviceKind kind;
  kind.name = "card";
  kind.peak["fp32"] = FlopsPerSecond{1e14};
  kind.memory_bandwidth = BytesPerSecond{1e12};
  const std::vector<Profile> profiles{
      roofline_profile(facts, kind, {Precision::Fp32, Optimizer::Adam, graph.microbatch_size}, {})};
  Layers layers = layers_from_graph(facts, profiles, Grouping::Growth);
  add_sequence(facts.at(Precision::Fp32), profiles.front(), layers);
  return layers;
}

// Four blocks of hidden size 16 over 12 tokens, batch 2: keys and values are 2 x 12 x 16 floats
// each.
TEST(SequenceOfGraph, OfATinyGptIsItsTokensWithTheKeysAndValuesOfEachBlock) {
  const Layers layers = layers_of_model("tiny_gpt");
  ASSERT_TRUE(layers.sequence.has_value()) << layers.whole_because;
  EXPECT_EQ(layers.sequence->tokens, 12);
  Bytes keys{0};
  std::size_t with_attention = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    keys += layers.sequence->keys_values[l];
    with_attention += layers.sequence->attention[l] > 0;
    EXPECT_LE(layers.sequence->attention[l], 1);
  }
  EXPECT_EQ(keys, Bytes{4 * 2 * 2 * 12 * 16 * 4});
  EXPECT_EQ(with_attention, 4U);
}

TEST(SequenceOfGraph, ModelsThatAreNotCausalOrMixPositionsAreRefusedByTheOperatorThatDoes) {
  EXPECT_TRUE(layers_of_model("gpt2_large").sequence.has_value());
  EXPECT_TRUE(layers_of_model("llama2_7b").sequence.has_value());
  EXPECT_THAT(layers_of_model("bert_large").whole_because, HasSubstr("is not causal"));
  EXPECT_THAT(layers_of_model("tiny_convnet").whole_because, HasSubstr("no attention is seen"));
  EXPECT_THAT(layers_of_model("llama2_7b_eager").whole_because, HasSubstr("no attention is seen"));
  EXPECT_THAT(layers_of_model("vit_g14").whole_because, HasSubstr("is not causal"));
  EXPECT_THAT(layers_of_model("sdxl_unet").whole_because, HasSubstr("is not causal"));
}

}  // namespace
}  // namespace pfeife
