// Figures of the report's tables, by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plots/report/case.h"
#include "plots/report/tables.h"
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

}  // namespace
}  // namespace pfeife
