// Architectures against published counts of parameters, and against exported archives.
#include "planner/ir/model/architecture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "planner/cost/operators/work.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/machine/mesh_run.h"
#include "planner/mesh/rank_graph.h"
#include "tests/mesh/configs.h"
#include "tests/support/scratch_folder.h"

namespace pfeife {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Architecture shipped(const std::string& name) {
  return read_architecture(kConfigs / "architectures" / (name + ".yaml"));
}

struct Totals {
  std::int64_t parameters = 0;
  double forward = 0, backward = 0;  // FLOPs of products and attention
};
Totals totals_of(const Graph& graph) {
  Totals sum;
  for (const Value& value : graph.values)
    if (value.role == ValueRole::Parameter) sum.parameters += value.type.elements();
  const GraphFacts facts(graph, Precision::Fp32);
  const SavedMemory saved = saved_memory(facts, DeviceType::Gpu);
  const KernelList kernels(facts, saved, DeviceType::Gpu);
  for (const NodeId n : nodes_of(graph))
    for (const Kernel& kernel : kernels.at(n))
      (kernel.pass == Pass::Forward ? sum.forward : sum.backward) +=
          static_cast<double>(kernel.times) * kernel.flops.value;
  return sum;
}

// Billions of parameters, all and those of a token: Mixtral of Experts (arXiv 2401.04088), sec. 1;
// Qwen3 (arXiv 2505.09388), table 2, and its model card; DeepSeek-V3 (arXiv 2412.19437), abstract;
// model cards of Llama 2, Llama 3 and 3.1.
TEST(Architectures, HaveThePublishedNumbersOfParameters) {
  const struct {
    const char* name;
    double all, active;
  } published[] = {{"mixtral_8x7b", 46.7, 12.9}, {"qwen3_30b_a3b", 30.5, 3.3},
                   {"deepseek_v3", 671, 37},     {"llama2_7b", 6.74, 6.74},
                   {"llama3_8b", 8.03, 8.03},    {"llama3_70b", 70.6, 70.6},
                   {"llama3_405b", 405.9, 405.9}};
  for (const auto& one : published) {
    const Architecture sizes = shipped(one.name);
    EXPECT_NEAR(static_cast<double>(parameter_count(sizes)) / 1e9 / one.all, 1, 0.003) << one.name;
    EXPECT_NEAR(static_cast<double>(active_parameter_count(sizes)) / 1e9 / one.active, 1, 0.02)
        << one.name;
  }
}

// A product of n tokens with a matrix of k parameters has 2 n k FLOPs; of experts a token sees
// top_k. The embedding is looked up, norms are no products; attention comes on top: two products of
// the scores' size for every head.
TEST(Architectures, TheGraphHasTheirParametersAndTheFlopsOfTheParametersThatATokenPasses) {
  for (const char* name : {"mixtral_8x7b", "qwen3_30b_a3b", "deepseek_v3", "llama3_8b"}) {
    Architecture sizes = shipped(name);
    sizes.layers = sizes.dense_layers + 2;
    sizes.sequence = 512;
    const Totals totals = totals_of(rank_graph(sizes, {}, {.type = DType::BFloat16}).graph);
    EXPECT_EQ(totals.parameters, parameter_count(sizes)) << name;
    const auto tokens = static_cast<double>(sizes.sequence);
    const std::int64_t value = sizes.latent ? sizes.latent->value_size : sizes.head_size;
    const std::int64_t key = sizes.head_size + (sizes.latent ? sizes.latent->rotary_size : 0);
    const double attention =
        2 * static_cast<double>(sizes.layers * sizes.heads * (key + value)) * tokens * tokens;
    const double products =
        2 * tokens *
        static_cast<double>(active_parameter_count(sizes) - sizes.vocabulary * sizes.hidden);
    EXPECT_NEAR(totals.forward / (products + attention), 1, 2e-4) << name;
  }
}

Architecture published(const std::string& name) {
  return read_architecture(kConfigs / "architectures" / (name + ".json"));
}

// Scores of a head: with a window of w each token but the first ones has w; chunks of c are halved
// squares of c (c + 1) / 2 scores; else all count. A token of a Mamba-2 layer has for each of G
// groups the products of C and B (2 Q N), and for each head what it adds to the chunk's state (2 N
// P), what the chunk's values give (2 Q P) and what the state gives (2 N P), besides both linear
// layers.
TEST(Architectures, UnlikeLayersHaveTheFlopsOfTheirKinds) {
  const double tokens = 512;
  const auto forward = [](Architecture sizes) {
    sizes.sequence = 512;
    sizes.layers = std::ssize(sizes.pattern);
    return totals_of(rank_graph(sizes, {}, {.type = DType::BFloat16}).graph).forward;
  };
  Architecture model = published("gpt_oss_120b");
  model.pattern.resize(2);  // a window of 128, and all
  double less = forward(model);
  for (LayerKind& kind : model.pattern) kind.window = 0;
  EXPECT_DOUBLE_EQ(forward(model) - less,
                   64.0 * 4 * 64 * (512 * 512 - (512 * 128 - 128 * 127 / 2)));
  model = published("llama4_maverick");
  model.pattern.resize(4);  // three layers of chunks, one of all
  for (LayerKind& kind : model.pattern)
    if (kind.chunk > 0) kind.chunk = 64;
  less = forward(model);
  for (LayerKind& kind : model.pattern) kind.chunk = 0;
  EXPECT_DOUBLE_EQ(forward(model) - less, 40.0 * 4 * 128 * 3 * (512 * 512 - 512 * 65 / 2));
  model = published("nemotron_h_8b");
  model.pattern.resize(2);  // Mamba-2, feed-forward
  const double both = forward(model);
  model.pattern.erase(model.pattern.begin());
  const double linear = 4096 * (2 * 8192 + 2 * 8 * 128 + 128) + 8192 * 4096;
  EXPECT_DOUBLE_EQ(both - forward(model),
                   2 * tokens * (linear + 8 * 128 * 128 + 128 * (2 * 128 * 64 + 128 * 64)));
}

// Layers with and without experts: 24 of each in Maverick, as its card has 400 billion parameters
// of which 17 are active; of Nemotron-H 8B 24 are Mamba-2, 24 feed-forward and 4 attention (arXiv
// 2504.03624, table 1).
TEST(Architectures, PatternsHaveThePublishedNumbersOfLayers) {
  const auto count = [](const Architecture& sizes, const auto& is) {
    std::int64_t layers = 0;
    for (std::int64_t l = 0; l < sizes.layers; ++l) layers += is(layer_kind(sizes, l)) ? 1 : 0;
    return layers;
  };
  EXPECT_EQ(
      count(published("llama4_maverick"),
            [](const LayerKind& kind) { return kind.feed_forward == FeedForwardKind::Experts; }),
      24);
  EXPECT_EQ(count(published("llama4_scout"), [](const LayerKind& kind) { return kind.chunk > 0; }),
            36);
  const Architecture nemotron = published("nemotron_h_8b");
  EXPECT_EQ(count(nemotron, [](const LayerKind& kind) { return kind.mixer == MixerKind::Mamba; }),
            24);
  EXPECT_EQ(
      count(nemotron, [](const LayerKind& kind) { return kind.mixer == MixerKind::Attention; }), 4);
}

TEST(Architectures, ARankHasItsPartOfUnlikeLayers) {
  for (const char* name : {"nemotron_h_8b", "gpt_oss_120b", "llama4_scout"}) {
    Architecture sizes = published(name);
    sizes.sequence = 4096;
    sizes.layers = std::min<std::int64_t>(sizes.layers, 10);
    const auto forward = [&](std::int64_t tp, std::int64_t cp) {
      Mesh mesh;
      mesh.size(Axis::Tensor) = tp, mesh.size(Axis::Context) = cp;
      return totals_of(rank_graph(sizes, mesh, {.type = DType::BFloat16}).graph).forward;
    };
    EXPECT_NEAR(4 * forward(4, 1) / forward(1, 1), 1, 1e-2) << name;  // routers are on each rank
    EXPECT_NEAR(4 * forward(1, 4) / forward(1, 1), 1, 1e-6) << name;
    EXPECT_NEAR(8 * forward(4, 2) / forward(1, 1), 1, 1e-2) << name;
  }
}

TEST(Architectures, ARankOfAMeshHasItsPartOfParametersAndFlops) {
  Architecture sizes = shipped("mixtral_8x7b");
  sizes.layers = 2, sizes.sequence = 512;
  const Totals whole = totals_of(rank_graph(sizes, {}, {.type = DType::BFloat16}).graph);
  Mesh mesh;
  mesh.size(Axis::Tensor) = 4;
  const Totals quarter = totals_of(rank_graph(sizes, mesh, {.type = DType::BFloat16}).graph);
  // Norms and routers are on every rank.
  const std::int64_t everywhere =
      sizes.hidden * (2 * sizes.layers + 1) + sizes.layers * sizes.hidden * 8;
  EXPECT_EQ((quarter.parameters - everywhere) * 4 + everywhere, whole.parameters);
  EXPECT_NEAR(quarter.forward * 4 / whole.forward, 1, 1e-3);
  mesh.size(Axis::Tensor) = 1;
  mesh.size(Axis::Data) = mesh.experts = 4;
  const Totals experts = totals_of(rank_graph(sizes, mesh, {.type = DType::BFloat16}).graph);
  const std::int64_t in_experts =
      3 * sizes.hidden * sizes.feed_forward * sizes.experts * sizes.layers;
  EXPECT_EQ(whole.parameters - experts.parameters, in_experts / 4 * 3);
  EXPECT_EQ(experts.forward, whole.forward);  // as many tokens come as go
}

TEST(Architectures, AgreeWithExportedArchivesInParametersAndFlops) {
  for (const char* name : {"llama2_7b", "gpt2_large"}) {
    const Graph archive = read_pt2(kConfigs / "models" / (std::string(name) + ".pt2"), 1);
    std::int64_t sequence = 0;
    for (const Value& value : archive.values)
      if (value.role == ValueRole::Input && sequence == 0) sequence = value.type.sizes.back();
    Architecture sizes = shipped(name);
    sizes.sequence = sequence;
    std::int64_t unused = 0;  // positions that the archive has and a shorter sequence does not
    if (std::string(name) == "gpt2_large") {
      sizes.vocabulary = 50257;
      unused = (1024 - sequence) * sizes.hidden;
    }
    const Totals ours = totals_of(rank_graph(sizes, {}, {.type = DType::Float32}).graph);
    const Totals theirs = totals_of(archive);
    EXPECT_EQ(ours.parameters + unused, theirs.parameters) << name;
    EXPECT_NEAR(ours.forward / theirs.forward, 1, 1e-6) << name;
    EXPECT_NEAR(ours.backward / theirs.backward, 1, 1e-6) << name;
  }
}

/// A config.json with this text, read.
Architecture read_config(const std::string& text) {
  const ScratchFolder scratch;
  const std::filesystem::path file = scratch.path() / "config.json";
  std::ofstream(file) << text;
  return read_architecture(file);
}

struct Built {
  std::int64_t parameters = 0, active = 0;  // active 0: not counted
  std::string config;                       // config.json
};
/// Lines of two files: parameters, those of a token in the second, config.json.
std::vector<Built> built_by_transformers() {
  std::vector<Built> models;
  for (const bool active : {false, true}) {
    std::ifstream file(std::string(PFEIFE_SOURCE_DIR "/tests/data/hugging_face/") +
                       (active ? "active.txt" : "parameters.txt"));
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("#")) continue;
      std::istringstream text(line);
      Built model;
      text >> model.parameters;
      if (active) text >> model.active;
      std::getline(text >> std::ws, model.config);
      models.push_back(model);
    }
  }
  return models;
}
bool has_no_price(const Built& model) {  // queries that are not compressed
  return model.config.find("\"q_lora_rank\": null") != std::string::npos;
}

