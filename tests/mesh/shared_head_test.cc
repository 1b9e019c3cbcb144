// The output layer of a mesh's pipeline on all of its ranks: what is divided, what is added, what
// is refused.
#include "planner/mesh/shared_head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "planner/io/cluster/network_reader.h"
#include "planner/mesh/mesh_price.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife::shared_head {
namespace {

const Network& a100() {
  static const Network network =
      read_network(PFEIFE_SOURCE_DIR "/configs/clusters/a100_sxm4_80gb_hosts.yaml");
  return network;
}

MeshRun gpt(const std::string& schedule, std::int64_t words = 256000) {
  MeshRun run;
  Architecture& of_run = run.architecture;
  of_run.layers = 32, of_run.hidden = 3072, of_run.heads = of_run.kv_heads = 24;
  of_run.head_size = 128, of_run.feed_forward = 12288, of_run.vocabulary = words;
  of_run.sequence = 2048, of_run.attention = AttentionKind::Fused, of_run.tied_embedding = false;
  run.mesh.size(Axis::Pipeline) = 8;
  run.global_batch = 32;
  run.schedule = schedule;
  return run;
}

std::int64_t held(const MeshPrice& price) {
  const auto& stages = price.plan.costs.stages;
  return std::accumulate(
      stages.begin(), stages.end(), std::int64_t{0},
      [](std::int64_t sum, const StageCost& stage) { return sum + stage.fixed().value; });
}

// 18 bytes a parameter. Each rank but one more has the norm before the output layer, weight and
// bias, and the learned positions. Where the embedding is tied to the output layer, the first and
// the last stage both hold all words unless they are divided.
TEST(SharedHeadOfAMesh, RanksHoldTheWordsOnceAndNormAndPositionsEach) {
  constexpr std::int64_t kEach = 18 * (2 + 2048) * 3072, kWords = 18 * std::int64_t{256000} * 3072;
  for (const char* family : {"vocab_1", "vocab_2", "interlaced"}) {
    EXPECT_EQ(held(price_mesh(gpt(family), a100())),
              held(price_mesh(gpt("1f1b"), a100())) + 7 * kEach)
        << family;
    MeshRun tied = gpt(family), last = gpt("1f1b");
    tied.architecture.tied_embedding = last.architecture.tied_embedding = true;
    EXPECT_EQ(held(price_mesh(tied, a100())), held(price_mesh(last, a100())) - kWords + 7 * kEach)
        << family;
  }
}

TEST(SharedHeadOfAMesh, TheOuterStagesAreAsTheOthersAndAShareTakesAnEighth) {
  const MeshPrice last = price_mesh(gpt("1f1b"), a100());
  const MeshPrice shared = price_mesh(gpt("vocab_1"), a100());
  const auto& stages = shared.plan.costs.stages;
  const auto work = [](const StageCost& stage) {
    return static_cast<double>((stage.forward + stage.backward()).count());
  };
  double divided = 0;
  for (const std::size_t s : {0, 7}) {
    EXPECT_EQ(stages[s].forward, stages[3].forward);
    EXPECT_EQ(stages[s].backward(), stages[3].backward());
    divided += work(last.plan.costs.stages[s]) - work(stages[s]);
  }
  // Smaller products are not faster, each rank has the norm, and looks up all tokens.
  const double share = static_cast<double>((stages[0].head_share + stages[0].head_rest).count());
  EXPECT_GE(8 * share, divided);
  EXPECT_LE(8 * share, 1.1 * divided);
}

TEST(SharedHeadOfAMesh, WithOneBarrierSHasTheGradientOfTheInputToo) {
  const StageCosts vocab_2 = price_mesh(gpt("vocab_2"), a100()).plan.costs;
  const StageCosts vocab_1 = price_mesh(gpt("vocab_1"), a100()).plan.costs;
  const StageCosts stops = price_mesh(gpt("interlaced"), a100()).plan.costs;
  const auto s = [](const StageCosts& costs) { return costs.stages[2].head_share; };
  const auto t = [](const StageCosts& costs) { return costs.stages[2].head_rest; };
  EXPECT_EQ(s(vocab_2) + t(vocab_2), s(vocab_1) + t(vocab_1));
  // Two of three products, and one.
  const auto share = [&](const StageCosts& costs) {
    return static_cast<double>(s(costs).count()) /
           static_cast<double>((s(costs) + t(costs)).count());
  };
  EXPECT_NEAR(share(vocab_2), 2.0 / 3, 0.1);
  EXPECT_NEAR(share(vocab_1), 1.0 / 3, 0.1);
  // The collectives are the same; where ranks stop, that of the gradient is within T.
  EXPECT_EQ(vocab_2.head->after_share, vocab_1.head->after_share + vocab_1.head->after_rest);
  EXPECT_EQ(vocab_2.head->broadcast, vocab_1.head->broadcast);
  EXPECT_EQ(t(stops), t(vocab_1) + vocab_1.head->after_rest);
  EXPECT_EQ(stops.head->after_rest, Nanoseconds{0});
}

TEST(SharedHeadOfAMesh, TheFullestRankIsLessFullAndTheStepShorterWithManyWords) {
  const auto peak = [](const MeshPrice& price) {
    return *std::ranges::max_element(price.plan.peak_memory);
  };
  const MeshPrice last = price_mesh(gpt("1f1b"), a100());
  for (const char* family : {"vocab_1", "vocab_2", "interlaced"}) {
    const MeshPrice shared = price_mesh(gpt(family), a100());
    EXPECT_LT(peak(shared), peak(last)) << family;
    EXPECT_LT(shared.plan.estimate, last.plan.estimate) << family;
  }
}

TEST(SharedHeadOfAMesh, WhatIsDividedOtherwiseIsRefused) {
  const auto refusal = [](auto change) {
    MeshRun run = gpt("vocab_1");
    change(run);
    return message_of([&] { price_mesh(run, a100()); });
  };
  EXPECT_MESSAGE(refusal([](MeshRun& run) { run.mesh.size(Axis::Pipeline) = 1; }));
  EXPECT_MESSAGE(refusal([](MeshRun& run) { run.mesh.size(Axis::Tensor) = 2; }));
  EXPECT_MESSAGE(refusal([](MeshRun& run) { run.stages_per_rank = 2; }));
  EXPECT_MESSAGE(refusal([](MeshRun& run) { run.mesh.size(Axis::Data) = 2, run.zero = 1; }));
}

}  // namespace
}  // namespace pfeife::shared_head
