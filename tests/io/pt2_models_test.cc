#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "planner/io/files/digest.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

// What a script over the archives' JSON, sharing no code with the reader, finds: nodes as exported
// (torch 2.11) and how many of them only compute open sizes, parameters in millions to 0.1, tensors
// that nodes make, their bytes (views included) for microbatches of 1, 2 and 4, and how many of
// them receive a gradient.
struct Facts {
  const char* model;
  std::size_t serialized_nodes, size_nodes;
  double million_parameters;
  std::int64_t results;
  std::int64_t bytes[3];
  std::int64_t with_gradient;
};
constexpr Facts kModels[] = {
    {"bert_large", 595, 1, 335.2, 594, {1655959556, 3309809668, 6617509892}, 589},
    {"convnext_base", 488, 1, 88.6, 487, {313323848, 626647692, 1253295380}, 382},
    {"densenet121", 553, 0, 8.0, 553, {196652908, 393304844, 786608716}, 432},
    {"gpt2_large", 1391, 1, 774.0, 1462, {7596423180, 15187591188, 30369927204}, 1452},
    {"llama2_7b", 1731, 1, 6738.4, 1730, {26721485068, 53405446420, 106773369124}, 1646},
    {"llama2_7b_eager", 1977, 1, 6738.4, 1976, {53034533200, 106030412152, 212022170056}, 1870},
    {"resnet50", 229, 0, 25.6, 229, {150247756, 300495084, 600989740}, 176},
    {"sdxl_unet", 3495, 1, 2567.5, 3565, {29253409248, 58506812732, 117013619700}, 3528},
    {"swin_b", 1763, 4, 87.8, 1759, {745487776, 1466542184, 2908651000}, 1082},
    {"t5_large", 2656, 1, 737.7, 2655, {6641062396, 11888395244, 22383060940}, 2454},
    {"timm_vit_g14", 733, 1, 1012.6, 812, {2099689892, 4199379780, 8398759556}, 812},
    {"tiny_gpt", 67, 0, 0.0, 75, {97348, 194692, 389380}, 74},
    {"tiny_mlp", 19, 0, 0.0, 19, {2308, 4612, 9220}, 19},
    {"vit_g14", 751, 1, 809.2, 750, {1387021412, 2774042820, 5548085636}, 748},
    {"vit_g14_40", 935, 1, 1011.2, 934, {1731245156, 3462490308, 6924980612}, 932},
    {"vit_g14_eager", 943, 1, 809.2, 942, {2109680740, 4219361476, 8438722948}, 940},
};

std::string path_of(const std::string& name) {
  return PFEIFE_SOURCE_DIR "/configs/models/" + name + ".pt2";
}
Graph model(const std::string& name, std::optional<std::int64_t> microbatch_size = {}) {
  return read_pt2(path_of(name), microbatch_size);
}
std::int64_t result_bytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const Value& value : graph.values)
    if (value.role == ValueRole::Intermediate) bytes += value.type.bytes().value;
  return bytes;
}
std::vector<std::vector<std::string>> tied(const Graph& graph) {
  std::vector<std::vector<std::string>> groups;
  for (const Parameter& parameter : graph.parameters)
    if (parameter.names.size() > 1) groups.push_back(parameter.names);
  return groups;
}
const Node& node_named(const Graph& graph, const std::string& name) {
  return *std::find_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return node.name == name; });
}

TEST(Pt2Models, NodesParametersAndGradientsAreThoseOfTheExport) {
  for (const Facts& facts : kModels) {
    SCOPED_TRACE(facts.model);
    const Graph graph = model(facts.model);
    EXPECT_EQ(graph.nodes.size(), facts.serialized_nodes - facts.size_nodes);
    double parameters = 0;
    for (const Parameter& parameter : graph.parameters) {
      parameters += static_cast<double>(parameter.type.elements());
      EXPECT_TRUE(parameter.trainable);
    }
    EXPECT_DOUBLE_EQ(std::round(parameters / 1e5) / 10, facts.million_parameters);
    std::int64_t results = 0, with_gradient = 0;
    for (const Value& value : graph.values) {
      if (value.role != ValueRole::Intermediate) continue;
      ++results;
      with_gradient += value.requires_grad;
    }
    EXPECT_EQ(results, facts.results);
    EXPECT_EQ(with_gradient, facts.with_gradient);
    ASSERT_EQ(graph.outputs.size(), 1u);
    EXPECT_TRUE(graph.value(graph.outputs[0]).type.sizes.empty());
    EXPECT_TRUE(graph.value(graph.outputs[0]).requires_grad);
  }
}

