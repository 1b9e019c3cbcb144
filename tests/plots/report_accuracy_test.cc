// Charts of the report whose scales have to be true: predicted over measured, the search's course,
// time against memory. And what no chart may do: mix units, or show figures that nobody reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "plots/report/parts.h"
#include "tests/plots/example_report.h"
#include "tests/plots/table_cells.h"
#include "tests/plots/xml.h"

namespace pfeife {
namespace {

using testing::HasSubstr;

PlanRecord measured(std::int64_t predicted_us, std::int64_t measured_us) {
  PlanRecord plan;
  plan.row.plan = "p" + std::to_string(measured_us);
  plan.row.estimate = Nanoseconds{1000 * predicted_us};
  plan.row.measure = Nanoseconds{1000 * measured_us};
  plan.row.feasible = true;
  plan.measured = MeasuredRun{
      .steps = 10, .p5 = Nanoseconds{900 * measured_us}, .p95 = Nanoseconds{1200 * measured_us}};
  return plan;
}

struct Spot {
  double x = 0, y = 0;
};
/// Where the elements of the class stand that are moved by a transform.
std::vector<Spot> moved(const XmlElement& drawing, const std::string& name) {
  std::vector<Spot> spots;
  for (const XmlElement* mark : by_class(drawing, name)) {
    Spot spot;
    if (std::sscanf(mark->attribute("transform").c_str(), "translate(%lf %lf)", &spot.x, &spot.y) ==
        2)
      spots.push_back(spot);
  }
  return spots;
}

std::string shown_text(const XmlElement& element) {
  if (element.name == "title" || element.name == "style" || element.name == "script") return "";
  std::string text = element.text + " ";
  for (const XmlElement& child : element.children) text += shown_text(child) + " ";
  return text;
}

// Right predictions lie on the line of no error, too long ones above it, and the bar of the
// measured steps goes from p5 to p95: here from 0.9 to 1.2 of the measured time.
TEST(AccuracyScatter, RightPredictionsLieOnTheLineAndBarsReachFromP5ToP95) {
  CaseRecord record;
  record.name = "c";
  record.plans = {measured(10'000, 10'000), measured(20'000, 20'000), measured(25'000, 20'000)};
  const XmlElement drawing = parse_xml(plots::accuracy_scatter({record}));
  const std::vector<Spot> marks = moved(drawing, "predicted");
  ASSERT_EQ(marks.size(), 4u) << "one is the legend's";
  const XmlElement& line = *by_class(drawing, "no_error").at(0);
  const auto on_line = [&](double x) {
    return line.number("y1") + (x - line.number("x1")) * (line.number("y2") - line.number("y1")) /
                                   (line.number("x2") - line.number("x1"));
  };
  EXPECT_NEAR(marks[0].y, on_line(marks[0].x), 0.05);
  EXPECT_NEAR(marks[1].y, on_line(marks[1].x), 0.05);
  EXPECT_LT(marks[2].y, on_line(marks[2].x) - 10) << "too long a prediction lies above";
  EXPECT_NEAR(marks[2].x, marks[1].x, 0.01);
  const double per_ms = (marks[1].x - marks[0].x) / 10;
  const auto bars = by_class(drawing, "spread");
  ASSERT_EQ(bars.size(), 3u);
  EXPECT_NEAR(bars[0]->number("x1"), marks[0].x - per_ms, 0.05);
  EXPECT_NEAR(bars[0]->number("x2"), marks[0].x + 2 * per_ms, 0.05);
  EXPECT_THAT(all_text(drawing),
              HasSubstr("c, p20000: estimated 25.00 ms, measured 20.00 ms, error +25.0 %"));
  record.plans[0].measured->failure = "no";
  EXPECT_EQ(moved(parse_xml(plots::accuracy_scatter({record})), "predicted").size(), 3u);
  EXPECT_EQ(plots::accuracy_scatter({CaseRecord{}}), "");
}

// Six rounds say that the median is between the fastest and the slowest of them.
TEST(AccuracyScatter, AThickBarIsTheIntervalOfTheMedian) {
  CaseRecord record;
  record.plans = {measured(10'000, 10'000), measured(20'000, 20'000)};
  EXPECT_TRUE(by_class(parse_xml(plots::accuracy_scatter({record})), "interval").empty());
  for (const int us : {9'900, 10'000, 10'000, 10'000, 10'000, 10'300})
    record.plans[0].measured->rounds.push_back(Nanoseconds{1000 * us});
  const XmlElement drawing = parse_xml(plots::accuracy_scatter({record}));
  const auto bars = by_class(drawing, "interval");
  ASSERT_EQ(bars.size(), 1u);
  const std::vector<Spot> marks = moved(drawing, "predicted");
  const double per_ms = (marks[1].x - marks[0].x) / 10;
  EXPECT_NEAR(bars[0]->number("x1"), marks[0].x - 0.1 * per_ms, 0.05);
  EXPECT_NEAR(bars[0]->number("x2"), marks[0].x + 0.3 * per_ms, 0.05);
  EXPECT_THAT(all_text(drawing), HasSubstr("95 % of the median"));
}

// From 10 us to 1 s: each decade takes as much room.
TEST(AccuracyScatter, TimesOfManyMagnitudesAreLogarithmicInOneUnit) {
  CaseRecord record;
  for (const std::int64_t us : {10, 100, 1000, 1'000'000}) record.plans.push_back(measured(us, us));
  const XmlElement drawing = parse_xml(plots::accuracy_scatter({record}));
  const std::vector<Spot> marks = moved(drawing, "predicted");
  EXPECT_NEAR(marks[1].x - marks[0].x, marks[2].x - marks[1].x, 0.05);
  EXPECT_NEAR(marks[3].x - marks[2].x, 3 * (marks[2].x - marks[1].x), 0.1);
}

TEST(Accuracy, TheFiveWorstActionsOfAllCasesComeInTheOrderOfTheirDistance) {
  std::vector<CaseRecord> cases(2);
  for (std::size_t c = 0; c < 2; ++c) {
    cases[c].name = "case" + std::to_string(c);
    cases[c].plans = {measured(10, 10)};
    for (int i = 0; i < 4; ++i)
      cases[c].plans[0].measured->furthest.push_back(
          {RankId{0}, std::to_string(i) + "F" + std::to_string(c), Nanoseconds{1'000'000},
           Nanoseconds{1'000'000 +
                       (i % 2 == 0 ? 1 : -1) * (10'000 * (2 * i + static_cast<int>(c) + 1))}});
  }
  std::vector<std::string> actions;
  for (const auto& row : cells(plots::furthest_table(cases))) actions.push_back(row.at(3));
  EXPECT_THAT(actions, testing::ElementsAre("Action", "3F1", "3F0", "2F1", "2F0", "1F1"));
  EXPECT_EQ(plots::furthest_table(std::vector<CaseRecord>{}), "");
}

/// Baselines at those times over 10 ms and memories in MiB; the plan of 10 ms and 1000 MiB first.
CaseRecord with_baselines(const std::vector<std::pair<double, int>>& baselines, int limit_mib) {
  CaseRecord record;
  const auto add = [&](const std::string& name, double over, int mib) {
    PlanRecord plan;
    plan.row.plan = name;
    plan.row.estimate = Nanoseconds{static_cast<std::int64_t>(1e7 * (1 + over))};
    plan.row.peak_memory = Bytes{std::int64_t{mib} << 20};
    plan.row.memory_limit = Bytes{std::int64_t{limit_mib} << 20};
    record.plans.push_back(plan);
  };
  add("planned", 0, 1000);
  for (std::size_t i = 0; i < baselines.size(); ++i)
    add("base" + std::to_string(i), baselines[i].first, baselines[i].second);
  return record;
}

std::size_t percent_ticks(const XmlElement& drawing) {
  std::size_t ticks = 0;
  for (const XmlElement* text : by_name(drawing, "text"))
    ticks += std::regex_match(all_text(*text), std::regex(R"([+-]?[0-9.]+ %)"));
  return ticks;
}

// The first plan is ten times the best, the last ones differ by 1 %: that is still seen.
TEST(Report, AnOutlierDoesNotSquashTheSearch) {
  CaseRecord record = with_baselines({{0.015, 1}, {5, 1}}, 0);
  record.history = {{1, Nanoseconds{100'000'000}, std::nullopt},
                    {10, Nanoseconds{10'200'000}, Nanoseconds{9'800'000}},
                    {100, Nanoseconds{10'100'000}, Nanoseconds{9'900'000}},
                    {1000, Nanoseconds{10'000'000}, Nanoseconds{9'950'000}}};
  const std::string chart = plots::search_chart(record);
  const XmlElement drawing = parse_xml(chart);
  double x[4], y[4];
  ASSERT_EQ(std::sscanf(chart.c_str() + chart.find("\"M") + 1, "M%lf %lfH%lfV%lfH%lfV%lfH%lfV%lf",
                        &x[0], &y[0], &x[1], &y[1], &x[2], &y[2], &x[3], &y[3]),
            8);
  EXPECT_GT(y[3] - y[2], 15) << "1 %";
  EXPECT_NEAR(y[3] - y[2], y[2] - y[1], 0.02) << "to scale within the axis";
  EXPECT_EQ(by_class(drawing, "baseline").size(), 2u);
  EXPECT_THAT(shown_text(drawing), HasSubstr("↑ base1 +500.0 %"));
  EXPECT_THAT(shown_text(drawing), HasSubstr("lower bound 9.950 ms"));
  EXPECT_GE(percent_ticks(drawing), 4u);
}

/// Units of times and of memory that are written in the picture.
std::set<std::string> units(const XmlElement& drawing, const std::string& pattern) {
  std::set<std::string> found;
  for (const XmlElement* text : by_name(drawing, "text")) {
    const std::string said = all_text(*text);
    const std::regex form("(?:^|[0-9] |, )(" + pattern + ")(?![a-zA-Z])");
    for (std::sregex_iterator at(said.begin(), said.end(), form), end; at != end; ++at)
      found.insert((*at)[1]);
  }
  return found;
}

// Plans of 0.9 and of 40 ms, of 0.3 and of 2 GiB: where units could differ, they do not.
TEST(Report, AChartHasOneUnitOfTimeAndOneOfMemoryAndNoFigureHasSixDecimals) {
  ReportInput input = example_report();
  CaseRecord& record = input.cases[0];
  record.plans[0].row.measure = Nanoseconds{912'345};
  record.plans[1].row.measure = Nanoseconds{3'412'345'678};
  for (std::size_t p : {0u, 1u}) {
    record.plans[p].measured =
        MeasuredRun{.steps = 3, .p5 = Nanoseconds{900'001}, .p95 = Nanoseconds{950'003}};
    record.plans[p].measured->furthest = {
        {RankId{0}, "0F1", Nanoseconds{123'457}, Nanoseconds{12'345}}};
  }
  std::string html = report_html(input);
  for (const std::string name : {"style", "script", "script"}) {
    const std::size_t begin = html.find("<" + name);
    html.erase(begin, html.find("</" + name + ">", begin) - begin + name.size() + 3);
  }
  const XmlElement page = parse_xml(html.substr(html.find("<html")));
  const auto charts = by_name(page, "svg");
  ASSERT_GE(charts.size(), 3u);
  std::size_t with_time = 0;
  for (const XmlElement* chart : charts) {
    const auto times = units(*chart, "ns|µs|ms|s"), memory = units(*chart, "KiB|MiB|GiB|TiB");
    EXPECT_LE(times.size(), 1u) << testing::PrintToString(times)
                                << by_name(*chart, "title")[0]->text;
    EXPECT_LE(memory.size(), 1u) << testing::PrintToString(memory);
    with_time += times.size();
  }
  EXPECT_GE(with_time, 2u);
  EXPECT_FALSE(std::regex_search(shown_text(page), std::regex(R"([0-9]\.[0-9]{6})")));
}

}  // namespace
}  // namespace pfeife
