#include "plots/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <random>
#include <set>

#include "planner/ir/result/result_engine.h"
#include "plots/figure/theme.h"
#include "plots/report/accuracy.h"
#include "plots/report/charts.h"
#include "plots/report/front.h"
#include "plots/report/search.h"
#include "plots/report/sweep.h"
#include "plots/report/tables.h"
#include "tests/plots/example_report.h"
#include "tests/plots/table_cells.h"
#include "tests/plots/xml.h"
#include "tests/support/mixed_engines.h"

namespace pfeife {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// The page as XML: without the doctype, and without the content of style and script.
XmlElement page(const std::string& html) {
  std::string text = html.substr(html.find("<html"));
  for (const std::string name : {"style", "script"}) {
    const auto from = text.find("<" + name + ">") + name.size() + 2;
    text.erase(from, text.find("</" + name + ">") - from);
  }
  return parse_xml(text);
}
XmlElement page(const ReportInput& input) { return page(report_html(input)); }

TEST(Report, IsWellFormedAndNeedsNothingFromOutside) {
  const std::string html = report_html(example_report());
  EXPECT_TRUE(html.starts_with("<!doctype html>\n"));
  EXPECT_NO_THROW(page(html));
  for (const char* outside :
       {"http:", "https:", "//", "src=", "<link", "@import", "url(", "fetch("})
    if (std::string(outside) == "//")
      EXPECT_THAT(html.substr(0, html.find("<script>")), Not(HasSubstr(outside)));
    else
      EXPECT_THAT(html, Not(HasSubstr(outside)));
}

// 10 ms estimated and 12 simulated of 16 measured: 10 / 16 - 1 = -37.5 %, 12 / 16 - 1 = -25 %;
// 3 MiB planned of 2 counted: +50 %.
TEST(Report, WhatWasMeasuredIsComparedWithWhatWasPredicted) {
  ReportInput input = example_report();
  PlanRecord& plan = input.cases[0].plans[0];
  plan.row.estimate = Nanoseconds{10'000'000};
  plan.row.simulate = Nanoseconds{12'000'000};
  plan.row.measure = Nanoseconds{16'000'000};
  plan.peak_memory = {Bytes{3 << 20}};
  plan.measured =
      MeasuredRun{.failure = "",
                  .steps = 10,
                  .others = 1.5,
                  .p5 = Nanoseconds{15'000'000},
                  .p95 = Nanoseconds{17'000'000},
                  .peak_memory = {Bytes{2 << 20}},
                  .furthest = {{RankId{1}, "1F0", Nanoseconds{4'000'000}, Nanoseconds{2'000'000}}}};
  const auto rows = cells(plots::accuracy_table(input.cases[0]));
  ASSERT_EQ(rows.size(), 2u) << "a header, and the one plan that was measured";
  EXPECT_THAT(rows[1], testing::IsSupersetOf({"-37.5 %", "-25.0 %", "+50.0 %"}));
  EXPECT_THAT(cells(plots::furthest_table(plan)).at(1), testing::IsSupersetOf({"1F0", "+100.0 %"}));
  EXPECT_THAT(all_text(page(input)), HasSubstr("Accuracy: predicted against measured"));
  EXPECT_EQ(plots::accuracy_table(input.cases[1]), "");
  plan.measured->failure = "rank 0 was killed";
  plan.row.measure.reset();
  EXPECT_THAT(all_text(page(input)), HasSubstr("Not measured: rank 0 was killed"));
}

TEST(Report, EveryTimelineIsEmbeddedOnce) {
  const ReportInput input = example_report();
  std::size_t drawings = 0;
  for (const CaseRecord& report_case : input.cases)
    for (const PlanRecord& plan : report_case.plans) drawings += plan.row.estimate ? 1 : 0;
  std::size_t panels = by_class(page(input), "simulated").size();
  EXPECT_EQ(drawings, 6u);
  EXPECT_EQ(panels, drawings);
}

TEST(Report, HostileTextsStayText) {
  const std::string evil = "</pre></td><script>alert('x')</script>\"&\x01\xff";
  ReportInput input = example_report();
  input.title = input.config = evil;
  input.facts = {{evil, evil}};
  input.notes = {evil};
  CaseRecord& report_case = input.cases[0];
  report_case.name = report_case.bound_covers = evil;
  report_case.notes = {evil};
  report_case.lost = {{evil, evil, {.why = Why::Impossible, .words = evil}, {}}};
  report_case.plans[0].row.plan = report_case.plans[0].row.family = evil;
  report_case.plans[0].row.knobs = report_case.plans[0].cut_names[0] = evil;
  report_case.plans[1].row.plan = report_case.plans[1].reason = evil;
  report_case.plans[1].row.estimate = report_case.plans[1].row.simulate = std::nullopt;
  const std::string html = report_html(input);
  EXPECT_NO_THROW(page(html));
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_EQ(html.find("<script>"), html.rfind("<script>"));
}

TEST(Report, OnePlanACaseIsMarkedBest) {
  const ReportInput input = example_report();
  // Two devices: interleaved is fastest. Four: it would be, but does not fit in 9 GiB.
  EXPECT_EQ(best_plan(input.cases[0]), 2u);
  EXPECT_EQ(best_plan(input.cases[1]), 0u);
  std::size_t marked = 0;
  for (const auto& row : cells(plots::results_table(input)))
    marked += row.at(1).find("★") != std::string::npos;
  EXPECT_EQ(marked, 2u);
}

// A case in which all plans were measured and one in which only the first was are not on one curve.
TEST(Report, CurvesAlongASweepAreOfOneEngine) {
  std::vector<CaseRecord> cases;
  for (const std::size_t n : {2U, 4U, 6U}) {
    CaseRecord& record = cases.emplace_back(n == 4 ? mixed_case() : measured_case());
    record.name = "n=" + std::to_string(n);
    for (PlanRecord& plan : record.plans) {
      plan.row.microbatches = n;
      plan.row.samples_per_s = samples_per_second(plan.row, compared_engine(record));
    }
  }
  const XmlElement root = parse_xml("<p>" + plots::sweep_charts(cases) + "</p>");
  EXPECT_THAT(all_text(root), AllOf(HasSubstr("times measured"), HasSubstr("times simulated")));
  std::map<std::string, std::set<std::string>> lines;  // cases of a drawing, by its name
  for (const XmlElement* drawing : by_name(root, "svg"))
    for (const XmlElement* title : by_name(*drawing, "title"))
      for (const CaseRecord& record : cases)
        if (title->text.find(record.name) != std::string::npos)
          lines[by_name(*drawing, "title").front()->text].insert(record.name);
  ASSERT_FALSE(lines.empty());
  for (const auto& [drawing, points] : lines)
    EXPECT_EQ(points, drawing.find("simulated") != std::string::npos
                          ? std::set<std::string>{"n=4"}
                          : (std::set<std::string>{"n=2", "n=6"}))
        << drawing;
}

TEST(Report, AttributionHasFiveDigitsInTheTableAndIsToScaleInTheChart) {
  PlanRecord plan;
  plan.row.plan = "p";
  plan.attribution = {{Nanoseconds{1'000'000}, Nanoseconds{2'000'001}, Nanoseconds{0},
                       Nanoseconds{0}, Nanoseconds{0}, Nanoseconds{0}, Nanoseconds{3'000'000}},
                      {Nanoseconds{6'000'001}}};
  const auto rows = cells(plots::attribution_table(plan));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1], (std::vector<std::string>{"0 critical", "1.0000", "2.0000", "0.0000", "0.0000",
                                               "0.0000", "0.0000", "3.0000", "6.0000"}));
  EXPECT_EQ(rows[2].front(), "1");
  const XmlElement chart = parse_xml(plots::attribution_chart({.plans = {plan}}));
  const auto bars = by_class(chart, "cause");
  ASSERT_EQ(bars.size(), 3u);  // terms of zero have no bar
  const auto rect = [&](std::size_t i) { return *by_name(*bars[i], "rect").at(0); };
  EXPECT_NEAR(rect(1).number("width"), 2 * rect(0).number("width"), 0.05);
  EXPECT_NEAR(rect(2).number("width"), 3 * rect(0).number("width"), 0.05);
  EXPECT_NEAR(rect(1).number("x"), rect(0).number("x") + rect(0).number("width"), 0.02);
}

