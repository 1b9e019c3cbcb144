#include "planner/io/model/profile_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "planner/io/model/pt2_reader.h"
#include "planner/ir/basics/error.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

Graph tiny() { return read_pt2(PFEIFE_SOURCE_DIR "/configs/models/tiny_mlp.pt2", 2); }

Profile some_profile(const Graph& graph) {
  Profile profile;
  profile.graph_digest = graph.digest;
  profile.device_kind = "x86_core";
  profile.training = {Precision::Fp32, Optimizer::Sgd, 2};
  profile.source = FigureSource::Measured;
  profile.origin = "2026-01-01, a \"quoted\" machine: two cores";
  profile.executor_overhead = Nanoseconds{321};
  profile.stage_overheads = {Nanoseconds{12'345}, Nanoseconds{0}, Nanoseconds{7}};
  profile.message_overhead = Nanoseconds{6543};
  profile.variation = MeasuredVariation{0.0125, 1.0 / 3};
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto i = static_cast<std::int64_t>(n);
    NodeProfile node{Nanoseconds{i}, Nanoseconds{2 * i}, Nanoseconds{3 * i},
                     Bytes{i},       Bytes{i / 2},       PassBytes::same(Bytes{7})};
    if (n % 3 == 0) node.temporary = {Bytes{7}, Bytes{i}, Bytes{8}, Bytes{9}};
    if (n % 2) node.forward_spread = Nanoseconds{5};
    profile.nodes.push_back(node);
  }
  profile.storages.push_back({ValueId{1}, Bytes{64}, {NodeId{0}, NodeId{3}}, {NodeId{3}}});
  profile.parameters.assign(graph.parameters.size(), {Nanoseconds{9}, Bytes{8}});
  return profile;
}

class ProfileFile : public ::testing::Test {
 protected:
  std::filesystem::path file_ = std::filesystem::temp_directory_path() /
                                ("pfeife_profile_" + std::to_string(::getpid()) + ".yaml");
  void TearDown() override { std::filesystem::remove(file_); }
  void write(const std::string& text) { std::ofstream(file_) << text; }
  std::string refusal(const Graph& graph) {
    return pfeife::message_of([&] { read_profile(file_, graph); });
  }
  static std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }
};

TEST_F(ProfileFile, ReadsWhatItWrote) {
  const Graph graph = tiny();
  const Profile profile = some_profile(graph);
  write(profile_text(profile, graph));
  EXPECT_EQ(read_profile(file_, graph), profile);
}

TEST_F(ProfileFile, WithoutVariationIsAsItWasBeforeThereWasOne) {
  const Graph graph = tiny();
  Profile profile = some_profile(graph);
  profile.variation.reset();
  const std::string text = profile_text(profile, graph);
  EXPECT_EQ(text.find("variation"), std::string::npos);
  write(text);
  EXPECT_EQ(read_profile(file_, graph), profile);
}

TEST_F(ProfileFile, VariationIsReadWithoutTheGraph) {
  const Graph graph = tiny();
  Profile profile = some_profile(graph);
  write(profile_text(profile, graph));
  EXPECT_EQ(read_profiled_runtime(file_).variation, profile.variation);
  EXPECT_EQ(read_profiled_runtime(file_).executor_overhead, profile.executor_overhead);
  profile.variation.reset();
  write(profile_text(profile, graph));
  EXPECT_EQ(read_profiled_runtime(file_).variation, std::nullopt);
}

TEST_F(ProfileFile, WithoutOverheadsIsAsItWasBeforeThereWereAny) {
  const Graph graph = tiny();
  Profile profile = some_profile(graph);
  write(profile_text(profile, graph));
  EXPECT_EQ(read_profiled_runtime(file_).stage_overheads, profile.stage_overheads);
  EXPECT_EQ(read_profiled_runtime(file_).message_overhead, profile.message_overhead);
  profile.stage_overheads.reset(), profile.message_overhead.reset();
  const std::string text = profile_text(profile, graph);
  EXPECT_EQ(text.find("overheads"), std::string::npos);
  EXPECT_EQ(text.find("message"), std::string::npos);
  write(text);
  EXPECT_EQ(read_profile(file_, graph), profile);
  EXPECT_EQ(read_profiled_runtime(file_).stage_overheads, std::nullopt);
  EXPECT_EQ(read_profiled_runtime(file_).message_overhead, std::nullopt);
}

TEST_F(ProfileFile, RefusesOverheadsOfStagesThatAreNone) {
  const Graph graph = tiny();
  const std::string text = profile_text(some_profile(graph), graph);
  write(replaced(text, "forward: 12345 ns", "forward: -1 ns"));
  EXPECT_NE(refusal(graph).find("which is negative"), std::string::npos) << refusal(graph);
  write(replaced(text, "message_overhead: 6543 ns", "message_overhead: -1 ns"));
  EXPECT_NE(refusal(graph).find("which is negative"), std::string::npos) << refusal(graph);
  write(replaced(text, "backward_weight: 7 ns", "backward_weights: 7 ns"));
  EXPECT_NE(refusal(graph).find("did you mean \"backward_weight\"?"), std::string::npos)
      << refusal(graph);
}

TEST_F(ProfileFile, RefusesVariationThatIsNone) {
  const Graph graph = tiny();
  const std::string text = profile_text(some_profile(graph), graph);
  write(replaced(text, "cv: 0.0125", "cv: -0.5"));
  EXPECT_NE(refusal(graph).find("variation.cv"), std::string::npos) << refusal(graph);
  write(replaced(text, "cv: 0.0125", "cvs: 0.0125"));
  EXPECT_NE(refusal(graph).find("did you mean \"cv\"?"), std::string::npos) << refusal(graph);
}

TEST_F(ProfileFile, RefusesOtherGraphsMissingNodesAndUnknownNamesWithThePlace) {
  const Graph graph = tiny();
  const std::string text = profile_text(some_profile(graph), graph);
  write(replaced(text, graph.digest, std::string(64, '0')));
  EXPECT_NE(refusal(graph).find("another graph"), std::string::npos);
  write(replaced(text, "\"" + graph.nodes[2].name + "\"", "\"" + graph.nodes[1].name + "\""));
  EXPECT_NE(refusal(graph).find("listed twice"), std::string::npos);
  write(replaced(text, "\"" + graph.nodes[2].name + "\"", "\"linaer_9\""));
  EXPECT_NE(refusal(graph).find("the graph has no 'linaer_9'"), std::string::npos);
  EXPECT_NE(refusal(graph).find(file_.string() + ":"), std::string::npos);
  write(replaced(text, "321 ns", "321"));
  EXPECT_NE(refusal(graph).find("executor_overhead"), std::string::npos);
}

TEST(CheckProfile, NamesWhatDiffersFromWhatIsAskedFor) {
  const Profile profile = some_profile(tiny());
  const auto refused = [&](const Training& asked, const std::string& kind) {
    try {
      check_profile(profile, "p.yaml", asked, kind);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused(profile.training, "x86_core"), "");
  EXPECT_NE(refused(profile.training, "h200").find("device kind x86_core"), std::string::npos);
  EXPECT_NE(refused({Precision::Tf32, Optimizer::Sgd, 2}, "x86_core").find("precision fp32"),
            std::string::npos);
  EXPECT_NE(refused({Precision::Fp32, Optimizer::Sgd, 4}, "x86_core").find("microbatch size 2"),
            std::string::npos);
  EXPECT_NE(refused({Precision::Fp32, Optimizer::Adam, 2}, "x86_core").find("optimizer sgd"),
            std::string::npos);
}

}  // namespace
}  // namespace pfeife
