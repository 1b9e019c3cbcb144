#include "plots/figure/line_looks.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "tests/plots/sight.h"

namespace pfeife::plots {
namespace {

constexpr double kApart = 20;  // CIE76

bool colours_differ(const LineLook& a, const LineLook& b) {
  return std::ranges::all_of(
      kSights, [&](const Matrix& sight) { return distance(a.color, b.color, sight) >= kApart; });
}

TEST(LineLooks, AnyTwoOfSixteenDifferInTwoOfColourDashAndMarkForEverySight) {
  for (std::size_t i = 0; i < kLineLooks; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const LineLook a = line_look(i), b = line_look(j);
      const int differences = colours_differ(a, b) + (a.dash != b.dash) + (a.mark != b.mark);
      EXPECT_GE(differences, 2) << i << " and " << j;
    }
}

TEST(LineLooks, AllDifferInDashOrMarkWhereColoursAreLost) {
  std::set<std::pair<std::string_view, Mark>> looks;
  for (std::size_t i = 0; i < kLineLooks; ++i) looks.emplace(line_look(i).dash, line_look(i).mark);
  EXPECT_EQ(looks.size(), kLineLooks);
}

TEST(LineLooks, ThePlanIsTheSameInEveryChartAndLikeNoOther) {
  const LineLook plan = plan_look();
  EXPECT_EQ(plan.color, kInk);
  for (std::size_t i = 0; i < kLineLooks; ++i) {
    EXPECT_TRUE(colours_differ(plan, line_look(i))) << i;
    EXPECT_GT(plan.width, line_look(i).width);
  }
}

TEST(LineLooks, StandOutFromPaper) {
  for (std::size_t i = 0; i < kLineLooks; ++i)
    EXPECT_GE(contrast(line_look(i).color, kPaper), 3) << hex(line_look(i).color);
}

}  // namespace
}  // namespace pfeife::plots