TEST(Report, AttributionsSayWhichEngineTheyAreOf) {
  PlanRecord simulated, measured;
  simulated.attribution = measured.attribution = {{Nanoseconds{1'000'000}}};
  simulated.row.estimate = simulated.row.simulate = Nanoseconds{1'000'000};
  measured.row = simulated.row;
  measured.row.measure = Nanoseconds{1'000'000};
  const auto page = [](std::vector<PlanRecord> plans) {
    ReportInput input;
    input.cases = {{.plans = std::move(plans)}};
    return report_html(input);
  };
  EXPECT_THAT(page({simulated, simulated}), HasSubstr("critical rank goes, simulated<"));
  EXPECT_THAT(page({measured, simulated}), HasSubstr("critical rank goes, simulated<"));
  EXPECT_THAT(page({measured, measured}), HasSubstr("critical rank goes, measured<"));
}

TEST(Report, ALongScheduleIsNamedInFullBesideTheFront) {
  const std::string name = "looped, V=3, loop_batch=4, prefetch=3, recompute=0-6";
  CaseRecord report_case;
  report_case.front = {{"fast", Nanoseconds{1'000'000}, Bytes{3 << 20}},
                       {name, Nanoseconds{2'000'000}, Bytes{2 << 20}}};
  EXPECT_THAT(plots::front_chart(report_case), HasSubstr(name));
}

