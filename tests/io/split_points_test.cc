#include "planner/io/plan/split_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pfeife {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A model with a layer for each module path.
Layers with_modules(const std::vector<std::string>& paths) {
  Layers layers;
  for (const std::string& path : paths)
    layers.layers.push_back(
        {.name = "n" + std::to_string(layers.layers.size()), .module_path = path});
  return layers;
}

// Worked by hand: two blocks of an attention and a sum, an addition of the model itself, a head.
// block.1 is not block.10.
const Layers kModel =
    with_modules({"embed", "", "block.1.attn", "block.1", "block.10.attn", "block.10", "head"});

TEST(SplitPoints, AreTheEndOfTheModuleOnTheLeftOrTheBeginningOfTheOneOnTheRight) {
  EXPECT_THAT(split_points(kModel, {{0, 1, 3, 4, 5}}),
              ElementsAre(SplitPoint{"embed", false, ""}, SplitPoint{"block.1.attn", true, ""},
                          SplitPoint{"block.1", false, ""}, SplitPoint{"block.10.attn", false, ""},
                          SplitPoint{"block.10", false, ""}));
}

TEST(SplitPoints, InsideOfAModuleThereIsNone) {
  const auto points = split_points(with_modules({"a", "b", "b", "b.c", "b"}), {{0, 1, 2}});
  EXPECT_EQ(points[0].module, "a");
  EXPECT_EQ(points[1].module, "");
  EXPECT_THAT(points[1].why_not, HasSubstr("inside of b"));
  EXPECT_EQ(points[2], (SplitPoint{"b.c", true, ""}));
}

TEST(SplitPoints, AModuleThatIsCalledTwiceIsNone) {
  EXPECT_EQ(split_points(with_modules({"a", "b", "a", "b"}), {{1}})[0].module, "");
}

TEST(SplitPoints, ANewOrderHasNone) {
  Layers reordered = kModel;
  reordered.order = "another";
  EXPECT_THAT(split_points(reordered, {{0}})[0].why_not, HasSubstr("captured order"));
}

TEST(SplitPoints, TheFileHasASplitSpecOnlyIfEveryCutIsOne) {
  Plan plan;
  plan.model = "m.pt2";
  plan.spec.microbatches = 4;
  plan.partition = {{0, 3}};
  plan.placement.rank_of_stage = {RankId{0}, RankId{1}, RankId{0}};
  const auto whole = nlohmann::json::parse(split_points_text(kModel, plan, "s.csv", ""));
  EXPECT_EQ(whole["split_spec"], (nlohmann::json{{"embed", "END"}, {"block.1", "END"}}));
  EXPECT_EQ(whole["rank_of_stage"], (nlohmann::json{0, 1, 0}));
  EXPECT_EQ(whole["schedule"], "s.csv");
  EXPECT_TRUE(whole["schedule_why_not"].is_null());
  const auto part = nlohmann::json::parse(
      split_points_text(with_modules({"a", "b", "b", "b", "b"}), plan, "", "a skip"));
  EXPECT_TRUE(part["split_spec"].is_null());
  EXPECT_EQ(part["split_points"][0]["module"], "a");
  EXPECT_TRUE(part["split_points"][1]["module"].is_null());
  EXPECT_EQ(part["split_points"][1]["last_operator"], "n3") << "where torch cannot cut, too";
  EXPECT_EQ(part["split_points"][1]["in_module"], "b");
  EXPECT_TRUE(part["schedule"].is_null());
  EXPECT_EQ(part["schedule_why_not"], "a skip");
}

}  // namespace
}  // namespace pfeife