// torchvision's documentation of resnet101: 44,549,160 parameters. A U-Net (5, 64) has three by
// three convolutions only and one of a single pixel: five for each level, 64 to 1024 channels wide
// on the way down, 2048 at the bottom, half of each on the way up.
TEST(Pt2Models, TheNetworksOfTorchgpipeHaveTheirSizes) {
  const auto parameters = [](const char* name) {
    std::int64_t sum = 0;
    for (const Parameter& parameter : model(name).parameters) sum += parameter.type.elements();
    return sum;
  };
  EXPECT_EQ(parameters("resnet101"), 44'549'160);
  std::int64_t unet = 32, before = 3;
  for (std::int64_t width = 64; width <= 1024; width *= 2) {
    unet += 9 * width * (before + 4 * width);
    unet += 9 * (width / 2) * (2 * width + 4 * (width / 2));
    before = width;
  }
  unet += 9 * (1024 * 2048 + 3 * 2048 * 2048 + 2048 * 1024);
  EXPECT_EQ(parameters("unet_5_64"), unet);
}

TEST(Pt2Models, OpenBatchIsBoundToWhatIsAskedFor) {
  constexpr std::int64_t kSizes[] = {1, 2, 4};
  for (const Facts& facts : kModels)
    for (std::size_t i = 0; i < 3; ++i) {
      SCOPED_TRACE(testing::Message() << facts.model << " at " << kSizes[i]);
      const Graph graph = model(facts.model, kSizes[i]);
      EXPECT_TRUE(graph.symbolic_batch);
      EXPECT_EQ(graph.microbatch_size, kSizes[i]);
      EXPECT_EQ(result_bytes(graph), facts.bytes[i]);
      for (const ValueId input : graph.inputs)
        EXPECT_EQ(graph.value(input).type.sizes.at(0), kSizes[i]);
    }
}

TEST(Pt2Models, WithoutASizeTheBatchIsThatOfTheExport) {
  EXPECT_EQ(model("vit_g14").microbatch_size, 6);
  EXPECT_EQ(model("resnet50").microbatch_size, 16);
  EXPECT_EQ(model("tiny_mlp"), model("tiny_mlp", 4));
}

// swin_b reshapes to [64 x batch, 49, ...] by a size that a node computes.
TEST(Pt2Models, OpenIntegersInArgumentsBecomeNumbers) {
  const Graph graph = model("swin_b", 3);
  bool found = false;
  for (const Node& node : graph.nodes) {
    EXPECT_NE(node.op, "aten::sym_size");
    const Argument* shape = node.op == "aten::reshape" ? node.find("shape") : nullptr;
    if (shape == nullptr) continue;
    const auto& sizes = std::get<std::vector<std::int64_t>>(shape->value);
    found |= sizes == std::vector<std::int64_t>{64 * 3, 49, 3, 4, 32};
  }
  EXPECT_TRUE(found);
}

TEST(Pt2Models, TiedNamesAreOneParameter) {
  EXPECT_THAT(tied(model("gpt2_large")),
              ElementsAre(ElementsAre("net.transformer.wte.weight", "net.lm_head.weight")));
  EXPECT_THAT(tied(model("tiny_gpt")), ElementsAre(ElementsAre("tokens.weight", "head.weight")));
  EXPECT_THAT(tied(model("t5_large")),
              ElementsAre(ElementsAre("net.shared.weight", "net.encoder.embed_tokens.weight",
                                      "net.decoder.embed_tokens.weight", "net.lm_head.weight")));
  EXPECT_THAT(tied(model("bert_large")),
              UnorderedElementsAre(
                  ElementsAre("net.bert.embeddings.word_embeddings.weight",
                              "net.cls.predictions.decoder.weight"),
                  ElementsAre("net.cls.predictions.bias", "net.cls.predictions.decoder.bias")));
  EXPECT_THAT(tied(model("llama2_7b")), ElementsAre());
}

// The embedding and the head of tiny_gpt read the same value.
TEST(Pt2Models, UsesOfATiedParameterMeetInOneValue) {
  const Graph graph = model("tiny_gpt");
  const Parameter& shared = graph.parameters.at(
      graph.value(std::get<ValueId>(node_named(graph, "embedding").find("weight")->value))
          .parameter->index());
  int uses = 0;
  for (const Node& node : graph.nodes) {
    const std::vector<ValueId> inputs = inputs_of(node);
    uses += static_cast<int>(std::count(inputs.begin(), inputs.end(), shared.value));
  }
  EXPECT_EQ(uses, 2);
  EXPECT_THAT(shared.names, ElementsAre("tokens.weight", "head.weight"));
}

