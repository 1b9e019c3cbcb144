// The closing table, word for word.
#include "experiments/show/table.h"

#include <gmock/gmock.h>

#include <utility>

#include "experiments/show/table_columns.h"

namespace pfeife {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

Bytes mib(std::int64_t amount) { return Bytes{amount << 20}; }

PlanRecord plan(const std::string& name, const std::string& family, Nanoseconds estimate,
                std::vector<Bytes> peaks, std::vector<Bytes> limits) {
  PlanRecord plan;
  plan.row.plan = name;
  plan.row.family = family;
  plan.row.estimate = estimate;
  plan.row.samples_per_s = 95.238;
  plan.row.bubble = 0.428571;
  plan.row.peak_memory = std::ranges::max(peaks);
  plan.peak_memory = std::move(peaks);
  plan.memory_limit = std::move(limits);
  return plan;
}

/// A planned schedule, a baseline that does not fit and one that cannot be.
CaseRecord example() {
  CaseRecord record;
  record.name = "devices=2,microbatches=4";
  record.plans = {
      plan("planned", "looped", milliseconds{21}, {mib(10), mib(7)}, {mib(12), mib(12)}),
      plan("gpipe", "gpipe", milliseconds{121}, {mib(13), mib(12)}, {mib(12), mib(12)}),
      {}};
  record.plans[0].row.stages_per_rank = 2;
  record.plans[0].row.knobs = "loop_batch=8, prefetch=3";
  record.plans[0].row.gap = 0.05;
  record.plans[2].row.plan = "zbv";
  record.plans[2].reason = "not possible: 3 loops";
  return record;
}

TEST(Table, HasAColumnAFigureAndALineAPlan) {
  const std::string table =
      "                                                  estimated  estimated  estimated      "
      "estimated  estimated peak memory\n"
      "plan                                               step, ms  samples/s  bubble, %  "
      "over bound, %  of each device, MiB\n"
      "\n"
      "devices 2, microbatches 4  (limit 12.0 MiB)\n"
      "  planned: looped, V=2, loop_batch=8, prefetch=3     21.000      95.24       42.9           "
      " 5.0  "
      " 10.0   7.0\n"
      "  gpipe                                              121.00      95.24       42.9           "
      "   -  "
      "13.0!  12.0\n"
      "  zbv                                             not possible: 3 loops\n";
  EXPECT_EQ(results_table({example()}), table + "\n! more than the device has\n");
}

TEST(Table, ColumnsOfWhatNobodyHasAreLeftOut) {
  CaseRecord record = example();
  record.plans[0].row.gap.reset();
  EXPECT_EQ(figure_columns({record}).size(), 3u);
  record.plans[1].row.simulate = milliseconds{22};
  record.plans[1].row.measure = milliseconds{23};
  record.plans[1].row.estimate_p5 = milliseconds{18};
  record.plans[1].row.estimate_median = milliseconds{19};
  record.plans[1].row.estimate_p95 = milliseconds{24};
  record.plans[1].simulate_p5 = milliseconds{15};
  record.plans[1].simulate_median = milliseconds{16};
  record.plans[1].row.simulate_p95 = milliseconds{25};
  record.plans[1].row.gap = 0.5;
  std::vector<std::string> all;
  for (const FigureColumn& column : figure_columns({record}))
    all.push_back(column.top + " " + column.bottom + ": " + column.text(record.plans[1]) + " " +
                  column.text(PlanRecord{}));
  EXPECT_THAT(
      all, ::testing::ElementsAre(
               "estimated step, ms: 121.00 -", "estimated p5 p50 p95, ms: 18.000 19.000 24.000 -",
               "simulated step, ms: 22.000 -", "simulated p5 p50 p95, ms: 15.000 16.000 25.000 -",
               "measured step, ms: 23.000 -", "best engine samples/s: 95.24 -",
               "best engine bubble, %: 42.9 -", "estimated over bound, %: 50.0 -"));
}

TEST(Table, TimesAndRatesHaveFiveAndFourDigits) {
  EXPECT_EQ(milliseconds_text(std::nullopt), "-");
  EXPECT_EQ(milliseconds_text(Nanoseconds{9'999'940}), "9.9999");
  EXPECT_EQ(milliseconds_text(milliseconds{10}), "10.000");
  EXPECT_EQ(milliseconds_text(Nanoseconds{99'999'400}), "99.999");
  EXPECT_EQ(milliseconds_text(milliseconds{100}), "100.00");
  EXPECT_EQ(milliseconds_text(Nanoseconds{999'994'000}), "999.99");
  EXPECT_EQ(milliseconds_text(milliseconds{1000}), "1000.0");
  const FigureColumn samples = figure_columns({example()})[1];
  PlanRecord plan = example().plans[0];
  for (const auto& [rate, text] : {std::pair{9.9994, "9.999"},
                                   {10.0, "10.00"},
                                   {99.994, "99.99"},
                                   {100.0, "100.0"},
                                   {999.94, "999.9"},
                                   {1000.0, "1000"}}) {
    plan.row.samples_per_s = rate;
    EXPECT_EQ(samples.text(plan), text);
  }
}

TEST(Table, MemoryIsInGiBWhereEveryPeakHasOne) {
  CaseRecord record = example();
  EXPECT_STREQ(memory_unit({record}).name, "MiB");
  record.plans[0].row.peak_memory = mib(1024);
  EXPECT_STREQ(memory_unit({record}).name, "MiB") << "the other plan's would be 0.0";
  record.plans[1].row.peak_memory = mib(1024);
  EXPECT_STREQ(memory_unit({record}).name, "GiB");
  EXPECT_EQ(memory_unit({record}).text(mib(1536)), "1.5");
  EXPECT_STREQ(memory_unit(mib(1024)).name, "GiB");
  record.plans[0].row.peak_memory = mib(1) - Bytes{1};
  EXPECT_STREQ(memory_unit({record}).name, "KiB");
  EXPECT_EQ(memory_unit({record}).text(Bytes{1536}), "1.5");
  EXPECT_STREQ(memory_unit(std::vector<CaseRecord>{}).name, "MiB");
}

TEST(Table, LimitsHaveAUnitOfTheirOwn) {
  CaseRecord record = example();
  record.plans[0].memory_limit = {mib(1024 * 38), mib(1024 * 38)};
  EXPECT_THAT(results_table({record}), HasSubstr("microbatches 4  (limit 38.0 GiB)\n"));
  record.plans[0].memory_limit = {mib(512), mib(1024)};
  EXPECT_THAT(results_table({record}), HasSubstr("microbatches 4  (limits 512.0 to 1024.0 MiB)\n"));
}

TEST(Table, ManyRanksAreShownAsARange) {
  CaseRecord record = example();
  record.plans.resize(1);
  std::vector<Bytes>& peaks = record.plans[0].peak_memory;
  peaks = {mib(3), mib(2), mib(4), mib(9), mib(5), mib(6), mib(7), mib(8)};
  record.plans[0].memory_limit.assign(8, mib(9));
  EXPECT_THAT(results_table({record}),
              HasSubstr("    3.0   2.0   4.0   9.0   5.0   6.0   7.0   8.0\n"));
  peaks.push_back(mib(2));
  record.plans[0].memory_limit.push_back(mib(8));
  EXPECT_THAT(results_table({record}), HasSubstr("  2.0 to 9.0 (rank 3)\n"));
  EXPECT_THAT(results_table({record}), HasSubstr("  (limits 8.0 to 9.0 MiB)\n"));
  EXPECT_THAT(results_table({record}), Not(HasSubstr("!")));
  const std::vector<Bytes> limits = std::exchange(record.plans[0].memory_limit, {});
  EXPECT_THAT(results_table({record}), HasSubstr("\ndevices 2, microbatches 4\n"));
  record.plans[0].memory_limit = limits;
  peaks[3] = mib(10);
  EXPECT_THAT(results_table({record}), HasSubstr("  2.0 to 10.0! (rank 3)\n"));
}

/// The lines under the plan.
std::string below(const CaseRecord& record) {
  CaseRecord alone = record;
  alone.plans.resize(1);
  const std::string table = results_table({alone});
  const std::size_t line = table.find("  planned: ");
  return table.substr(table.find('\n', line) + 1);
}

// 21.105 ms is 0.5 % more than 21. Each needs a twentieth less than the one before; of those that
// take as long, to the digits shown, the last is; the plan itself is not.
TEST(Table, LessMemoryForMoreTimeInALine) {
  CaseRecord record = example();
  const auto at = [](std::int64_t us, std::int64_t memory) {
    return FrontPoint{"gpipe", std::chrono::microseconds{us}, mib(memory)};
  };
  record.front = {at(21'000, 10)};
  EXPECT_EQ(below(record), "");
  record.front = {at(21'000, 10), at(23'100, 8)};
  EXPECT_THAT(results_table({record}), HasSubstr(" 10.0   7.0\n    less memory: "))
      << "below the plan, not below the baselines";
  record.front = {at(21'000, 10), at(21'105, 9), at(21'106, 8), at(23'100, 7)};
  record.front.push_back({"gpipe", milliseconds{25}, mib(7) - Bytes{100}});
  EXPECT_EQ(below(record), "    less memory: 8.0 MiB at +0.5 %, 7.0 MiB at +10.0 %\n");
  // Beside the plan that is shown, which need not be the fastest by estimate.
  record.front = {at(21'000, 1000), at(21'210, 951), at(21'420, 950), at(21'630, 903)};
  record.plans.front().row.peak_memory = mib(1000);
  EXPECT_THAT(below(record), HasSubstr("    less memory: 950.0 MiB at +2.0 %\n"));
  record = example();
  record.front = {at(18'900, 12), at(19'950, 10), at(20'580, 9), at(23'100, 8)};
  EXPECT_EQ(below(record), "    less memory: 9.0 MiB at -2.0 %, 8.0 MiB at +10.0 %\n");
  record.front = {at(21'000, 10), at(23'100, 9), at(25'200, 8), at(27'300, 7)};
  EXPECT_EQ(below(record),
            "    less memory: 9.0 MiB at +10.0 %, 8.0 MiB at +20.0 %, 7.0 MiB at +30.0 %\n");
  record.front.push_back(at(42'000, 6));
  EXPECT_EQ(below(record),
            "    less memory: 9.0 MiB at +10.0 %, 8.0 MiB at +20.0 %, 7.0 MiB at +30.0 %, ...\n");
}

// To five digits 19.996999 ms is 19.997, which is not proven.
TEST(Table, TheBoundIsRoundedDownAndSaysWhatItCovers) {
  CaseRecord record = example();
  record.plans[0].row.lower_bound = Nanoseconds{19'996'999};
  record.plans[0].row.gap = 0.0502;
  record.bound_covers = "all cuts of 37 layers, 14 listed schedules in all";
  EXPECT_EQ(below(record),
            "    bound 19.996 ms (gap 5.0 % estimated) of all cuts of 37 layers, 14 listed "
            "schedules in all\n");
  // A long class goes on in a further line.
  record.bound_covers += ", in all the placements that they have";
  EXPECT_THAT(below(record), HasSubstr("14 listed schedules in all, in all the\n"
                                       "        placements that they have\n"));
  record.plans[0].row.simulate_gap = 0.1;
  EXPECT_THAT(below(record), HasSubstr("(gap 10.0 % simulated, 5.0 % estimated) of all"));
  const std::string twice = results_table({record, record});
  EXPECT_THAT(twice, HasSubstr(" of all cuts"));
  EXPECT_THAT(twice, HasSubstr(" % estimated) of the same class\n"));
  EXPECT_EQ(figure_columns({record}).back().top, "simulated");
  EXPECT_EQ(figure_columns({record}).back().text(record.plans[0]), "10.0");
}

// As many decimals as the plan's own time: 0.31826 ms is not below 0.3183, nor 1069547.78 ms below
// 1069547.8. What the plan reaches reads as its time does, however that is rounded.
TEST(Table, TheBoundHasThePlansDecimalsAndIsThePlansTimeWhereThatIsReached) {
  CaseRecord record = example();
  const auto shown = [&](std::int64_t estimate, std::int64_t bound) {
    record.plans[0].row.estimate = Nanoseconds{estimate};
    record.plans[0].row.lower_bound = Nanoseconds{bound};
    record.plans[0].row.gap = static_cast<double>(estimate) / static_cast<double>(bound) - 1;
    const std::string line = below(record);
    return line.substr(0, line.find(" ms"));
  };
  EXPECT_EQ(shown(344'260, 318'260), "    bound 0.3182");
  EXPECT_EQ(shown(1'096'547'780'000, 1'069'547'780'000), "    bound 1069547.7");
  EXPECT_EQ(shown(1'506'190'000, 1'506'190'000), "    bound 1506.2");
  EXPECT_EQ(shown(1'506'190'001, 1'506'190'000), "    bound 1506.1");
}

TEST(Table, SaysThatBaselinesDoNotRecompute) {
  CaseRecord record = example();
  const std::string note = "no baseline does";
  EXPECT_THAT(results_table({record}), Not(HasSubstr(note)));
  record.plans[0].recomputes = true;
  EXPECT_THAT(results_table({record}), HasSubstr(note));
  record.plans.resize(1);
  EXPECT_THAT(results_table({record}), Not(HasSubstr(note)));
}

TEST(Table, OnlyWhatIsOptimalIsAtItsBound) {
  CaseRecord record = example();
  const auto shown = [&](double gap) {
    record.plans[0].row.lower_bound = milliseconds{21};
    record.plans[0].row.gap = gap;
    EXPECT_EQ(below(record).find(": optimal") != std::string::npos, gap == 0) << gap;
    return figure_columns({record}).back().text(record.plans[0]);
  };
  EXPECT_EQ(shown(0), "0");
  EXPECT_EQ(shown(0.00001), "<0.01");
  EXPECT_EQ(shown(0.000101), "0.01");
  EXPECT_EQ(shown(0.00049), "0.05");
  EXPECT_EQ(shown(0.0005), "0.1");
  EXPECT_EQ(shown(0.012), "1.2");
}

// Orders of families that the bound leaves out may be faster than a plan that reaches it.
TEST(Table, NothingIsOptimalWhereOrdersAreLeftOut) {
  CaseRecord record = example();
  record.plans[0].row.lower_bound = milliseconds{21};
  record.plans[0].row.gap = 0;
  EXPECT_THAT(below(record), HasSubstr(": optimal"));
  record.orders_left_out = true;
  EXPECT_THAT(below(record), Not(HasSubstr(": optimal")));
}

Reason slower(int ms) { return {.why = Why::Slower, .slower = milliseconds{ms}}; }
Reason lacks(std::int64_t gib) {
  return {.why = Why::LacksMemory, .rank = RankId{0}, .lacking = gib * kGiB};
}

TEST(Table, EachOtherFamilySaysWhyItLostIfTheCasesAreFew) {
  CaseRecord record = example();
  const std::string ruled_out = "its bound is not below the plan's time";
  const LostSchedule early{"1f1b, prefetch=0", "1f1b", {.why = Why::RuledOut}, {}};
  record.lost = {{"looped, V=3", "looped", slower(1), {}},
                 {"zbv, V=2", "zbv", slower(2), {}},
                 {"gpipe", "gpipe", {.why = Why::RuledOut}, {}},
                 {"zbv, V=2, x=1", "zbv", slower(3), {}},
                 early,
                 {"zb_h1", "zb_h1", lacks(1), {}}};
  const std::string line =
      "    other families: zbv: 2 ms slower; gpipe, 1f1b: their bounds are not below the plan's "
      "time; zb_h1: rank 0\n        lacks 1 GiB";
  EXPECT_EQ(below(record), line + "\n");
  record.lost.erase(record.lost.begin() + 4);
  EXPECT_THAT(below(record), HasSubstr("gpipe: " + ruled_out + ";"));
  record.lost.insert(record.lost.begin() + 4, early);
  record.lost.push_back({"zb_h2", "zb_h2", lacks(2), {}});
  EXPECT_EQ(below(record), line + "; zb_h2: rank 0 lacks 2 GiB\n");
  record.lost.push_back({"zb1p", "zb1p", lacks(3), {}});
  EXPECT_EQ(below(record), line + "; zb_h2: rank 0 lacks 2 GiB; others are in report.html\n");
  EXPECT_THAT(results_table(std::vector<CaseRecord>(8, record)), HasSubstr(line));
  EXPECT_THAT(results_table(std::vector<CaseRecord>(9, record)), Not(HasSubstr("other families")));
  // Where nothing fits no family is the plan's.
  record.plans[0] = {};
  record.plans[0].row.plan = "planned", record.plans[0].row.family = "looped";
  record.plans[0].reason = "no plan fits";
  EXPECT_THAT(results_table({record}), HasSubstr("    families: looped: 1 ms slower; zbv: "));
}

TEST(Table, OtherWaysOfChoosingAreToldWhereTheyPickOtherPlans) {
  CaseRecord record = example();
  const PlanChoice first{"estimate", 0, "looped", milliseconds{21}, milliseconds{24}, {}, true};
  PlanChoice second{"simulate", 2, "gpipe", milliseconds{22}, milliseconds{23}, {}, false};
  record.choices = {first};
  EXPECT_EQ(below(record), "");
  record.choices = {first, second};
  EXPECT_EQ(below(record),
            "    select_by simulate picks gpipe, 22.000 ms estimated, 23.000 ms simulated\n");
  second.p95 = milliseconds{30};
  record.choices = {first, second, second};
  record.choices[2].by = "p95";
  EXPECT_EQ(below(record),
            "    select_by simulate or p95 picks gpipe, 22.000 ms estimated, 23.000 ms simulated, "
            "p95 30.000 ms\n");
  record.choices[1].simulate = record.choices[2].simulate = std::nullopt;
  EXPECT_EQ(below(record),
            "    select_by simulate or p95 picks gpipe, 22.000 ms estimated, p95 30.000 ms\n");
  record.choices[0].used = false;
  EXPECT_EQ(below(record), "") << "the plan is none of them";
}

TEST(Table, WhatWasOpenAndHowItWasSettled) {
  CaseRecord record = example();
  record.alternatives = {
      {.choice = "4 microbatches of 3", .estimate = milliseconds{21}},
      {.choice = "6 of 2", .estimate = milliseconds{22}, .reason = slower(1)},
      {.choice = "12 of 1", .reason = {.why = Why::NothingFound}},
      {.choice = "3 of 4", .bound = milliseconds{23}, .reason = {.why = Why::RuledOut}}};
  const std::string four =
      "    chosen: 4 microbatches of 3: 21.000 ms estimated\n"
      "    not:    6 of 2: 1 ms slower\n"
      "    not:    12 of 1: no cuts found that fit\n"
      "    not:    3 of 4: its bound, 23 ms, is not below the plan's time\n";
  EXPECT_EQ(below(record), four);
  record.alternatives.push_back(record.alternatives[3]);
  EXPECT_EQ(below(record), four + "    and 1 more, in report.html\n");
  record.alternatives = {{.choice = "1 of 12"}};
  EXPECT_EQ(below(record), "    chosen: 1 of 12: closest to fitting\n");
}

TEST(Table, WhatWouldHelpAndWhatWouldNot) {
  CaseRecord record = example();
  record.tried = {{.change = "4 devices",
                   .schedule = "1f1b",
                   .estimate = milliseconds{20},
                   .peak_memory = mib(3)},
                  {.change = "other schedules", .reason = "rank 0 lacks 1 MiB"}};
  EXPECT_EQ(below(record),
            "    would help: 4 devices: 1f1b, 20 ms estimated, peak memory 3 MiB\n"
            "    tried:      other schedules: does not help: rank 0 lacks 1 MiB\n");
  record.tried = {{.change = "other schedules, which keep fewer microbatches in flight",
                   .schedule = "looped, V=3, loop_batch=4, prefetch=2",
                   .estimate = milliseconds{20},
                   .peak_memory = mib(3)}};
  EXPECT_EQ(below(record),
            "    would help: other schedules, which keep fewer microbatches in flight: looped, "
            "V=3, loop_batch=4,\n        prefetch=2, 20 ms estimated, peak memory 3 MiB\n");
}

TEST(Table, ALongReasonWhyThereIsNoPlanGoesOnInAFurtherLine) {
  CaseRecord record = example();
  record.plans[2].reason =
      "not possible: zbv cannot be made for 2 ranks, 4 microbatches, 3 stages a rank: it needs "
      "two stages "
      "a rank";
  EXPECT_THAT(
      results_table({record}),
      HasSubstr("  zbv                                             not possible: zbv cannot "
                "be made for 2 ranks, 4\n"
                "        microbatches, 3 stages a rank: it needs two stages a rank\n"));
}

}  // namespace
}  // namespace pfeife
