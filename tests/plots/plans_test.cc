// All plans of a case on one time axis, and where the time of their ranks goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plots/figure/axis.h"
#include "plots/timeline/pictures.h"
#include "tests/plots/example_traces.h"
#include "tests/plots/table_cells.h"
#include "tests/plots/xml.h"

namespace pfeife {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<ComparedPlan> two_plans() {
  return {{"fast", example_trace({}), true},
          {"slow", example_trace({.stages_per_rank = 2}), false}};
}

/// Left and right end of every box of a path, in pixels.
std::vector<std::pair<double, double>> boxes_of(const XmlElement& path) {
  std::vector<std::pair<double, double>> boxes;
  const std::string data = path.attribute("d");
  for (std::size_t at = 0; (at = data.find('M', at)) != std::string::npos; ++at) {
    double x = 0, y = 0, width = 0;
    if (std::sscanf(data.c_str() + at, "M%lf %lfh%lf", &x, &y, &width) == 3)
      boxes.emplace_back(x, x + width);
  }
  return boxes;
}

// The first F lasts 1 ms, the step of the first plan 15.9: its last box ends 15.9 widths behind.
TEST(Plans, StandOnOneAxisThatIsTrueToScale) {
  const XmlElement root = parse_xml(plans_svg(two_plans(), {}));
  const auto plans = by_class(root, "plan");
  ASSERT_EQ(plans.size(), 2U);
  double left[2] = {1e9, 1e9}, right[2] = {0, 0}, unit = 0;
  std::size_t count = 0;
  for (std::size_t p = 0; p < 2; ++p)
    for (const XmlElement* path : by_class(*plans[p], "boxes"))
      for (const auto& [from, to] : boxes_of(*path)) {
        if (p == 0 && from < left[0]) unit = to - from;
        left[p] = std::min(left[p], from), right[p] = std::max(right[p], to);
        ++count;
      }
  EXPECT_EQ(left[0], left[1]);
  EXPECT_NEAR(right[0] - left[0], 15.9 * unit, 0.3);
  std::size_t computed = 0;
  for (const ComparedPlan& plan : two_plans())
    for (const Event& event : plan.trace.events) computed += event.kind != TaskKind::Transfer;
  EXPECT_EQ(count, computed) << "every computation has a box";
  EXPECT_THAT(all_text(root), HasSubstr("does not fit"));
}

TEST(Plans, TheBoundIsALineAtItsTime) {
  ComparedPlan plan = two_plans().front();
  const Nanoseconds step = step_time(plan.trace);
  const auto at = [&](Nanoseconds bound) {
    plan.bound = CoveringBound{bound, "1f1b"};
    const XmlElement root = parse_xml(plans_svg(std::span(&plan, 1), {}));
    return by_class(root, "bound").at(0)->number("x1");
  };
  EXPECT_NEAR(at(step) - at(step / 2), at(step / 2) - at(Nanoseconds{0}), 0.02);
  EXPECT_TRUE(by_class(parse_xml(plans_svg(two_plans(), {})), "bound").empty());
}

// The third of four plans is of another class, and faster than the bound: the line passes it by. It
// stands by itself for the last one, and says each time of which class it is.
TEST(Plans, TheBoundGoesThroughPlansOfItsClassAlone) {
  std::vector<ComparedPlan> plans = two_plans();
  plans.push_back(
      {"other", example_trace({.forward = Nanoseconds{10}, .backward = Nanoseconds{10}}), true});
  plans.push_back(plans[1]);
  for (const std::size_t p : {0, 1, 3})
    plans[p].bound = CoveringBound{step_time(plans[0].trace) / 2, "1f1b and gpipe"};
  const XmlElement root = parse_xml(plans_svg(plans, {}));
  const auto lines = by_class(root, "bound");
  ASSERT_EQ(lines.size(), 2U);
  std::vector<std::pair<double, double>> rows;  // [plan] top and bottom of its boxes' ground
  for (const XmlElement* plan : by_class(root, "plan")) {
    rows.emplace_back(1e9, 0);
    for (const XmlElement* rect : by_name(*plan, "rect")) {
      const double top = rect->number("y");
      rows.back() = {std::min(rows.back().first, top),
                     std::max(rows.back().second, top + rect->number("height"))};
    }
  }
  const auto crosses = [&](const XmlElement* line, std::size_t p) {
    return line->number("y1") < rows[p].second && rows[p].first < line->number("y2");
  };
  EXPECT_TRUE(crosses(lines[0], 0) && crosses(lines[0], 1) && crosses(lines[1], 3));
  EXPECT_FALSE(crosses(lines[0], 2) || crosses(lines[1], 2));
  EXPECT_THAT(all_text(root), HasSubstr("no plan of 1f1b and gpipe is below 7.950 ms"));
  EXPECT_THAT(all_text(root), Not(HasSubstr("no plan is below")));
}

// Steps of 1.59 s are 1590 ms, as a table has them.
TEST(Plans, SayTheirTimesInMillisecondsAndHowMuchFasterTheyAre) {
  const Trace trace = example_trace({.forward = Nanoseconds{100'000'000},
                                     .backward = Nanoseconds{200'000'000},
                                     .transfer = Nanoseconds{10'000'000},
                                     .optimizer = Nanoseconds{50'000'000}});
  const std::vector<ComparedPlan> plans{{"fast", trace, true, "1.36x of 1f1b"}};
  const std::string text = all_text(parse_xml(plans_svg(plans, {.title = "a model on a cluster"})));
  EXPECT_THAT(text, HasSubstr("1590 ms"));
  EXPECT_THAT(text, HasSubstr("1.36x of 1f1b"));
  EXPECT_THAT(text, HasSubstr("a model on a cluster"));
}

TEST(Plans, TheLegendNamesWhatCanBeSeen) {
  std::vector<ComparedPlan> plans = two_plans();
  EXPECT_THAT(plans_svg(plans, {}), HasSubstr("optimizer"));
  for (ComparedPlan& plan : plans)
    for (Event& event : plan.trace.events)
      if (event.kind == TaskKind::Optimizer) event.end = event.start + Nanoseconds{100};
  EXPECT_THAT(plans_svg(plans, {}), Not(HasSubstr("optimizer")));
}

TEST(Plans, AreSmallerThanTimelinesAndEqualForEqualInput) {
  const std::vector<ComparedPlan> plans{
      {"a", example_trace({.ranks = 8, .microbatches = 64}), true}};
  const std::string svg = plans_svg(plans, {});
  EXPECT_EQ(svg, plans_svg(plans, {}));
  EXPECT_LT(svg.size(), 60 * plans[0].trace.events.size());
}

// By hand, 1F1B on two ranks (timeline_test.cc): rank 0 computes 4 F of 1 ms and 4 B of 2 ms and
// steps 0.5 ms; of its 15.9 ms it is idle for 3.4. Rank 1 begins at 1.1 and ends at 13.8.
TEST(RankTimes, AddUpToTheStepAndAreAsByHand) {
  const Trace trace = example_trace({});
  const auto of = [&](std::size_t rank, const std::string& name) {
    for (const plots::Cause& cause : rank_times(trace, RankId{rank}))
      if (cause.name == name) return milliseconds(cause.time);
    return -1.0;
  };
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_DOUBLE_EQ(of(rank, "forward"), 4);
    EXPECT_DOUBLE_EQ(of(rank, "backward"), 8);
    EXPECT_DOUBLE_EQ(of(rank, "optimizer"), 0.5);
    EXPECT_DOUBLE_EQ(of(rank, "idle: imbalance"), 0) << "both have the same to do";
  }
  EXPECT_DOUBLE_EQ(of(0, "idle: warm-up"), 0);
  EXPECT_DOUBLE_EQ(of(1, "idle: warm-up"), 1) << "the tenth behind it is the transfer's";
  EXPECT_GT(of(1, "idle: cool-down"), 1.5);
  for (const Example& example : {Example{}, Example{.ranks = 4, .microbatches = 8, .split = true},
                                 Example{.ranks = 3, .microbatches = 5, .stages_per_rank = 2}}) {
    const Trace one = example_trace(example);
    for (std::size_t rank = 0; rank < one.ranks; ++rank) {
      Nanoseconds sum{0};
      for (const plots::Cause& cause : rank_times(one, RankId{rank})) {
        EXPECT_GE(cause.time, Nanoseconds{0}) << cause.name;
        sum += cause.time;
      }
      EXPECT_EQ(sum, step_time(one));
    }
  }
}

TEST(RankTimes, ABarARankIsToScale) {
  const XmlElement root = parse_xml(rank_times_svg(two_plans(), 1200));
  double widths = 0;
  for (const XmlElement* rect : by_class(root, "cause")) widths += rect->number("width");
  const auto plans = two_plans();
  const double longest =
      std::max(milliseconds(step_time(plans[0].trace)), milliseconds(step_time(plans[1].trace)));
  const double steps =
      2 * (milliseconds(step_time(plans[0].trace)) + milliseconds(step_time(plans[1].trace)));
  EXPECT_NEAR(widths, (1200 - 12 - 34 - 12 - 80) * steps / longest, 1);
  for (const ComparedPlan& plan : plans)
    EXPECT_THAT(all_text(root), HasSubstr(to_string(plan.trace.source) + " " +
                                          plots::rounded(step_time(plan.trace))));
}

}  // namespace
}  // namespace pfeife