// 2 and 4 microbatches: two points of each plan's line; the bound of 20 and 40 ms allows 100
// samples/s, of which 10 ms of a plan that does not fit are 400 and hollow.
TEST(Report, ASweepIsALineAScheduleOverWhatVaries) {
  std::vector<CaseRecord> cases;
  EXPECT_EQ(plots::sweep_charts(cases), "");
  for (const std::size_t n : {2U, 4U}) {
    CaseRecord record;
    record.name = "n=" + std::to_string(n);
    for (const char* name : {"planned", "1f1b"}) {
      PlanRecord plan;
      plan.row.plan = plan.row.family = name;
      plan.row.devices = 2, plan.row.microbatches = n, plan.row.microbatch_size = 1;
      plan.row.estimate = Nanoseconds{25'000'000};
      plan.row.feasible = std::string(name) == "planned" || n == 4;
      plan.row.samples_per_s = 40.0 * static_cast<double>(n);
      if (plan.row.plan == "planned")
        plan.row.lower_bound = Nanoseconds{static_cast<std::int64_t>(n) * 10'000'000};
      record.plans.push_back(plan);
    }
    cases.push_back(record);
  }
  const XmlElement root = parse_xml("<p>" + plots::sweep_charts(cases) + "</p>");
  std::size_t marks = 0, hollow = 0;
  for (const XmlElement* path : by_name(root, "path"))
    if (!path->children.empty()) {
      ++marks;
      hollow += path->attribute("fill") == plots::hex(plots::kPaper) ? 1 : 0;
    }
  EXPECT_EQ(marks, 4U);
  EXPECT_EQ(hollow, 1U);
  EXPECT_EQ(by_class(root, "dashed").size(), 1U);
  EXPECT_THAT(all_text(root), HasSubstr("microbatches"));
  // The legend lists what is there.
  EXPECT_THAT(all_text(root), AllOf(HasSubstr("bound"), Not(HasSubstr("memory limit")),
                                    HasSubstr("hollow: does not fit")));
  for (CaseRecord& record : cases)
    for (PlanRecord& plan : record.plans) plan.row.feasible = true, plan.row.lower_bound.reset();
  EXPECT_THAT(plots::sweep_charts(cases), AllOf(Not(HasSubstr("hollow")), Not(HasSubstr("bound"))));
  cases[1].plans[0].row.microbatches = 2;  // nothing varies
  EXPECT_EQ(plots::sweep_charts(cases), "");
}

