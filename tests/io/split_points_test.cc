#include "planner/io/plan/split_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "planner/io/plan/schedule_csv.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

using ::testing::ElementsAre;

/// A layer of a module, which ends one, or begins one.
struct Part {
  std::string path, ends, begins;
};
Layers with_modules(const std::vector<Part>& parts) {
  Layers layers;
  for (const Part& part : parts)
    layers.layers.push_back({.name = "n" + std::to_string(layers.layers.size()),
                             .module_path = part.path,
                             .ends_module = part.ends,
                             .begins_module = part.begins});
  return layers;
}

// A block of an attention and a sum, an addition of the model itself, a block of two layers.
const Layers kModel = with_modules({{"embed", "embed", "embed"},
                                    {"", "", ""},
                                    {"block.1.attn", "block.1.attn", "block.1"},
                                    {"block.1", "block.1", ""},
                                    {"block.2", "", "block.2"},
                                    {"block.2", "block.2", ""},
                                    {"", "", ""}});

TEST(SplitPoints, AreTheEndOfTheModuleOnTheLeftOrTheBeginningOfTheOneOnTheRight) {
  EXPECT_THAT(split_points(kModel, {{0, 1, 5}}),
              ElementsAre(SplitPoint{"embed", false, ""}, SplitPoint{"block.1", true, ""},
                          SplitPoint{"block.2", false, ""}));
  EXPECT_THAT(split_points(kModel, {{3}}), ElementsAre(SplitPoint{"block.1", false, ""}));
}

TEST(SplitPoints, ASecondCutAtAModuleIsNone) {
  EXPECT_MESSAGE(split_points(kModel, {{1, 3}})[1].why_not);
}

TEST(SplitPoints, InsideOfAModuleThereIsNone) {
  EXPECT_EQ(split_points(kModel, {{4}})[0].module, "");
  EXPECT_MESSAGE(split_points(kModel, {{4}})[0].why_not);
  EXPECT_MESSAGE(split_points(with_modules({{}, {}}), {{0}})[0].why_not);
}