// One of 45 + 23 configs asks for what has no price.
TEST(HuggingFace, ModelsHaveTheParametersThatTransformersBuilds) {
  std::size_t refused = 0, read = 0;
  for (const Built& model : built_by_transformers()) {
    if (has_no_price(model)) {
      EXPECT_THROW(read_config(model.config), ConfigError);
      ++refused;
      continue;
    }
    ++read;
    const Architecture sizes = read_config(model.config);
    EXPECT_EQ(parameter_count(sizes), model.parameters) << model.config;
    if (model.active > 0) {
      EXPECT_EQ(active_parameter_count(sizes), model.active) << model.config;
    }
  }
  EXPECT_EQ(read, 67u);
  EXPECT_EQ(refused, 1u);
}

// What is priced has as many parameters as what is counted: biases by place, norms of queries and
// keys, learned positions beyond the sequence, sinks, Mamba layers.
TEST(HuggingFace, GraphsHaveTheirParameters) {
  std::size_t small = 0;
  for (const Built& model : built_by_transformers()) {
    if (model.parameters > 1000000 || has_no_price(model)) continue;
    Architecture sizes = read_config(model.config);
    sizes.sequence = 64;
    EXPECT_EQ(totals_of(rank_graph(sizes, {}, {.type = DType::BFloat16}).graph).parameters,
              model.parameters)
        << model.config;
    ++small;
  }
  EXPECT_EQ(small, 32u);
}