TEST(Report, LinksLeadToTheFilesOfEveryPlanAndToEveryCase) {
  ReportInput input = example_report();
  input.cases[0].name = "cluster=a b,50%";
  const std::string html = report_html(input);
  for (const char* file : {"plan.yaml", "schedule.csv", "timeline.svg", "trace.json"})
    EXPECT_THAT(html, HasSubstr("href=\"./cluster=a%20b,50%25/1f1b/" + std::string(file) + "\""));
  EXPECT_THAT(html, HasSubstr("href=\"#case-1\""));
  EXPECT_THAT(html, HasSubstr("id=\"case-1\""));
}

TEST(Report, LinksWithinThePageLeadSomewhere) {
  for (const bool of_one_case : {false, true}) {
    ReportInput input = example_report();
    if (of_one_case) input.cases.resize(1);
    const std::string html = report_html(input), href = "href=\"#";
    std::size_t links = 0;
    for (std::size_t at = 0; (at = html.find(href, at)) != std::string::npos; ++links) {
      at += href.size();
      const std::string id = html.substr(at, html.find('"', at) - at);
      EXPECT_THAT(html, HasSubstr(" id=\"" + id + "\""));
    }
    EXPECT_GT(links, 4U);
  }
}

TEST(Report, PeaksAboveTheirLimitStandOut) {
  const auto rows = cells(plots::memory_table(example_report().cases[1]));
  ASSERT_EQ(rows.size(), 4u);  // the plan that does not exist has no row
  EXPECT_EQ(rows[1][1], "6.000 GiB");
  EXPECT_EQ(rows[3][1], "9.500 GiB !");
  EXPECT_EQ(rows[3].back(), "9.000 GiB");
}

TEST(Report, ColumnsWithoutFiguresAreLeftOut) {
  const auto heads = cells(plots::results_table(example_report())).at(0);
  EXPECT_THAT(heads, testing::Contains("Simulated, ms"));
  EXPECT_THAT(heads, testing::Contains("Simulated p95, ms"));
  EXPECT_THAT(heads, Not(testing::Contains("Measured, ms")));
}

// Two ranks with 3 + 7 and 4 + 10 ms of work: the mean is 12 ms.
TEST(Report, WorkOfRanksIsToScaleAndTheLineIsItsMean) {
  const auto ms = [](std::int64_t count) { return Nanoseconds{count * 1'000'000}; };
  PlanRecord plan;
  plan.stages = {{RankId{0}, ms(1), ms(2)}, {RankId{1}, ms(4), ms(10)}, {RankId{0}, ms(2), ms(5)}};
  const XmlElement drawing = parse_xml(plots::stage_chart(plan));
  std::map<std::string, double> width;  // by tooltip
  double left = 0, right = 0;
  for (const XmlElement* group : by_name(drawing, "g")) {
    const auto boxes = by_name(*group, "rect");
    if (boxes.size() != 2) continue;
    for (const XmlElement* box : boxes)
      width[by_name(*group, "title")[0]->text] += box->number("width");
    left = boxes[0]->number("x");
    right = boxes[1]->number("x") + boxes[1]->number("width");
  }
  ASSERT_EQ(width.size(), 3u);
  const double stage1 = width["stage 1, forward 4.000 ms, backward 10.00 ms"];
  EXPECT_NEAR(width["stage 0, forward 1.000 ms, backward 2.000 ms"] / stage1, 3.0 / 14, 1e-3);
  EXPECT_NEAR(right - left, stage1, 0.05);
  const XmlElement* mean = by_name(drawing, "line").back();
  EXPECT_NEAR((mean->number("x1") - left) / stage1, 12.0 / 14, 1e-3);
}

