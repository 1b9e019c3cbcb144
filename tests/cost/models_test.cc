// What the planner reads from the shipped models: saved bytes, groups, operators, conservation of
// the profile.
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/cost/layers/grouping.h"
#include "planner/cost/operators/operators.h"
#include "planner/cost/operators/roofline.h"
#include "planner/cost/operators/work.h"
#include "planner/io/model/pt2_reader.h"

namespace pfeife {
namespace {

const char* const kModels[] = {"amoebanet_d",  "bert_large", "convnext_base",   "densenet121",
                               "gpt2_large",   "llama2_7b",  "llama2_7b_eager", "resnet101",
                               "resnet50",     "sdxl_unet",  "swin_b",          "t5_large",
                               "timm_vit_g14", "tiny_gpt",   "tiny_mlp",        "unet_5_64",
                               "vit_g14",      "vit_g14_40", "vit_g14_eager"};

Graph model(const std::string& name, std::int64_t microbatch) {
  return read_pt2(PFEIFE_SOURCE_DIR "/configs/models/" + name + ".pt2", microbatch);
}

DeviceKind tf32_device() {
  DeviceKind kind;
  kind.name = "test";
  kind.memory_bandwidth = {1e12};
  kind.peak = {{"fp32", {1e13}}, {"tf32", {1e14}}, {"bf16", {2e14}}};
  kind.gemm_efficiency = {{"tf32", {{{Flops{1e9}, 0.5}}}}};
  kind.kernel_overhead = Nanoseconds{5000};
  return kind;
}

Profile tf32_profile(const Graph& graph, Precision precision = Precision::Tf32) {
  return roofline_profile(graph, tf32_device(),
                          {precision, Optimizer::Adam, graph.microbatch_size});
}

double forward_flops(const Graph& graph) {
  const GraphFacts facts(graph, Precision::Fp32);
  const SavedMemory saved = saved_memory(facts, DeviceType::Gpu);
  const KernelList kernels(facts, saved, DeviceType::Gpu);
  double sum = 0;
  for (const NodeId n : nodes_of(graph))
    for (const Kernel& kernel : kernels.at(n))
      if (kernel.pass == Pass::Forward)
        sum += static_cast<double>(kernel.times) * kernel.flops.value;
  return sum;
}

double saved_mib(const Profile& profile) {
  Bytes sum;
  for (const NodeProfile& node : profile.nodes) sum += node.saved;
  for (const SavedStorage& storage : profile.storages) sum += storage.bytes;
  return static_cast<double>(sum.value) / (1024.0 * 1024.0);
}

// Table 4 of the Pfeife paper has 13.2 (SDXL), 15.3 (Llama, eager) and 21.1 GiB (ViT, eager), with
// the allocator's rounding. Published: the read-me of Pfeife's program gives 1860.00 + 1854.48 MiB
// for its 406-node ViT-g/14; the others are independent counts with torch's saved-tensor hooks or
// by the same rules, to 0.1 GiB.
TEST(Models, SavedBytesEqualIndependentCounts) {
  EXPECT_NEAR(saved_mib(tf32_profile(model("timm_vit_g14", 4))), 3710.9, 0.05);
  const auto gib = [](const std::string& name, std::int64_t microbatch) {
    return saved_mib(tf32_profile(model(name, microbatch))) / 1024.0;
  };
  EXPECT_NEAR(gib("sdxl_unet", 1), 12.8, 0.05);
  EXPECT_NEAR(gib("llama2_7b", 1), 10.5, 0.05);
  // 14.545 by our rules: off by a little more than the count was rounded to, and not explained.
  EXPECT_NEAR(gib("llama2_7b_eager", 1), 14.6, 0.06);
  EXPECT_NEAR(gib("vit_g14", 24), 17.4, 0.05);
  EXPECT_NEAR(gib("vit_g14_eager", 24), 20.4, 0.05);
  EXPECT_NEAR(gib("vit_g14_40", 24), 21.7, 0.05);
}

// torchvision's documentation of resnet101: 7.80 G multiply-adds an image of 224 x 224.
TEST(Models, ResNet101MultipliesAsOftenAsPublished) {
  EXPECT_NEAR(forward_flops(model("resnet101", 2)) / 2 / 2e9, 7.80, 0.005);
}

TEST(Models, GroupsAreAsManyAsTheNodesOfTheReferenceSystem) {
  const auto layers = [](const std::string& name) {
    const Graph graph = model(name, 1);
    return layers_from_graph(graph, {tf32_profile(graph)}).size();
  };
  EXPECT_EQ(layers("vit_g14_40"), 406U);
  EXPECT_EQ(layers("vit_g14"), 326U);
  // 1,645 in the paper, with an older library. Each of the two time embeddings' frequency tables
  // would end a layer if it were not local to the stage that needs it.
  EXPECT_EQ(layers("sdxl_unet"), 1403U);
}

TEST(Models, EveryOperatorOfTheShippedModelsIsInTheTable) {
  for (const std::string name : kModels) {
    const Graph graph = model(name, 2);
    for (const Node& node : graph.nodes)
      EXPECT_NE(find_operator(node.op), nullptr) << name << ": " << node.op;
    EXPECT_TRUE(tf32_profile(graph).warnings.empty()) << name;
  }
}

TEST(Models, LayersKeepEveryNanosecondByteAndNodeOfTheProfile) {
  for (const std::string name : kModels)
    for (const Precision precision : {Precision::Fp32, Precision::Bf16Amp}) {
      const Graph graph = model(name, 2);
      const Profile cost = tf32_profile(graph, precision);
      const Layers layers = layers_from_graph(graph, {cost});
      Nanoseconds forward{0}, backward{0}, weight{0};
      Bytes saved, weight_saved, stored, parameters;
      std::size_t nodes = 0;
      std::vector<int> seen(graph.nodes.size(), 0);
      for (const NodeProfile& node : cost.nodes) {
        forward += node.forward, backward += node.backward_input, weight += node.backward_weight;
        saved += node.saved, weight_saved += node.weight_saved;
      }
      for (const Layer& layer : layers.layers) {
        forward -= layer.times[0].forward, backward -= layer.times[0].backward_input;
        weight -= layer.times[0].backward_weight;
        saved -= layer.saved, weight_saved -= layer.weight_saved;
        for (const NodeId id : layer.nodes) ++seen[id.index()];
        nodes += layer.nodes.size();
      }
      for (const SavedStorage& storage : cost.storages) stored += storage.bytes;
      for (const LayerStorage& storage : layers.storages) stored -= storage.bytes;
      for (const Parameter& parameter : graph.parameters) parameters += parameter.type.bytes();
      for (const LayerParameter& parameter : layers.parameters) parameters -= parameter.bytes;
      EXPECT_EQ(forward.count(), 0) << name;
      EXPECT_EQ(backward.count(), 0) << name;
      EXPECT_EQ(weight.count(), 0) << name;
      EXPECT_EQ(saved, Bytes{0});
      EXPECT_EQ(weight_saved, Bytes{0});
      EXPECT_EQ(stored, Bytes{0});
      EXPECT_EQ(parameters, Bytes{0}) << name;
      EXPECT_EQ(nodes, graph.nodes.size());
      EXPECT_EQ(std::ranges::count(seen, 1), std::ssize(graph.nodes)) << name;
      for (const LayerValue& value : layers.values)
        for (const LayerId consumer : value.consumers)
          EXPECT_GT(consumer, value.producer) << name << " " << value.name;
    }
}

TEST(Models, TiedParametersHaveUsersInSeveralLayers) {
  const Graph graph = model("gpt2_large", 1);
  const Layers layers = layers_from_graph(graph, {tf32_profile(graph)});
  std::size_t tied = 0;
  for (const LayerParameter& parameter : layers.parameters) tied += parameter.users.size() > 1;
  EXPECT_EQ(tied, 1U);  // embedding and head
}

// Four of its 16 blocks end with the norm of a shortcut, which is made between the main path's last
// norm and the addition to it: two layers each after which there is no cut. (The last one: what
// follows is the result alone.)
TEST(Models, OnlyAShortcutOfItsOwnForbidsCutsInAResNet) {
  const Graph graph = model("resnet50", 2);
  const Layers layers = layers_from_graph(graph, {tf32_profile(graph)});
  std::vector<std::string> reasons;
  for (const Layer& layer : layers.layers)
    if (!layer.no_cut_after.empty()) reasons.push_back(layer.no_cut_after);
  ASSERT_EQ(reasons.size(), 4u * 2 + 1);
  for (std::size_t i = 0; i + 1 < reasons.size(); ++i)
    EXPECT_NE(reasons[i].find("aten::relu_"), std::string::npos) << reasons[i];
}

// Behind each of its 16 blocks one tensor crosses.
TEST(Models, AResNetIsCutBetweenItsBlocks) {
  const Graph graph = model("resnet50", 2);
  const Layers layers = layers_from_graph(graph, {tf32_profile(graph)});
  int between_blocks = 0;
  for (std::size_t l = 0; l + 1 < layers.size(); ++l) {
    const Layer& layer = layers.layers[l];
    const Node& last = graph.node(layer.nodes.back());
    if (layer.no_cut_after.empty() && last.op == "aten::relu_" &&
        graph.node(layer.nodes[layer.nodes.size() - 2]).op == "aten::add_")
      ++between_blocks;
  }
  EXPECT_EQ(between_blocks, 16);
}

TEST(Models, LabelsAndPromptsAreNotSent) {
  const Graph graph = model("sdxl_unet", 1);
  const Layers layers = layers_from_graph(graph, {tf32_profile(graph)});
  for (const LayerValue& value : layers.values)
    for (const ValueId input : graph.inputs) EXPECT_NE(value.name, graph.value(input).name);
}

// Nothing but the model's own activations crosses a cut: its skips in the U-Net, the members of a
// dense block, the encoder's result and position biases in the decoder, the rest of a block.
TEST(Models, ValuesThatCrossACut) {
  const auto most = [](const std::string& name) {
    const Graph graph = model(name, 2);
    const Layers layers = layers_from_graph(graph, {tf32_profile(graph)});
    std::size_t crossing = 0;
    for (std::size_t cut = 0; cut + 1 < layers.size(); ++cut) {
      std::size_t here = 0;
      for (const LayerValue& value : layers.values)
        here += value.producer.index() <= cut && value.consumers.back().index() > cut;
      crossing = std::max(crossing, here);
    }
    return crossing;
  };
  EXPECT_EQ(most("sdxl_unet"), 15U);
  EXPECT_EQ(most("densenet121"), 25U);
  EXPECT_EQ(most("t5_large"), 7U);
  EXPECT_EQ(most("vit_g14"), 4U);
}

TEST(Models, RotaryTablesAndMasksAreRecomputedNotSent) {
  const Graph graph = model("llama2_7b_eager", 1);
  const Layers layers = layers_from_graph(graph, {tf32_profile(graph)});
  std::size_t crossing = 0;  // most values over one cut
  for (std::size_t cut = 0; cut + 1 < layers.size(); ++cut) {
    std::size_t here = 0;
    for (const LayerValue& value : layers.values)
      here += value.producer.index() <= cut && value.consumers.back().index() > cut;
    crossing = std::max(crossing, here);
  }
  for (const LayerValue& value : layers.values) EXPECT_NE(value.name, "where");
  EXPECT_LE(crossing, 6U);
}

TEST(Flops, ForwardFlopsOfTheViTByHand) {
  // Per layer and sample of 257 tokens: 4 products h x h, 2 products h x m, scores and values 2 x
  // 257 x h each.
  const double h = 1408, m = 6144, t = 257, layers = 40;
  const double patches = 2.0 * 256 * h * 3 * 14 * 14, head = 2.0 * h * 10;
  const double expected =
      layers * (4 * 2 * t * h * h + 2 * 2 * t * h * m + 2 * 2 * t * t * h) + patches + head;
  EXPECT_NEAR(forward_flops(model("vit_g14_40", 1)) / expected, 1, 1e-12);
}

}  // namespace
}  // namespace pfeife