TEST(HuggingFace, WhatHasNoPriceIsRefusedByName) {
  const auto message = [](const std::string& config) -> std::string {
    try {
      MeshRun run{.architecture = read_config(config)};
      run.architecture.sequence = 8192;
      check_run(run);
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  EXPECT_THAT(message(R"({"model_type": "gemma3"})"),
              AllOf(HasSubstr("config.json:1:"), HasSubstr("\"gemma3\""), HasSubstr("gpt2")));
  EXPECT_THAT(message(R"({"model_type": "llama", "hidden_act": "relu"})"), HasSubstr("silu"));
  EXPECT_THAT(message(R"({"model_type": "llama", "quantization_config": {"bits": 4}})"),
              HasSubstr("quantized"));
  EXPECT_THAT(message(R"({"model_type": "nemotron_h", "hybrid_override_pattern": "MX"})"),
              HasSubstr("'X' is no kind of layer"));
  EXPECT_EQ(message(R"({"model_type": "mistral"})"), "");  // with its window of 4096
  EXPECT_THAT(message(R"({"model_type": "gpt2"})"), HasSubstr("1024 positions"));
}

TEST(Architectures, AMeshThatDividesNoMambaLayerIsRefusedWithTheNearest) {
  const auto message = [](std::int64_t tp, std::int64_t cp) -> std::string {
    MeshRun run{.architecture = published("nemotron_h_8b")};
    run.architecture.sequence = 8192;
    run.mesh.size(Axis::Tensor) = tp, run.mesh.size(Axis::Context) = cp;
    try {
      check_run(run);
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(message(8, 4), "");  // a group a rank of tp, which four ranks of cp have
  EXPECT_THAT(message(16, 1), HasSubstr("tp 16 does not divide the 8 groups"));
  EXPECT_THAT(message(8, 32), HasSubstr("heads of a Mamba layer on a rank of tp"));
}

}  // namespace
}  // namespace pfeife