// The colours of the legend are those of the stages; of one stage a rank none is paler.
TEST(Report, WorkOfRanksSaysWhatItsColoursMean) {
  PlanRecord plan;
  plan.stages = {{RankId{0}, Nanoseconds{1}, Nanoseconds{2}}};
  XmlElement drawing = parse_xml(plots::stage_chart(plan));
  const auto boxes = by_name(*by_name(drawing, "g").back(), "rect"), all = by_name(drawing, "rect");
  ASSERT_EQ(boxes.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(all[all.size() - 2 + i]->attribute("fill"), boxes[i]->attribute("fill"));
  EXPECT_THAT(all_text(drawing), HasSubstr("forward"));
  EXPECT_THAT(all_text(drawing), Not(HasSubstr("paler")));
  plan.stages.push_back({RankId{0}, Nanoseconds{1}, Nanoseconds{2}});
  drawing = parse_xml(plots::stage_chart(plan));
  EXPECT_THAT(all_text(drawing), HasSubstr("paler = later stage"));
}

TEST(Report, AWayOfChoosingShowsWhatItCosts) {
  CaseRecord report_case;
  report_case.choices = {{.by = SelectBy::Estimate,
                          .schedule = "a",
                          .estimate = Nanoseconds{1'000'000},
                          .p95 = Nanoseconds{2'200'000},
                          .used = true},
                         {.by = SelectBy::P95,
                          .schedule = "b",
                          .estimate = Nanoseconds{1'100'000},
                          .p95 = Nanoseconds{2'000'000}}};
  const auto rows = cells(plots::choices_table(report_case));
  EXPECT_THAT(rows.at(1),
              testing::ElementsAre("estimate", "a", "1.0000", "2.2000 (+10.0 %)", "yes"));
  EXPECT_THAT(rows.at(2), testing::ElementsAre("p95", "b", "1.1000 (+10.0 %)", "2.0000", ""));
}

TEST(Report, TheSearchIsDrawnIfItFoundAPlan) {
  CaseRecord report_case;
  EXPECT_EQ(plots::search_chart(report_case), "");
  report_case.history = {{1, Nanoseconds{900}, std::nullopt},
                         {5000, Nanoseconds{800}, Nanoseconds{700}}};
  const XmlElement drawing = parse_xml(plots::search_chart(report_case));
  EXPECT_THAT(all_text(drawing), HasSubstr("lower bound 700 ns"));
  EXPECT_THAT(all_text(drawing), HasSubstr("best estimate 800 ns"));
  // A bound is rounded down, unless the plan reaches it: then both read the same.
  for (const std::int64_t best : {12'345'678, 12'345'679}) {
    report_case.history.back() = {5000, Nanoseconds{best}, Nanoseconds{12'345'678}};
    EXPECT_THAT(all_text(parse_xml(plots::search_chart(report_case))),
                HasSubstr(best == 12'345'678 ? "lower bound 12.35 ms" : "lower bound 12.34 ms"));
  }
  report_case.history.back().best.reset();
  EXPECT_EQ(plots::search_chart(report_case), "");
}

// Half way between the ends in both figures: half way in the drawing, too; faster is lower, more
// memory is further right.
TEST(Report, TimeAgainstMemoryIsToScale) {
  CaseRecord report_case;
  report_case.front = {{"fast", Nanoseconds{1'000'000}, Bytes{3 << 20}}};
  EXPECT_EQ(plots::front_chart(report_case), "") << "one point is no trade";
  report_case.front.push_back({"middle", Nanoseconds{2'000'000}, Bytes{2 << 20}});
  report_case.front.push_back({"small", Nanoseconds{3'000'000}, Bytes{1 << 20}});
  const XmlElement drawing = parse_xml(plots::front_chart(report_case));
  auto marks = by_name(drawing, "rect");
  ASSERT_EQ(marks.size(), 4u);
  marks.erase(marks.begin());  // the background
  for (const char* axis : {"x", "y"})
    EXPECT_NEAR(marks[1]->number(axis), (marks[0]->number(axis) + marks[2]->number(axis)) / 2,
                0.02);
  EXPECT_GT(marks[0]->number("x"), marks[2]->number("x") + 100);
  EXPECT_GT(marks[0]->number("y"), marks[2]->number("y") + 100);
  EXPECT_THAT(all_text(drawing), HasSubstr("2  2.000 ms, 2.000 MiB: middle"));
  // With less memory than a point needs, the next one is the best: up first, then to the left.
  EXPECT_THAT(plots::front_chart(report_case),
              testing::ContainsRegex("M[0-9.]+ [0-9.]+V[0-9.]+H[0-9.]+V[0-9.]+H[0-9.]+\""));
}

/// The numbers in a front's chart, and where they stand.
std::map<std::string, std::pair<double, double>> numbers_of(const CaseRecord& report_case) {
  std::map<std::string, std::pair<double, double>> found;
  const XmlElement drawing = parse_xml(plots::front_chart(report_case));
  for (const XmlElement* text : by_name(drawing, "text"))
    if (const std::string said = all_text(*text);
        said.find_first_not_of("0123456789-") == std::string::npos)
      found[said] = {text->number("x"), text->number("y")};
  return found;
}

// The second to fourth lie two pixels apart, too close for a number each.
TEST(Report, PointsThatLieCloseShareANumber) {
  CaseRecord report_case;
  const auto add = [&](std::int64_t us, std::int64_t kib) {
    report_case.front.push_back({"s", Nanoseconds{1000 * us}, Bytes{kib << 10}});
  };
  add(1000, 3000), add(2000, 2000), add(2010, 1990), add(2020, 1980), add(3000, 1000);
  const auto numbers = numbers_of(report_case);
  EXPECT_EQ(numbers.size(), 3u);
  for (const char* number : {"1", "2-4", "5"}) EXPECT_TRUE(numbers.contains(number)) << number;
}

// Fronts as they are: many near-equal points along the bottom or up one side. Every point has its
// number, each number is within the axes, near its first point and clear of the others, where text
// of size ten is six wide a character and ten high.
TEST(Report, NumbersOfCrowdedFrontsAreNearTheirPointsAndClearOfEachOther) {
  for (int seed = 0; seed < 200; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    const auto step = [&](unsigned most) { return 1 + static_cast<std::int64_t>(random() % most); };
    CaseRecord report_case;
    std::int64_t time = 100'000, memory = 100'000;
    const int flat = seed % 3;  // 0: along the bottom, 1: up one side, 2: both
    for (int i = 0; i < 2 + seed % 17; ++i) {
      report_case.front.push_back({"s", Nanoseconds{time}, Bytes{memory}});
      time += step(flat == 0 ? 50 : 2000), memory -= step(flat == 1 ? 50 : 2000);
    }
    const XmlElement drawing = parse_xml(plots::front_chart(report_case));
    std::vector<const XmlElement*> marks = by_name(drawing, "rect");
    marks.erase(marks.begin());  // the background
    const auto numbers = numbers_of(report_case);
    std::size_t counted = 0;
    for (const auto& [text, at] : numbers) {
      const std::size_t first = std::stoul(text), dash = text.find('-');
      counted += 1 + (dash == text.npos ? first : std::stoul(text.substr(dash + 1))) - first;
      const double px = marks[first - 1]->number("x") + 4, py = marks[first - 1]->number("y") + 4;
      const double width = 6 * static_cast<double>(text.size());
      EXPECT_LE(std::abs(at.first + width / 2 - px), 7 + width) << seed << ": " << text;
      EXPECT_LE(std::abs(at.second - py), 40) << seed << ": " << text;
      EXPECT_GE(at.first, 76) << seed << ": " << text;
      EXPECT_LT(at.second, by_name(drawing, "line")[0]->number("y1")) << seed << ": " << text;
      for (const auto& [other, there] : numbers)
        EXPECT_TRUE(other == text || std::abs(at.second - there.second) >= 10 ||
                    at.first >= there.first + 6 * static_cast<double>(other.size()) ||
                    there.first >= at.first + width)
            << seed << ": " << text << " and " << other;
    }
    EXPECT_EQ(counted, report_case.front.size());
  }
}

// The plan is the marked point, wherever it lies.
TEST(Report, ThePlanIsMarkedOnTheFront) {
  CaseRecord report_case;
  report_case.front = {{"fast", Nanoseconds{1'000'000}, Bytes{2 << 20}},
                       {"small", Nanoseconds{2'000'000}, Bytes{1 << 20}}};
  report_case.plans.resize(1);
  const auto colours = [&](std::size_t plan) {
    report_case.plans[0].row.estimate = report_case.front[plan].estimate;
    report_case.plans[0].row.peak_memory = report_case.front[plan].peak_memory;
    const auto chart = parse_xml(plots::front_chart(report_case));
    std::vector<std::string> found;
    for (const XmlElement* mark : by_name(chart, "rect")) found.push_back(mark->attribute("fill"));
    return found;
  };
  const auto first = colours(0), second = colours(1);
  ASSERT_EQ(first.size(), 3u) << "the background, too";
  EXPECT_NE(first[1], first[2]);
  EXPECT_EQ(first[1], second[2]);
  EXPECT_EQ(first[2], second[1]);
}

TEST(Report, WhatWasOpenAndWhatWasTriedAreToldWithTheirReasons) {
  CaseRecord report_case;
  EXPECT_EQ(plots::alternatives_table(report_case), "");
  EXPECT_EQ(plots::tried_table(report_case), "");
  report_case.alternatives = {{"4 microbatches of 2",
                               "zb_h1",
                               Nanoseconds{10'000'000},
                               Nanoseconds{9'000'000},
                               Bytes{1 << 30},
                               {}},
                              {"8 microbatches of 1",
                               "",
                               std::nullopt,
                               std::nullopt,
                               std::nullopt,
                               {.why = Why::LacksMemory, .rank = RankId{1}, .lacking = kGiB}}};
  const auto open = cells(plots::alternatives_table(report_case));
  EXPECT_THAT(open.at(1), testing::ElementsAre("4 microbatches of 2", "zb_h1", "10.000", "9.0000",
                                               "1.000 GiB", "chosen"));
  EXPECT_THAT(open.at(2),
              testing::ElementsAre("8 microbatches of 1", "", "", "", "", "rank 1 lacks 1 GiB"));
  TriedChange helps{.change = "4 devices", .schedule = "1f1b", .estimate = Nanoseconds{5'000'000}};
  helps.peak_memory = Bytes{1 << 30};
  report_case.tried = {helps, {.change = "recomputation", .reason = "lacks 2 GiB"}};
  const auto tried = cells(plots::tried_table(report_case));
  EXPECT_THAT(tried.at(1), testing::ElementsAre("4 devices", "yes", HasSubstr("1f1b")));
  EXPECT_THAT(tried.at(2), testing::ElementsAre("recomputation", "no", HasSubstr("lacks 2 GiB")));
}

// Ten times the candidates are as far right each time; the steps end where the search ended.
TEST(Report, TheSearchIsDrawnOverTheLogarithmOfItsWork) {
  CaseRecord report_case;
  for (const std::size_t candidates : {10U, 100U, 1000U})
    report_case.history.push_back({candidates, Nanoseconds{1210 - candidates / 5}, std::nullopt});
  double x[3], y[3];
  const std::string chart = plots::search_chart(report_case);
  const std::size_t path = chart.find("\"M") + 1;
  ASSERT_EQ(std::sscanf(chart.c_str() + path, "M%lf %lfH%lfV%lfH%lfV%lf", &x[0], &y[0], &x[1],
                        &y[1], &x[2], &y[2]),
            6);
  EXPECT_NEAR(x[1] - x[0], x[2] - x[1], 0.02);
  EXPECT_GT(x[1] - x[0], 50);
  EXPECT_NEAR((y[1] - y[0]) / (y[2] - y[1]), 18.0 / 180, 1e-2) << "times are to scale";
}

TEST(Report, ExplainsTheFiguresItHas) {
  ReportInput input = example_report();
  EXPECT_THAT(report_html(input), HasSubstr("<dt>Simulated</dt>"));
  EXPECT_THAT(report_html(input), Not(HasSubstr("<dt>Measured</dt>")));
  input.cases[0].plans[0].row.measure = Nanoseconds{5};
  EXPECT_THAT(report_html(input), HasSubstr("<dt>Measured</dt>"));
}

TEST(Report, PlansThatDoNotExistSayWhy) {
  const auto rows = cells(plots::results_table(example_report()));
  EXPECT_EQ(rows.back()[1], "gpipe");
  EXPECT_EQ(rows.back()[2], "no cuts fit: rank 0 lacks 3.2 GiB");
}

TEST(Report, NothingIsStillAPage) {
  EXPECT_NO_THROW(page(ReportInput{}));
  ReportInput input;
  input.cases.resize(2);
  input.cases[1].plans.resize(1);
  EXPECT_THAT(all_text(page(input)), HasSubstr("no plan fits"));
}

TEST(Report, EqualInputGivesEqualBytes) {
  EXPECT_EQ(report_html(example_report()), report_html(example_report()));
}

}  // namespace
}  // namespace pfeife
