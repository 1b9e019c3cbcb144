#include <gtest/gtest.h>

#include <cmath>

#include "planner/io/pt2_reader.h"

namespace pfeife {
namespace {

// Nodes as exported (torch 2.11), less those that only compute open sizes; parameters in millions,
// to 0.1.
struct Facts {
  const char* model;
  std::size_t serialized_nodes;
  std::size_t size_nodes;
  double million_parameters;
};
constexpr Facts kModels[] = {
    {"bert_large", 595, 1, 335.2},    {"convnext_base", 488, 1, 88.6},
    {"densenet121", 553, 0, 8.0},     {"gpt2_large", 1391, 1, 774.0},
    {"llama2_7b", 1731, 1, 6738.4},   {"llama2_7b_eager", 1977, 1, 6738.4},
    {"resnet50", 229, 0, 25.6},       {"sdxl_unet", 3495, 1, 2567.5},
    {"swin_b", 1763, 4, 87.8},        {"t5_large", 2656, 1, 737.7},
    {"timm_vit_g14", 733, 1, 1012.6}, {"tiny_gpt", 67, 0, 0.0},
    {"tiny_mlp", 19, 0, 0.0},         {"vit_g14", 751, 1, 809.2},
    {"vit_g14_40", 935, 1, 1011.2},   {"vit_g14_eager", 943, 1, 809.2},
};

Graph model(const std::string& name, std::optional<std::int64_t> microbatch_size = {}) {
  return read_pt2(PFEIFE_SOURCE_DIR "/configs/models/" + name + ".pt2", microbatch_size);
}

TEST(Pt2Models, NodesAndParametersAreThoseOfTheExport) {
  for (const Facts& facts : kModels) {
    const Graph graph = model(facts.model);
    EXPECT_EQ(graph.nodes.size(), facts.serialized_nodes - facts.size_nodes) << facts.model;
    double parameters = 0;
    for (const Parameter& parameter : graph.parameters)
      parameters += static_cast<double>(parameter.type.elements());
    EXPECT_DOUBLE_EQ(std::round(parameters / 1e5) / 10, facts.million_parameters) << facts.model;
  }
}

}  // namespace
}  // namespace pfeife
