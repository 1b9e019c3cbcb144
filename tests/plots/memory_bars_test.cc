// What fills the memory of each rank, and the ribbon of layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plots/figure/svg.h"
#include "plots/timeline/pictures.h"
#include "tests/plots/table_cells.h"
#include "tests/plots/xml.h"

namespace pfeife {
namespace {

using testing::HasSubstr;
using testing::Not;

Bytes gib(std::int64_t count) { return Bytes{count * kGiB.value}; }

MemoryContents contents(std::int64_t parameters, std::int64_t saved, std::int64_t held) {
  return {.parameters = gib(parameters), .saved = gib(saved), .held_for_weights = gib(held)};
}

double width(const XmlElement& box) { return std::atof(box.attribute("width").c_str()); }

TEST(MemoryBars, AreAsLongAsTheirBytesAndSayThemAsTooltips) {
  const std::vector<PlanMemory> plans{{"a", {contents(2, 6, 0), contents(2, 1, 4)}, {}}};
  const XmlElement root = parse_xml(memory_bars_svg(plans, 1000));
  const auto boxes = by_class(root, "content");
  ASSERT_EQ(boxes.size(), 5U);
  EXPECT_NEAR(width(*boxes[1]), 3 * width(*boxes[0]), 0.05);
  EXPECT_NEAR(width(*boxes[4]), 2 * width(*boxes[2]), 0.05);
  EXPECT_EQ(all_text(*boxes[4]), "rank 1: held for W, 4.000 GiB, 57.1 %");
  const std::string text = all_text(root);
  EXPECT_THAT(text, HasSubstr("parameterssaved for backwardheld for W")) << "those that are there";
  EXPECT_THAT(text, Not(HasSubstr("optimizer")));
  EXPECT_TRUE(by_class(root, "limit").empty());
}

// 100 of a limit of 10: cut at twice the limit, and the others are still to be seen.
TEST(MemoryBars, AnOutlierIsCutAtTwiceTheLimitAndSaysWhatItIs) {
  const std::vector<PlanMemory> plans{{"a", {contents(2, 3, 0)}, {gib(10)}},
                                      {"b", {contents(2, 98, 0)}, {gib(10)}}};
  const XmlElement root = parse_xml(memory_bars_svg(plans, 1000));
  const auto boxes = by_class(root, "content");
  ASSERT_EQ(boxes.size(), 4U);
  EXPECT_NEAR(width(*boxes[2]) + width(*boxes[3]), 10 * width(*boxes[0]), 0.1);
  EXPECT_THAT(all_text(root), HasSubstr("100.0 GiB !"));
  EXPECT_EQ(by_class(root, "torn").size(), 1U);
  EXPECT_THAT(all_text(root), HasSubstr("limit 10.00 GiB"));
  const auto limits = by_class(root, "limit");
  ASSERT_EQ(limits.size(), 3U);  // one is in the legend
  EXPECT_EQ(by_class(root, "halo").size(), limits.size());
  const double left = std::atof(boxes[0]->attribute("x").c_str());
  EXPECT_NEAR(std::atof(limits[1]->attribute("x1").c_str()) - left, 5 * width(*boxes[0]), 0.1);
}

Ribbon ribbon() {
  return {.name = "looped",
          .rank_of_stage = {RankId{0}, RankId{1}, RankId{0}},
          .layers = {{"embed", 0, Nanoseconds{1'000'000}, gib(3), gib(1)},
                     {"block & more", 1, Nanoseconds{2'000'000}, gib(1), gib(1)},
                     {"head", 2, Nanoseconds{1'000'000}, gib(2), gib(0)}}};
}

TEST(Partition, LayersAreAsWideAsTheirTimeAndAsTheirMemoryAndLookLikeTheirRank) {
  const XmlElement root = parse_xml(partition_svg(ribbon(), 1000));
  const auto boxes = by_class(root, "layers");
  ASSERT_EQ(boxes.size(), 6U);
  EXPECT_NEAR(width(*boxes[1]), 2 * width(*boxes[0]), 0.05);  // by time
  EXPECT_NEAR(width(*boxes[3]), 2 * width(*boxes[4]), 0.05);  // by memory
  for (const std::size_t band : {0U, 3U}) {
    EXPECT_EQ(boxes[band]->attribute("fill"), boxes[band + 2]->attribute("fill"));
    EXPECT_NE(boxes[band]->attribute("fill"), boxes[band + 1]->attribute("fill"));
  }
  EXPECT_EQ(all_text(*boxes[1]),
            "rank 1, stage 1: layer 1, block & more, 2.000 ms; 1.000 GiB held, 1.000 GiB saved a "
            "microbatch");
  EXPECT_EQ(by_class(root, "cut").size(), 4U);
  Ribbon small = ribbon();
  small.layers = {{"a", 0, Nanoseconds{1'000'000}, gib(3), Bytes{kGiB.value / 4}}};
  EXPECT_THAT(all_text(parse_xml(partition_svg(small, 1000))),
              HasSubstr("3.000 GiB held, 0.2500 GiB saved"))
      << "one unit";
}

TEST(Partition, ThinLayersAreDrawnTogetherAndNoneIsLost) {
  Ribbon many = ribbon();
  many.layers.clear();
  for (std::size_t l = 0; l < 3000; ++l)
    many.layers.push_back({"l", l / 1000, Nanoseconds{1000}, Bytes{1}, Bytes{1}});
  const XmlElement root = parse_xml(partition_svg(many, 1000));
  const auto boxes = by_class(root, "layers");
  EXPECT_LT(boxes.size(), 450U);
  double whole = 0;
  for (const XmlElement* box : boxes) whole += width(*box);
  EXPECT_NEAR(whole, 2 * (1000 - 12 - 84 - 12), 3);
  EXPECT_EQ(partition_svg({}, 1000), "");
}

}  // namespace
}  // namespace pfeife