TEST(Pt2Models, NodesKnowTheirModule) {
  const Graph gpt = model("tiny_gpt");
  EXPECT_EQ(node_named(gpt, "layer_norm").module_path, "layers.0.norm1");
  EXPECT_EQ(node_named(gpt, "layer_norm").module_class, "torch.nn.modules.normalization.LayerNorm");
  EXPECT_EQ(node_named(gpt, "add").module_path, "");
  std::set<std::string> layers;
  for (const Node& node : model("vit_g14").nodes)
    if (node.module_path.starts_with("net.vit.layers.") && node.op == "aten::layer_norm")
      layers.insert(node.module_path);
  EXPECT_EQ(layers.size(), 64u);  // two norms in each of 32 layers
}

TEST(Pt2Models, RolesAndResults) {
  const Graph swin = model("swin_b");
  std::map<ValueRole, int> count;
  for (const Value& value : swin.values) ++count[value.role];
  EXPECT_EQ(count[ValueRole::Constant],
            99);  // numbers that its shifted-window masks are filled with
  const Graph llama = model("llama2_7b");
  std::vector<std::string> transient;
  for (const Value& value : llama.values)
    if (value.role == ValueRole::Buffer && !value.persistent)
      transient.push_back(value.source_name);
  EXPECT_THAT(transient, ElementsAre("net.model.rotary_emb.inv_freq",
                                     "net.model.rotary_emb.original_inv_freq"));
  const Graph gpt = model("tiny_gpt");
  const Node& unbind = node_named(gpt, "unbind");
  EXPECT_TRUE(unbind.returns_list);
  EXPECT_EQ(unbind.outputs.size(), 3u);
  EXPECT_EQ(unbind.op, "aten::unbind");
  EXPECT_EQ(unbind.overload, "int");
}

// tests/data/models/own_model.py says what is in it.
TEST(Pt2Models, ExportedByAUserWithTheModuleOption) {
  const Graph graph = read_pt2(PFEIFE_SOURCE_DIR "/tests/data/models/own_model.pt2");
  EXPECT_EQ(graph.microbatch_size, 4);
  std::int64_t elements = 0, frozen = 0;
  for (const Parameter& parameter : graph.parameters) {
    elements += parameter.type.elements();
    frozen += parameter.trainable ? 0 : 1;
  }
  EXPECT_EQ(elements, 21408);  // what the module says of itself in Python
  EXPECT_EQ(graph.parameters.size(), 29u);
  EXPECT_EQ(frozen, 2);
  EXPECT_THAT(tied(graph), ElementsAre(ElementsAre("embed.weight", "head.weight")));
  EXPECT_EQ(graph.outputs.size(), 2u);
  const Node& topk = *std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                   [](const Node& node) { return node.op == "aten::topk"; });
  ASSERT_EQ(topk.outputs.size(), 2u);
  EXPECT_FALSE(topk.returns_list);
  EXPECT_TRUE(graph.value(topk.outputs[0]).requires_grad);
  EXPECT_FALSE(graph.value(topk.outputs[1]).requires_grad);
  EXPECT_TRUE(graph.value(inputs_of(topk)[0]).requires_grad);  // written into through a slice
}

// Some of its strides are Min(32, 32 x batch).
TEST(Pt2Models, UsersModelIsTheSameForAnyWayToItsBatchSize) {
  const std::string path = PFEIFE_SOURCE_DIR "/tests/data/models/own_model.pt2";
  EXPECT_EQ(read_pt2(path), read_pt2(path, 4));
  EXPECT_EQ(read_pt2(path, 1).nodes.size(), read_pt2(path, 9).nodes.size());
}

TEST(Pt2Models, SavedByTorchItself) {
  const std::string path = PFEIFE_SOURCE_DIR "/tests/data/models/torch_saved.pt2";
  const Graph graph = read_pt2(path);
  EXPECT_FALSE(graph.symbolic_batch);
  EXPECT_EQ(graph.microbatch_size, 6);
  EXPECT_EQ(graph.nodes.size(), 5u);
  EXPECT_EQ(graph.nodes[0].module_path, "net.0");
  EXPECT_THROW(read_pt2(path, 5), ConfigError);
}

TEST(Pt2Models, ProducersAndDigestAreConsistent) {
  const Graph graph = model("resnet50");
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (const ValueId output : graph.nodes[n].outputs)
      EXPECT_EQ(graph.value(output).producer, NodeId{n});
  EXPECT_EQ(graph.digest, sha256_file(path_of("resnet50")));
  EXPECT_EQ(graph.name, "resnet50");
}

}  // namespace
}  // namespace pfeife
