// The chosen mesh against every mesh priced in full, and the bounds against the prices.
#include "planner/mesh/mesh_search.h"

#include <gtest/gtest.h>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/model/architecture_reader.h"
#include "tests/mesh/configs.h"

namespace pfeife {
namespace {

struct Case {
  std::string name, architecture, cluster;
  std::int64_t devices, batch, layers, sequence;
  bool experts;
};
std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.name; }

MeshQuestion question_of(const Case& one) {
  MeshQuestion question;
  question.run.architecture =
      read_architecture(kConfigs / "architectures" / (one.architecture + ".yaml"));
  question.run.architecture.layers = one.layers;
  question.run.architecture.sequence = one.sequence;
  question.run.mesh.order = {Axis::Tensor, Axis::Context, Axis::Data, Axis::Pipeline};
  question.run.type = DType::BFloat16;
  question.run.sequence_parallel = true;
  question.run.global_batch = one.batch;
  question.devices = one.devices;
  question.cp = {1};
  if (!one.experts) question.ep = {1};
  question.zero = {0, 1};
  return question;
}

/// Reductions beside backwards, or behind them.
class SmallCases : public ::testing::TestWithParam<std::tuple<Case, bool>> {};

TEST_P(SmallCases, TheMeshIsTheBestOfAllPricedInFullAndNoBoundIsAboveAPrice) {
  const auto& [one_case, overlap] = GetParam();
  MeshQuestion question = question_of(one_case);
  question.run.overlap_reductions = overlap;
  const Network network = read_network(kConfigs / "clusters" / (one_case.cluster + ".yaml"));
  const MeshAnswer found = find_mesh(question, network);
  const MeshAnswer all = find_mesh(question, network, {.threads = 2, .all = true});
  ASSERT_TRUE(found.found());
  EXPECT_EQ(found.priced.front().step, all.priced.front().step);
  EXPECT_EQ(all.ruled_out, 0u);
  EXPECT_EQ(all.priced.size() + all.without_memory, all.candidates);
  EXPECT_EQ(found.priced.size() + found.without_memory + found.ruled_out, found.candidates);
  EXPECT_EQ(found.bound, all.bound);
  for (const MeshOutcome& one : all.priced) {
    EXPECT_LE(one.bound, one.step) << to_string(one.run.mesh);
    EXPECT_LE(all.bound, one.bound);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Twelve, SmallCases,
    ::testing::Combine(
        ::testing::Values(
            Case{"gpt_1_7b_on_8_A100", "gpt_1_7b", "a100_sxm4_80gb_hosts", 8, 32, 24, 2048, false},
            Case{"gpt_1_7b_on_16_3090", "gpt_1_7b", "3090_hosts", 16, 32, 24, 1024, false},
            Case{"gpt2_large_on_4_3090", "gpt2_large", "3090_hosts", 4, 16, 36, 1024, false},
            Case{"gpt2_large_on_16_3090", "gpt2_large", "3090_hosts", 16, 64, 36, 1024, false},
            Case{"gpt_22b_on_32_A100", "gpt_22b", "a100_sxm4_80gb_hosts", 32, 16, 48, 2048, false},
            Case{"gpt_39b_on_64_A100", "gpt_39b", "a100_sxm4_80gb_hosts", 64, 64, 48, 2048, false},
            Case{"llama2_7b_on_8_H100", "llama2_7b", "h100_sxm_hosts", 8, 16, 32, 4096, false},
            Case{"llama3_8b_on_4_H100", "llama3_8b", "h100_sxm_hosts", 4, 12, 32, 8192, false},
            Case{"llama3_8b_on_16_H100", "llama3_8b", "h100_sxm_hosts", 16, 32, 31, 8192, false},
            Case{"llama3_70b_on_64_H100", "llama3_70b", "h100_sxm_hosts", 64, 32, 80, 4096, false},
            Case{"mixtral_on_16_H100", "mixtral_8x7b", "h100_sxm_hosts", 16, 16, 16, 4096, true},
            Case{"qwen3_on_32_H100", "qwen3_30b_a3b", "h100_sxm_hosts", 32, 32, 24, 4096, true}),
        ::testing::Bool()),
    [](const auto& info) {
      return std::get<0>(info.param).name + (std::get<1>(info.param) ? "_beside" : "_behind");
    });

/// "": nothing was refused.
std::string refusal_of(const MeshQuestion& question) {
  const Network network = read_network(kConfigs / "clusters/h100_sxm_hosts.yaml");
  try {
    find_mesh(question, network);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(MeshQuestions, WhatDividesNothingIsNamedWithTheNearestThatDoes) {
  const MeshQuestion good =
      question_of({"", "llama3_8b", "h100_sxm_hosts", 16, 32, 32, 8192, false});
  MeshQuestion bad = good;
  bad.tp = {3};
  EXPECT_EQ(refusal_of(bad), "tp 3 does not divide the 16 devices; nearest: tp 2 or 4");
  bad = good, bad.run.architecture.heads = 36, bad.run.architecture.kv_heads = 36, bad.tp = {8};
  EXPECT_EQ(refusal_of(bad), "tp 8 does not divide the 36 heads; nearest: tp 6 or 9");
  bad = good, bad.dp = {16}, bad.run.global_batch = 24;
  EXPECT_EQ(refusal_of(bad),
            "dp 16 does not divide the 24 sequences of the global batch; nearest: dp 12 or 24");
  bad = good, bad.pp = {16}, bad.run.architecture.layers = 8;
  EXPECT_EQ(refusal_of(bad),
            "pp 16 x 1 stages a rank are more than the 10 layers with embedding and head; "
            "nearest: 10 stages");
  bad = good, bad.tp = {4}, bad.pp = {8}, bad.dp = {2};
  EXPECT_EQ(refusal_of(bad),
            "no sizes of tp, cp, pp and dp have the product 16, the number of devices; leave one "
            "of them open (search)");
}

}  // namespace
}  // namespace pfeife
