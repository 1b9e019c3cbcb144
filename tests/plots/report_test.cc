#include "plots/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plots/report/parts.h"
#include "tests/plots/example_report.h"
#include "tests/plots/table_cells.h"
#include "tests/plots/xml.h"

namespace pfeife {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The page as XML: without the doctype, and without the content of style and script.
XmlElement page(const std::string& html) {
  std::string text = html.substr(html.find("<html"));
  for (const std::string name : {"style", "script"}) {
    const auto from = text.find("<" + name + ">") + name.size() + 2;
    text.erase(from, text.find("</" + name + ">", from) - from);
  }
  return parse_xml(text);
}
XmlElement page(const ReportInput& input) { return page(report_html(input)); }

// The one address is Perfetto's, which a button opens.
TEST(Report, IsWellFormedAndNeedsNothingFromOutside) {
  std::string html = report_html(example_report());
  const std::string perfetto = "PERFETTO = \"https://ui.perfetto.dev\"";
  ASSERT_NE(html.find(perfetto), std::string::npos);
  html.erase(html.find(perfetto), perfetto.size());
  EXPECT_TRUE(html.starts_with("<!doctype html>\n"));
  EXPECT_NO_THROW(page(html));
  for (const char* outside :
       {"http:", "https:", "//", "src=", "<link", "@import", "url(", "fetch("})
    if (std::string(outside) == "//")
      EXPECT_THAT(html.substr(0, html.find("<script>")), Not(HasSubstr(outside)));
    else
      EXPECT_THAT(html, Not(HasSubstr(outside)));
}

TEST(Report, SaysWhatLatencyIsWhereAModelRunsForwardOnly) {
  ReportInput input = example_report();
  EXPECT_THAT(report_html(input), Not(HasSubstr("<dt>Latency</dt>")));
  input.cases[0].plans[0].figures.latency = Nanoseconds{4'000'000};
  EXPECT_THAT(report_html(input), HasSubstr("<dt>Latency</dt>"));
}

// 10 ms estimated and 12 simulated of 16 measured: 10 / 16 - 1 = -37.5 %, 12 / 16 - 1 = -25 %;
// 3 MiB planned of 2 counted: +50 %.
TEST(Report, WhatWasMeasuredIsComparedWithWhatWasPredicted) {
  ReportInput input = example_report();
  PlanRecord& plan = input.cases[0].plans[0];
  plan.row.estimate = Nanoseconds{10'000'000};
  plan.row.simulate = Nanoseconds{12'000'000};
  plan.row.measure = Nanoseconds{16'000'000};
  plan.need.allocated = {Bytes{3 << 20}};
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
  EXPECT_THAT(all_text(page(input)), HasSubstr("rank 0 was killed"));
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

// The files of plans are linked by the script.
TEST(Report, LinksLeadToTheDrawingsOfACase) {
  ReportInput input = example_report();
  input.cases[0].name = "cluster=a b,50%";
  const std::string html = report_html(input);
  for (const char* file : {"plans.svg", "rank_times.svg", "memory.svg", "partition.svg"})
    EXPECT_THAT(html, HasSubstr("href=\"./cluster=a%20b,50%25/" + std::string(file) + "\""));
  EXPECT_THAT(html, Not(HasSubstr("links.svg\"")));
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
    EXPECT_GE(links, 3U);
  }
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
