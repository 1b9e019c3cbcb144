// Figures of the report's tables, by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plots/report/parts.h"
#include "tests/plots/table_cells.h"

namespace pfeife {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

PlanRecord plan_of(const std::string& name, std::int64_t ms, bool feasible) {
  PlanRecord plan;
  plan.row.plan = plan.row.family = name;
  plan.row.estimate = Nanoseconds{ms * 1'000'000};
  plan.row.feasible = feasible;
  return plan;
}

TEST(ReportTables, SchedulesThatLostAreListedWithTheirBoundAndReason) {
  CaseRecord report_case;
  EXPECT_EQ(plots::lost_table(report_case), "");
  report_case.lost = {
      {"gpipe", "gpipe", {.why = Why::RuledOut}, Nanoseconds{11'000'000}},
      {"looped", "looped", {.why = Why::Slower, .slower = Nanoseconds{2'000'000}}, {}}};
  EXPECT_THAT(cells(plots::lost_table(report_case)),
              ElementsAre(testing::_,
                          ElementsAre("gpipe", "11.000", "its bound is not below the plan's time"),
                          ElementsAre("looped", "", "2 ms slower")));
}

// A section is there for what the case has, and for nothing else.
TEST(ReportTables, ACaseHasASectionForEachThingThatItHas) {
  CaseRecord report_case;
  report_case.plans = {plan_of("planned", 10, true)};
  const auto text = [&] { return all_text(parse_xml(plots::case_section(report_case, 0))); };
  const std::string choices = "What each way of choosing", open = "What the case left open",
                    lost = "Other schedules", help = "What would help",
                    search = "The search: best estimate";
  for (const std::string& heading : {choices, open, lost, help, search})
    EXPECT_THAT(text(), Not(HasSubstr(heading)));
  report_case.choices = {{.by = SelectBy::Estimate, .schedule = "a", .used = true},
                         {.by = SelectBy::P95, .schedule = "b"}};
  EXPECT_THAT(text(), HasSubstr(choices));
  report_case.alternatives = {{"4 microbatches of 2", "zb_h1", {}, {}, {}, {}}};
  EXPECT_THAT(text(), HasSubstr(open));
  report_case.lost = {{"gpipe", "gpipe", {}, {}}, {"looped", "looped", {}, {}}};
  EXPECT_THAT(text(), AllOf(HasSubstr(lost), HasSubstr("2 considered")));
  report_case.tried = {{.change = "4 devices", .reason = "lacks 2 GiB"}};
  EXPECT_THAT(text(), HasSubstr(help));
  report_case.history = {{1, Nanoseconds{900}, Nanoseconds{700}}};
  EXPECT_THAT(text(), HasSubstr(search));
}

// What the report says of links, by hand.

using Rows = std::vector<std::vector<std::string>>;

/// Two nodes of two devices: 300 GB/s and 1 us within, 10 GB/s and 9 us between.
Cluster two_nodes() {
  Cluster cluster = uniform_cluster(4, DeviceKind{}, {10e9}, Nanoseconds{9000});
  for (const auto& [a, b] : {std::pair(0, 1), {1, 0}, {2, 3}, {3, 2}}) {
    Path& path = cluster.paths[static_cast<std::size_t>(a * 4 + b)];
    path.latency = Nanoseconds{1000}, path.bandwidth = {{{Bytes{1}, {300e9}}}};
  }
  return cluster;
}

TEST(ReportLinks, DevicesThatNoPathTellsApartShareARow) {
  EXPECT_EQ(cells(plots::links_table(two_nodes())),
            (Rows{{"from device", "to 0-1", "to 2-3"},
                  {"0-1", "300 GB/s, 1 us", "10 GB/s, 9 us"},
                  {"2-3", "10 GB/s, 9 us", "300 GB/s, 1 us"}}));
}

TEST(ReportLinks, AOneWayDifferenceParts) {
  Cluster cluster = two_nodes();
  cluster.paths[3 * 4 + 0].latency = Nanoseconds{8000};  // from 3 to 0 alone
  EXPECT_EQ(cells(plots::links_table(cluster)).size(), 1U + 4U);
  EXPECT_EQ(cells(plots::links_table(cluster))[4][1], "10 GB/s, 8 us");
}

TEST(ReportLinks, ASingleDeviceHasNone) {
  EXPECT_EQ(plots::links_table(uniform_cluster(1, DeviceKind{}, {1e9}, Nanoseconds{1})), "");
}

}  // namespace
}  // namespace pfeife