TEST(SplitPoints, NameTheModulesToWrapForRecomputation) {
  Plan plan;
  plan.partition = {{3}};
  const auto modules = [&](int first, int last) {
    plan.activations.blocks = {{LayerId{first}, LayerId{last}}};
    return nlohmann::json::parse(split_points_text(kModel, plan, "", "none"))["recompute"][0];
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(modules(2, 3)["modules"], Names{"block.1"});
  EXPECT_EQ(modules(4, 5)["layers"], (std::vector{4, 5}));
  EXPECT_EQ(modules(2, 5)["modules"], (Names{"block.1", "block.2"})) << "the list is no module";
  EXPECT_EQ(modules(2, 2)["modules"], Names{"block.1.attn"});
  EXPECT_EQ(modules(4, 4)["modules"], Names{});
  EXPECT_EQ(modules(4, 4)["why_not"], "some of it is in no submodule of its own");
}

// Stage 1 runs its microbatches the other way round.
TEST(SplitPoints, NameTheMicrobatchOfEachStageThatIsNotRecomputed) {
  Plan plan;
  plan.partition = {{3}};
  plan.schedule = read_schedule("0F0,0F1,0B0,0B1\n1F1,1F0,1B1,1B0\n", "s");
  const auto json = [&] {
    return nlohmann::json::parse(split_points_text(kModel, plan, "", "none"));
  };
  EXPECT_FALSE(json().contains("recompute_except_microbatch"));
  plan.activations.stages = {true, true}, plan.activations.except_last = true;
  EXPECT_EQ(json()["recompute_except_microbatch"], (std::vector{1, 0}));
}

TEST(SplitPoints, ANewOrderHasNone) {
  Layers reordered = kModel;
  reordered.node_order = {NodeId{1}, NodeId{0}};
  EXPECT_MESSAGE(split_points(reordered, {{0}})[0].why_not);
}

/// Three stages of two layers, run as 1f1b or with I and W apart; a value leads from each layer to
/// the next.
struct Chain {
  Layers layers = with_modules(std::vector<Part>(6));
  Plan plan;
  explicit Chain(bool split) {
    plan.partition = {{1, 3}};
    for (std::int64_t s = 0; s < 3; ++s) {
      plan.placement.rank_of_stage.emplace_back(s);
      std::vector<Cell> row{Action{Op::Forward, StageId{s}, MicrobatchId{0}}};
      for (const Op op :
           split ? std::vector{Op::BackwardInput, Op::BackwardWeight} : std::vector{Op::Backward})
        row.emplace_back(Action{op, StageId{s}, MicrobatchId{0}});
      plan.schedule.rows.push_back(row);
    }
    for (std::int64_t l = 0; l < 6; ++l) {
      if (l < 5)
        layers.values.push_back(
            {"n" + std::to_string(l), LayerId{l}, {LayerId{l + 1}}, Bytes{8}, Bytes{8}, {}});
      layers.parameters.push_back({.name = "p", .users = {LayerId{l}}});
    }
  }
  std::string refusal() const { return torch_refusal(layers, plan); }
};

// What torch 2.11 itself does with these is in torch_export_test.sh.
TEST(TorchRefusal, AChainIsRun) {
  EXPECT_EQ(Chain(false).refusal(), "");
  EXPECT_EQ(Chain(true).refusal(), "");
}

TEST(TorchRefusal, AValueThatPassesOverAStageIsNot) {
  Chain chain(false);
  chain.layers.values[1].consumers.push_back(LayerId{4});
  EXPECT_MESSAGE(chain.refusal());
}

TEST(TorchRefusal, AParameterThatStagesShareIsNot) {
  Chain chain(false);
  chain.layers.parameters[0] = {
      .name = "tied", .gradient = Bytes{8}, .users = {LayerId{0}, LayerId{1}}};
  EXPECT_EQ(chain.refusal(), "");  // both in the first stage
  chain.layers.parameters[0].users = {LayerId{0}, LayerId{5}};
  EXPECT_MESSAGE(chain.refusal());
  chain.layers.parameters[0].gradient = Bytes{0};  // not trained
  EXPECT_EQ(chain.refusal(), "");
}

TEST(TorchRefusal, AResidualInItsStageIsNotWhereBackwardIsSplit) {
  for (const bool split : {false, true}) {
    Chain chain(split);
    chain.layers.values[2].consumers.push_back(LayerId{4});  // layer 2 to 3, and over the cut
    if (split) {
      EXPECT_MESSAGE(chain.refusal());
      chain.layers.parameters[3].users.clear();  // layer 3 keeps nothing for its W
    }
    EXPECT_EQ(chain.refusal(), "");
  }
}

TEST(TorchRefusal, AValueThatItsLayerGoesOnToReadIsNotWhereBackwardIsSplit) {
  Chain chain(true);
  chain.layers.values[3].name = "an operator before n3";
  EXPECT_MESSAGE(chain.refusal());
}

TEST(TorchRefusal, TheFirstStageHasNoBackwardInputThere) {
  Chain chain(true);
  chain.layers.values[0].consumers.push_back(LayerId{2});
  EXPECT_EQ(chain.refusal(), "");
}

TEST(SplitPoints, TheFileHasASplitSpecOnlyIfEveryCutIsOne) {
  Plan plan;
  plan.model = "m.pt2";
  plan.spec.microbatches = 4;
  plan.partition = {{0, 3}};
  Layers part_only = kModel;
  part_only.layers[3].ends_module = part_only.layers[4].begins_module = "";
  plan.placement.rank_of_stage = {RankId{0}, RankId{1}, RankId{0}};
  const auto whole = nlohmann::json::parse(split_points_text(kModel, plan, "s.csv", ""));
  EXPECT_EQ(whole["split_spec"], (nlohmann::json{{"embed", "END"}, {"block.1", "END"}}));
  EXPECT_EQ(whole["rank_of_stage"], (nlohmann::json{0, 1, 0}));
  EXPECT_EQ(whole["schedule"], "s.csv");
  EXPECT_TRUE(whole["schedule_why_not"].is_null());
  const auto part = nlohmann::json::parse(split_points_text(part_only, plan, "", "a skip"));
  EXPECT_TRUE(part["split_spec"].is_null());
  EXPECT_EQ(part["split_points"][0]["module"], "embed");
  EXPECT_TRUE(part["split_points"][1]["module"].is_null());
  EXPECT_EQ(part["split_points"][1]["last_operator"], "n3") << "where torch cannot cut, too";
  EXPECT_EQ(part["split_points"][1]["in_module"], "block.1");
  EXPECT_TRUE(part["schedule"].is_null());
  EXPECT_EQ(part["schedule_why_not"], "a skip");
}

}  // namespace
}  // namespace pfeife
