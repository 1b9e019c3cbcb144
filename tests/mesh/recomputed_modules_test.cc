// Modules recomputed: what is kept no more and what backward does again, by hand.
#include "planner/mesh/recomputed_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/ir/basics/error.h"
#include "planner/mesh/mesh_layers.h"
#include "planner/mesh/mesh_price.h"
#include "planner/mesh/mesh_search.h"
#include "tests/mesh/configs.h"

namespace pfeife {
namespace {

constexpr std::int64_t kTokens = 512, kHidden = 7168, kHeads = 128, kLayers = 4;

const Network& hosts() {
  static const Network network = read_network(kConfigs / "clusters/b200_sxm_hosts.yaml");
  return network;
}
/// Four layers of DeepSeek-V3, all with experts.
MeshRun deepseek(std::vector<Module> modules) {
  MeshRun run{.architecture = read_architecture(kConfigs / "architectures/deepseek_v3.yaml")};
  run.architecture.layers = kLayers, run.architecture.dense_layers = 0;
  run.architecture.sequence = kTokens;
  run.type = DType::BFloat16;
  run.modules = std::move(modules);
  return run;
}

struct Sums {
  std::int64_t kept = 0;  // bytes of a microbatch, F to B
  Nanoseconds forward{0}, backward{0}, collectives{0};
};
Sums sums(const MeshRun& run) {
  check_run(run);
  const Layers layers = rank_layers(run, hosts()).layers;
  Sums sum;
  for (const Layer& layer : layers.layers) {
    sum.kept += layer.saved.value;
    sum.forward += layer.times.front().forward;
    sum.backward += layer.times.front().backward_input + layer.times.front().backward_weight;
  }
  for (const LayerStorage& storage : layers.storages) sum.kept += storage.bytes.value;
  for (const LayerCollectives& both : layers.collectives) sum.collectives += both.backward;
  return sum;
}
/// Bytes a layer that the module keeps no more.
std::int64_t freed(const MeshRun& base, Module module) {
  MeshRun run = base;
  run.modules = {module};
  const std::int64_t bytes = sums(base).kept - sums(run).kept;
  EXPECT_EQ(bytes % kLayers, 0);
  return bytes / kLayers;
}

// Norms: their two results in 16 bits, which products keep. Activations: of 8 copies of a token
// 2048 wide. What goes up from compressed queries, keys and values: queries and keys of 192 a head,
// the product of keys and values (128 + 128), the two normed inputs of 1536 and 512, and 4 bytes a
// token of each norm. The core of fused attention: 4 bytes a query row, since the product behind it
// keeps its result.
TEST(RecomputedModules, FreeWhatTheirKernelsKeep) {
  const MeshRun base = deepseek({});
  EXPECT_EQ(freed(base, Module::Norm), kTokens * (2 * kHidden * 2 + 2 * 4));
  EXPECT_EQ(freed(base, Module::ExpertActivation), kTokens * 8 * 2048 * 2);
  EXPECT_EQ(freed(base, Module::LatentUp),
            kTokens * ((2 * kHeads * 192 + kHeads * 256 + 1536 + 512) * 2 + 2 * 4));
  EXPECT_EQ(freed(base, Module::CoreAttention), kTokens * kHeads * 4);
  // Shared experts: both parts of the gated product, and its activation.
  EXPECT_EQ(freed(base, Module::SharedExperts), kTokens * 3 * 2048 * 2);
}

// A tp-th of the sequence where norms are; in a format the cast of 1 + 1/32 bytes instead of 16
// bits, but for the router, which reads 16 bits of the second norm.
TEST(RecomputedModules, FreeTheirPartOfAMeshAndCasts) {
  MeshRun base = deepseek({});
  base.mesh.size(Axis::Tensor) = 4;
  base.sequence_parallel = true;
  EXPECT_EQ(freed(base, Module::Norm), kTokens / 4 * (2 * kHidden * 2 + 2 * 4));
  base = deepseek({});
  base.format = Format::MxFp8;
  EXPECT_EQ(freed(base, Module::Norm), kTokens * (2 * kHidden * 33 / 32 + kHidden * 2 + 2 * 4));
}

// Norms read and write 16 bits: two kernels a layer, at the rate of element-wise ones.
TEST(RecomputedModules, AddTheirForwardToBackward) {
  const Sums none = sums(deepseek({})), norms = sums(deepseek({Module::Norm}));
  const DeviceKind& device = hosts().device;
  const double norm = seconds_at(Bytes{2 * kTokens * kHidden * 2}, device.element_wise_rate()) +
                      seconds(device.operator_time());
  EXPECT_EQ(norms.forward, none.forward);
  EXPECT_NEAR(seconds(norms.backward - none.backward) / (2 * kLayers * norm), 1, 1e-3);
}

// The whole of a layer's experts runs again, with the exchanges of tokens there and back.
TEST(RecomputedModules, RepeatCollectivesWithinThem) {
  MeshRun run = deepseek({});
  run.mesh.size(Axis::Data) = run.mesh.experts = 8;
  run.global_batch = 8;
  const Sums none = sums(run);
  run.modules = {Module::Experts};
  const Sums experts = sums(run);
  // Each way takes as long forward as backward.
  EXPECT_NEAR(seconds(experts.collectives) / seconds(none.collectives), 2, 1e-6);
  // A module within another is no further work.
  run.modules = {Module::ExpertActivation, Module::SharedExperts, Module::Experts};
  EXPECT_EQ(sums(run).backward, experts.backward);
  EXPECT_EQ(sums(run).kept, experts.kept);
}

// What one layer computes again is there while its backward runs: less than all of it is saved.
TEST(RecomputedModules, LowerThePeakByLessThanWhatTheyFree) {
  MeshRun run = deepseek({});
  run.architecture.layers = 8;
  run.mesh.size(Axis::Pipeline) = 2;
  run.global_batch = 4;
  const auto peak = [&](std::vector<Module> modules) {
    run.modules = std::move(modules);
    return price_mesh(run, hosts()).plan.peak_memory.front();
  };
  const Bytes none = peak({}), less = peak({Module::Norm, Module::ExpertActivation});
  const std::int64_t each = kTokens * (2 * kHidden * 2 + 2 * 4 + 8 * 2048 * 2);
  const std::int64_t kept = 2 * 4 * each;  // two microbatches of four layers on the first rank
  EXPECT_LT(less, none);
  EXPECT_LE((none - less).value, kept);
  EXPECT_GE((none - less).value, kept - 2 * each);
}

TEST(RecomputedModules, AreRefusedWhereNoLayerHasThem) {
  MeshRun run{.architecture = read_architecture(kConfigs / "architectures/llama3_8b.yaml")};
  run.modules = {Module::LatentUp};
  try {
    check_run(run);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("mla_up_proj; it has layernorm, core_attn, mlp"));
  }
}

// Where a mesh does not fit, the search takes as little again as lets it fit: slower than
// nothing, faster than all.
TEST(RecomputedModules, AreChosenWhereMemoryIsShort) {
  MeshQuestion question{.run = deepseek({}), .devices = 8};
  question.run.architecture.layers = 8, question.run.architecture.experts = 64;
  question.run.architecture.sequence = 4096;
  question.run.global_batch = 64;
  question.tp = question.cp = {1}, question.pp = {1}, question.dp = question.ep = {8};
  question.microbatch_size = {2}, question.zero = {1};
  question.recomputation = {Recompute::None, Recompute::Selective, Recompute::Full};
  Network network = hosts();
  const MeshAnswer open = find_mesh(question, network, {.all = true});
  Bytes none{0}, full{0};
  for (const MeshOutcome& outcome : open.priced) {
    if (recomputed_text(outcome.run) == "none") none = outcome.reserved;
    if (recomputed_text(outcome.run) == "full") full = outcome.reserved;
  }
  EXPECT_EQ(open.priced.size(), 2 + modules_to_try(question.run.architecture).size());
  ASSERT_LT(full, none);
  question.reserve = Bytes{network.device.memory.value - (none.value + full.value) / 2};
  question.memory_margin = 0.0;
  const MeshAnswer answer = find_mesh(question, network, {.all = true});
  ASSERT_TRUE(answer.found());
  EXPECT_FALSE(answer.priced.front().run.modules.empty());
}

}  // namespace
}  // namespace pfeife
