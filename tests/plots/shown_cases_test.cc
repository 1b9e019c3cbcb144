// Which cases a long sweep shows on the screen.
#include <gtest/gtest.h>

#include <string>

#include "plots/screen/table.h"

namespace pfeife {
namespace {

std::string name_of(const std::vector<SweptKey>& named) {
  std::string name;
  for (const auto& [key, value] : named) name += (name.empty() ? "" : ",") + key + "=" + value;
  return name;
}

CaseRecord case_of(std::vector<SweptKey> named, double samples_per_s, bool feasible = true) {
  CaseRecord record;
  record.name = name_of(named);
  record.named = std::move(named);
  record.plans.resize(1);
  ResultRow& row = record.plans[0].row;
  row.microbatches = 1'000'000'000, row.microbatch_size = 1;
  row.estimate = nanoseconds_from_seconds(1e9 / samples_per_s);
  record.plans[0].row.feasible = feasible;
  return record;
}

std::vector<std::string> names(const ShownCases& shown) {
  std::vector<std::string> found;
  for (const CaseRecord& record : shown.cases) found.push_back(record.name);
  return found;
}

/// devices x microbatches x size; more microbatches and a size in the middle are faster.
std::vector<CaseRecord> product(int devices, int microbatches, int sizes) {
  std::vector<CaseRecord> cases;
  for (int d = 1; d <= devices; ++d)
    for (int n = 1; n <= microbatches; ++n)
      for (int b = 1; b <= sizes; ++b)
        cases.push_back(case_of({{"devices", std::to_string(d)},
                                 {"microbatches", std::to_string(n)},
                                 {"size", std::to_string(b)}},
                                100 * d + 10 * n - (b == 2 ? 0 : 1)));
  return cases;
}

TEST(ShownCases, AFewAreAllShown) {
  const ShownCases few = cases_to_show(product(2, 4, 1));
  EXPECT_EQ(names(few), names({product(2, 4, 1), ""}));
  EXPECT_EQ(few.summary, "");
  EXPECT_EQ(names(cases_to_show(product(2, 4, 3))), names({product(2, 4, 3), ""}));
}

TEST(ShownCases, OfManyTheBestOfEachValueOfTheFirstKeys) {
  // 3 x 5 x 4 = 60 cases: 15 pairs of the first two keys, the second size is best of each.
  std::vector<std::string> expected;
  for (int d = 1; d <= 3; ++d)
    for (int n = 1; n <= 5; ++n)
      expected.push_back("devices=" + std::to_string(d) + ",microbatches=" + std::to_string(n) +
                         ",size=2");
  EXPECT_EQ(names(cases_to_show(product(3, 5, 4))), expected);
  // 4 x 10 x 5: 40 pairs are too many, 4 values of the first key are not; the most microbatches
  // win.
  expected.clear();
  for (int d = 1; d <= 4; ++d)
    expected.push_back("devices=" + std::to_string(d) + ",microbatches=10,size=2");
  EXPECT_EQ(names(cases_to_show(product(4, 10, 5))), expected);
}

TEST(ShownCases, WhatIsLeftOutIsSaid) {
  std::vector<CaseRecord> cases = product(3, 5, 4);
  EXPECT_EQ(cases_to_show(cases).summary,
            "15 of 60 cases: of each devices, microbatches the case with the most samples/s");
  for (CaseRecord& record : cases) record.plans.resize(2);
  EXPECT_EQ(cases_to_show(cases).summary,
            "15 of 60 cases: of each devices, microbatches the case with the most samples/s; of "
            "each the chosen plan, without its baselines");
  cases.resize(9);
  EXPECT_EQ(cases_to_show(cases).summary,
            "9 cases; of each the chosen plan, without its baselines");
  EXPECT_EQ(cases_to_show(product(100, 1, 1)).summary,
            "36 of 100 cases: those with the most samples/s");
}

TEST(ShownCases, OfOneKeyWithManyValuesTheBestInTheirOrder) {
  const auto shown = cases_to_show(product(100, 1, 1));
  ASSERT_EQ(shown.cases.size(), 36U);
  EXPECT_EQ(shown.cases.front().name, "devices=65,microbatches=1,size=1");
  EXPECT_EQ(shown.cases.back().name, "devices=100,microbatches=1,size=1");
}

TEST(ShownCases, WhatDoesNotFitStandsOnlyForGroupsWhereNothingDoes) {
  std::vector<CaseRecord> cases;
  for (int n = 1; n <= 30; ++n)
    for (const char* devices : {"2", "4"})
      cases.push_back(case_of({{"devices", devices}, {"microbatches", std::to_string(n)}}, n,
                              std::string(devices) == "4" && n < 20));
  EXPECT_EQ(names(cases_to_show(cases)),
            (std::vector<std::string>{"devices=2,microbatches=1", "devices=4,microbatches=19"}));
}

// Folders keep the names of cases apart; that this ends does not hang on them.
TEST(ShownCases, OfEqualNamesTheBestIsShown) {
  std::vector<CaseRecord> cases;
  for (int i = 0; i < 40; ++i)
    cases.push_back(case_of({{"devices", "2"}, {"microbatches", "4"}}, i % 20 + 1));
  const auto shown = cases_to_show(cases);
  ASSERT_EQ(shown.cases.size(), 1U);
  EXPECT_EQ(shown.cases[0].plans[0].row.estimate, cases[19].plans[0].row.estimate);
}

// Each but one was measured, ten times as slow as simulated: the one is not the best for that.
TEST(ShownCases, TheBestIsTheFastestOfOneEngine) {
  std::vector<CaseRecord> cases;
  for (int n = 1; n <= 40; ++n) {
    ResultRow& row =
        cases.emplace_back(case_of({{"devices", "2"}, {"microbatches", std::to_string(n)}}, n))
            .plans[0]
            .row;
    row.simulate = row.estimate;
    if (n != 3) row.measure = 10 * *row.simulate;
  }
  EXPECT_EQ(names(cases_to_show(cases)), (std::vector<std::string>{"devices=2,microbatches=40"}));
}

// A value may hold a comma, which parts the keys in a name: {recompute: "0,1"} is one value.
TEST(ShownCases, ACommaInAValuePartsNoKeys) {
  std::vector<CaseRecord> cases;
  for (int c = 0; c < 4; ++c)
    for (int n = 1; n <= 10; ++n)
      cases.push_back(case_of(
          {{"plan.cuts", "1,2=" + std::to_string(c)}, {"microbatches", std::to_string(n)}}, n));
  const ShownCases shown = cases_to_show(cases);
  EXPECT_EQ(shown.cases.size(), 4U);
  EXPECT_EQ(shown.summary, "4 of 40 cases: of each plan.cuts the case with the most samples/s");
}

}  // namespace
}  // namespace pfeife
