// The closing table, word for word: golden files of 80, 120 and 200 columns, and what it says
// below.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "planner/ir/basics/grid.h"
#include "plots/screen/columns.h"
#include "plots/screen/details_and_hints.h"
#include "plots/screen/table.h"
#include "tests/support/mixed_engines.h"

namespace pfeife {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

Bytes mib(std::int64_t amount) { return Bytes{amount << 20}; }

PlanRecord estimated_plan(const std::string& name, const std::string& family, Nanoseconds estimate,
                          std::vector<Bytes> peaks, std::vector<Bytes> limits) {
  PlanRecord plan;
  plan.row.plan = name;
  plan.row.family = family;
  plan.row.estimate = estimate;
  plan.row.samples_per_s = 95.238;
  plan.row.bubble = 0.428571;
  plan.row.peak_memory = std::ranges::max(peaks);
  plan.need.allocated = std::move(peaks);
  plan.need.limit = std::move(limits);
  return plan;
}

/// A planned schedule, a baseline that does not fit and one that cannot be.
CaseRecord example() {
  CaseRecord record;
  record.name = "devices=2,microbatches=4";
  record.plans = {
      estimated_plan("planned", "looped", milliseconds{21}, {mib(10), mib(7)}, {mib(12), mib(12)}),
      estimated_plan("gpipe", "gpipe", milliseconds{121}, {mib(13), mib(12)}, {mib(12), mib(12)}),
      {}};
  record.plans[0].row.stages_per_rank = 2;
  record.plans[0].row.knobs = "loop_batch=8, prefetch=3";
  record.plans[0].row.gap = 0.05;
  record.plans[2].row.plan = "zbv";
  record.plans[2].reason = "not possible: 3 loops";
  return record;
}

Bytes gibibytes(double amount) {
  return Bytes{static_cast<std::int64_t>(amount * static_cast<double>(kGiB.value))};
}

/// A case with a plan, in figures of ViT-g/14 on A100s: ms, samples/s, bubble, peaks in GiB.
PlanRecord simulated(const std::string& family, std::size_t stages, double ms, double rate,
                     double bubble, const std::vector<double>& peaks) {
  PlanRecord plan;
  plan.row.plan = plan.row.family = family;
  plan.row.stages_per_rank = stages;
  plan.row.devices = 4;
  plan.row.estimate = plan.row.simulate = nanoseconds_from_ms(ms);
  plan.row.samples_per_s = rate;
  plan.row.bubble = bubble;
  for (const double peak : peaks) plan.need.allocated.push_back(gibibytes(peak));
  plan.need.limit.assign(peaks.size(), gibibytes(38));
  plan.row.memory_limit = gibibytes(38);
  plan.row.peak_memory = std::ranges::max(plan.need.allocated);
  plan.row.feasible = *plan.row.peak_memory <= gibibytes(38);
  return plan;
}

/// A chosen plan, baselines of which one lacks 0.2 GiB, and one that cannot be; then a case that
/// nothing fits, and in which the estimate is far off.
std::vector<CaseRecord> screen_example() {
  CaseRecord first, second;
  first.name = "devices=4,microbatches=8";
  first.plans = {simulated("zb_greedy", 3, 797.87, 240.64, 0.026, {35.6, 33.9, 34.9, 36.7}),
                 simulated("gpipe", 1, 1084.7, 177.01, 0.284, {38.0, 37.9, 38.2, 38.1}),
                 simulated("1f1b", 1, 1086.8, 176.66, 0.285, {20.7, 16.3, 12.1, 7.6}),
                 simulated("interleaved_1f1b", 2, 938.58, 204.57, 0.172, {27.2, 22.9, 18.7, 14.2}),
                 {}};
  for (PlanRecord& plan : first.plans) plan.row.microbatches = 8;
  PlanRecord& chosen = first.plans[0];
  chosen.row.plan = "planned";
  chosen.row.simulate_gap = chosen.row.gap = 0.008;
  chosen.row.lower_bound = nanoseconds_from_ms(791.403), chosen.row.bound_class = "12 families";
  first.bound_covers = "all cuts of the captured order of 326 layers, 31 listed schedules";
  first.plans[4].row.plan = "zbv";
  first.plans[4].reason = "not possible: zbv needs two stages a rank, and the config allows three";
  second.name = "devices=4,microbatches=16";
  second.plans = {simulated("looped", 2, 1575.1, 243.8, 0.013, {38.6, 37.8, 37.7, 38.01})};
  second.plans[0].row.plan = "planned";
  second.plans[0].row.microbatches = 16;
  second.plans[0].row.bound_class = "12 families";
  second.plans[0].row.knobs = "loop_batch=8, prefetch=3, recompute=0-6";
  second.plans[0].row.estimate = nanoseconds_from_ms(1500);
  second.plans[0].row.simulate_gap = 0.071;
  second.tried = {{.change = "8 devices instead of 4",
                   .schedule = "1f1b",
                   .estimate = milliseconds{900},
                   .peak_memory = gibibytes(20)},
                  {.change = "other schedules", .reason = "rank 0 lacks 0.2 GiB"}};
  return {first, second};
}

std::string golden(const std::string& name) {
  std::ifstream file(std::string(PFEIFE_SOURCE_DIR) + "/tests/data/screen/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

TEST(ScreenTable, MarksThePlansThatABetterOneMayReplace) {
  const std::vector<CaseRecord> cases = screen_example();
  const std::string text = screen_table(cases, {.still_moving = {cases[0].name}});
  EXPECT_THAT(text, HasSubstr("zb_greedy V=3 ~ "));
  EXPECT_THAT(text, HasSubstr("* planned, ~ planned so far"));
  EXPECT_THAT(screen_table(cases, {}), Not(HasSubstr("~")));
}

TEST(ScreenTable, IsAsItWasOnTerminalsOf80And120And200Columns) {
  for (const std::size_t width : {80U, 120U, 200U}) {
    const std::string name = std::to_string(width) + ".txt";
    const std::string table =
        screen_table(screen_example(), {.width = width, .report = "results/vit_g14/report.html"});
    EXPECT_EQ(table, golden(name)) << name;
    EXPECT_LE(longest_line(table), width);
  }
  const std::string verbose = screen_table(screen_example(), {.verbose = true});
  EXPECT_EQ(verbose, golden("verbose.txt"));
  EXPECT_LE(longest_line(verbose), 80U);
}

// The head and six rows, whatever the width: of a long name and a long reason the beginning is
// there.
TEST(ScreenTable, OfManyWidthsNoRowIsBroken) {
  for (std::size_t width = 60; width < 140; ++width) {
    const std::string table = screen_table(screen_example(), {.width = width});
    EXPECT_LE(longest_line(table), width);
    const std::size_t first = table.find("\n\n") + 2;
    const std::string rows = table.substr(first, table.find("\n\n", first) + 1 - first);
    const bool knobs_below = rows.find("  loop_batch=8") != std::string::npos;
    EXPECT_EQ(std::ranges::count(rows, '\n'), knobs_below ? 8 : 7) << width << "\n" << rows;
  }
}

// A name without room: that the plan recomputes is seen, and no knob is cut.
TEST(ScreenTable, ANameWithoutRoomKeepsThatItRecomputesAndItsKnobsStandBelow) {
  CaseRecord record = example();
  record.plans[0].row.knobs = "loop_batch=8, prefetch=3, recompute=blocks";
  record.plans[0].recomputes = true;
  const std::string narrow = screen_table({record}, {.width = 60});
  EXPECT_THAT(narrow, HasSubstr("looped V=2 +rec * "));
  EXPECT_THAT(narrow, HasSubstr("\n        loop_batch=8, prefetch=3, recompute=blocks\n"));
  EXPECT_THAT(narrow, HasSubstr("only what says +rec or recompute= recomputes anything"));
  EXPECT_THAT(screen_table({record}, {.width = 200}),
              HasSubstr("looped V=2 loop_batch=8 prefetch=3 recompute=blocks * "));
}

// The text with colours is the text without them, once the codes are gone.
TEST(ScreenTable, ColoursAreBoldForTheChosenRedForWhatDoesNotFitYellowForFarFromTheBound) {
  const std::string plain = screen_table(screen_example(), {});
  std::string coloured = screen_table(screen_example(), {.colour = true});
  EXPECT_EQ(plain.find('\033'), std::string::npos);
  for (const char* code : {"\033[1mzb_greedy V=3 *\033[0m", "\033[31mgpipe\033[0m",
                           "\033[31m+0.2 !\033[0m", "\033[33m7.1\033[0m", "\033[1m797.9\033[0m"})
    EXPECT_THAT(coloured, HasSubstr(code));
  for (std::size_t at; (at = coloured.find('\033')) != std::string::npos;)
    coloured.erase(at, coloured.find('m', at) - at + 1);
  EXPECT_EQ(coloured, plain);
}

TEST(ScreenTable, NamesNeitherMoveTheCursorNorTurnTheLine) {
  EXPECT_EQ(grid_text({{"name", false}, {"n", true}}, {{{{"a\x1b[2J\n\u202Eb"}, {"1"}}}}, false),
            "name               n\na\\x1b[2J\\n\\u202eb  1\n");
  EXPECT_EQ(wrapped("of x\n\u202Ey", 80), "of x\\n\\u202ey\n");
  EXPECT_EQ(clipped("ääää", 5), "ä..");
}

TEST(ScreenTable, NumbersAreAlignedAtThePoint) {
  const std::string text = grid_text(
      {{"a"}, {"b", false}}, {{{{"1.5"}, {"x"}}}, {{{"12"}, {"y"}}}, {{{"<0.01"}, {"z"}}}}, false);
  EXPECT_EQ(text, "    a  b\n 1.5   x\n12     y\n<0.01  z\n");
}

// 1086.8 / 797.87 = 1.3621; over gpipe where there is no 1f1b; no column without baselines.
TEST(ScreenTable, SpeedUpsAreOver1f1bOrTheFirstBaseline) {
  std::vector<CaseRecord> cases = screen_example();
  EXPECT_THAT(screen_table(cases, {}), HasSubstr("vs 1f1b"));
  EXPECT_THAT(screen_table(cases, {}), HasSubstr("1.36x"));
  cases[0].plans.erase(cases[0].plans.begin() + 2);
  EXPECT_THAT(screen_table(cases, {}), HasSubstr("vs gpipe"));
  cases[0].plans.resize(1);
  EXPECT_THAT(screen_table(cases, {}), Not(HasSubstr("vs ")));
}

// The simulated 250 ms beside the simulated 300 ms of 1f1b, not the measured 1000 ms.
TEST(ScreenTable, RatiosAndOrderAreOfOneEngineAndWhatWasMeasuredStandsBeside) {
  const std::string table = screen_table({mixed_case()}, {.width = 100});
  EXPECT_THAT(table, HasSubstr("times simulated; "));
  EXPECT_THAT(
      table,
      HasSubstr("D  N  plan              step ms  measured ms    error  vs 1f1b  peak GiB\n"
                "2  6  planned *           250.0       1000.0  -75.0 %    1.20x     4.0\n"
                "      interleaved_1f1b    276.0                          1.09x     4.0\n"
                "      1f1b                300.0                          1.00x     4.0\n"
                "      gpipe               245.0                          1.22x    +1.0 !\n"));
  EXPECT_THAT(table, HasSubstr("error: of the prediction"));
}

// 800 / 1000 = 0.80; no time of gpipe can be compared with those.
TEST(ScreenTable, WhereAllThatFitWereMeasuredRatiosAreMeasured) {
  const std::string table = screen_table({measured_case()}, {.width = 100});
  EXPECT_THAT(table, HasSubstr("times measured; "));
  EXPECT_THAT(table, HasSubstr("D  N  plan              step ms  vs 1f1b  peak GiB\n"
                               "2  6  planned *          1000.0    0.80x     4.0\n"
                               "      1f1b                800.0    1.00x     4.0\n"
                               "      interleaved_1f1b    900.0    0.89x     4.0\n"
                               "      gpipe                                 +1.0 !\n"));
}

TEST(ScreenTable, CasesOfDifferentEnginesAreToldApart) {
  const std::string table = screen_table({mixed_case(), measured_case()}, {.width = 120});
  EXPECT_THAT(table, HasSubstr("times measured or simulated"));
  EXPECT_THAT(table, HasSubstr("2  6  simulated  planned"));
  EXPECT_THAT(table, HasSubstr("2  6  measured   planned"));
}

TEST(ScreenTable, EachOfEightDevicesOrTheLeastAndTheMostOfThem) {
  CaseRecord record = screen_example()[0];
  record.plans.resize(1);
  record.plans[0].need.allocated = {gibibytes(30), gibibytes(31), gibibytes(32), gibibytes(36.7),
                                    gibibytes(33), gibibytes(34), gibibytes(35), gibibytes(36)};
  record.plans[0].need.limit.assign(8, gibibytes(38));
  EXPECT_THAT(screen_table({record}, {.width = 160}),
              HasSubstr("  30.0 31.0 32.0 36.7 33.0 34.0 35.0 36.0\n"));
  EXPECT_THAT(screen_table({record}, {.width = 120}), HasSubstr("  30.0 31.0 32.0 36.7"));
  record.plans.push_back(
      simulated("interleaved_1f1b", 2, 1000, 1, 0.1, std::vector<double>(9, 20)));
  EXPECT_THAT(screen_table({record}, {.width = 120}), HasSubstr("  30.0 to 36.7 (rank 3)\n"));
}

// 38.01 of 38 GiB: 0.01 are missing, which must not read as nothing.
TEST(ScreenTable, WhatIsMissingIsShownHoweverLittleItIs) {
  std::vector<CaseRecord> cases = screen_example();
  cases[0].plans[1].need.allocated = {gibibytes(38.01)};
  cases[0].plans[1].need.limit = {gibibytes(38)};
  EXPECT_THAT(screen_table(cases, {}), HasSubstr("+<0.1 !"));
  cases[0].plans[1].need.allocated = {gibibytes(50.04)};
  EXPECT_THAT(screen_table(cases, {}), HasSubstr("+12.0 !"));
}

TEST(ScreenTable, ColumnsMayBeChosen) {
  const std::string table =
      screen_table(screen_example(), {.columns = {"estimate", "bound", "limit"}});
  EXPECT_THAT(table, testing::ContainsRegex("  plan +estimated ms  bound ms  limit GiB\n"));
  EXPECT_THAT(table, HasSubstr("797.9     791.4       38.0\n"));
}

TEST(ScreenTable, WhatTellsCasesApartIsAColumnOrAHeading) {
  std::vector<CaseRecord> cases = screen_example();
  cases[0].swept = {{"training.precision", "fp32"}};
  cases[1].swept = {{"training.precision", "bf16_amp"}};
  EXPECT_THAT(screen_table(cases, {}), HasSubstr("D   N  precision  plan"));
  cases[0].cluster = "clusters/a_cluster_with_a_long_name.yaml";
  cases[1].cluster = "clusters/b.yaml";
  EXPECT_THAT(screen_table(cases, {}),
              HasSubstr("\ncluster a_cluster_with_a_long_name, precision fp32\n4   8  zb_greedy"));
}

TEST(ScreenTable, OfManyCasesWithTheSameComplaintTheFirstAreTold) {
  std::vector<CaseRecord> cases(5, screen_example()[1]);
  const std::string table = screen_table(cases, {});
  EXPECT_THAT(table, HasSubstr("and 3 more cases that nothing fits\n"));
  EXPECT_THAT(table,
              HasSubstr("and 3 more cases with estimate and simulation more than 1 % apart\n"));
}

TEST(ScreenTable, OperatorsWithoutACostAreToldOnce) {
  std::vector<CaseRecord> cases = screen_example();
  cases[0].uncosted = cases[1].uncosted = {"my::op (3 nodes) has none"};
  const std::string table = screen_table(cases, {});
  EXPECT_EQ(table.find("no cost: my::op"), table.rfind("no cost: my::op"));
  EXPECT_THAT(table, HasSubstr("no cost: my::op (3 nodes) has none\n"));
}

// What is unfinished is a field: a note is none, whatever it begins with.
TEST(ScreenTable, UnfinishedSearchesStandBelowAndNotesDoNot) {
  CaseRecord record = example();
  record.notes = {"the model is small", "unfinished: a note of the model's author"};
  EXPECT_THAT(screen_table({record}, {}), Not(HasSubstr("unfinished")));
  record.unfinished = {{Unfinished::What::OpenChoices, 3}};
  const std::string table = screen_table({record}, {});
  EXPECT_THAT(table, HasSubstr("\nunfinished: 3 of the choices that are open"));
  EXPECT_THAT(table, Not(HasSubstr("the model is small")));
}

// The shortest step, 21 ms, has so many digits; speed-ups keep theirs.
TEST(ScreenTable, StepsHaveAsManyDigitsAsAreTrue) {
  EXPECT_THAT(screen_table({example()}, {}), HasSubstr(" 21.00 "));
  EXPECT_THAT(screen_table({example()}, {.digits = 3}), HasSubstr(" 21.0 "));
  EXPECT_THAT(screen_table(screen_example(), {.digits = 3}), HasSubstr("1.36x"));
}

TEST(ScreenTable, TimesHaveFiveDigitsInSentences) {
  EXPECT_EQ(milliseconds_text(std::nullopt), "-");
  EXPECT_EQ(milliseconds_text(Nanoseconds{9'999'940}), "9.9999");
  EXPECT_EQ(milliseconds_text(milliseconds{10}), "10.000");
  EXPECT_EQ(milliseconds_text(Nanoseconds{99'999'400}), "99.999");
  EXPECT_EQ(milliseconds_text(milliseconds{100}), "100.00");
  EXPECT_EQ(milliseconds_text(Nanoseconds{999'994'000}), "999.99");
  EXPECT_EQ(milliseconds_text(milliseconds{1000}), "1000.0");
}

TEST(ScreenTable, MemoryIsInGiBWhereEveryPeakHasOne) {
  CaseRecord record = example();
  EXPECT_STREQ(memory_unit(std::vector{record}).name, "MiB");
  record.plans[0].row.peak_memory = mib(1024);
  EXPECT_STREQ(memory_unit(std::vector{record}).name, "MiB") << "the other plan's would be 0.0";
  record.plans[1].row.peak_memory = mib(1024);
  EXPECT_STREQ(memory_unit(std::vector{record}).name, "GiB");
  EXPECT_EQ(memory_unit(std::vector{record}).text(mib(1536)), "1.5");
  EXPECT_STREQ(memory_unit(mib(1024)).name, "GiB");
  record.plans[0].row.peak_memory = mib(1) - Bytes{1};
  EXPECT_STREQ(memory_unit(std::vector{record}).name, "KiB");
  EXPECT_EQ(memory_unit(std::vector{record}).text(Bytes{1536}), "1.5");
  EXPECT_STREQ(memory_unit(std::vector<CaseRecord>{}).name, "MiB");
}

/// What is said of the chosen plan, without the case's heading and the memory of its devices.
std::string below(const CaseRecord& record) {
  CaseRecord alone = record;
  alone.plans.resize(1);
  const std::string text = details_text(alone, memory_unit(mib(1)), 200);
  const std::size_t first = text.find('\n') + 1;
  return text.substr(first, text.find("  estimated peak memory of each") - first);
}

TEST(ScreenDetails, ABoundThatKnowsOfLinksIsNamedWhereItSaysMore) {
  CaseRecord record = example();
  ResultRow& row = record.plans.front().row;
  row.lower_bound = *row.estimate, row.gap = row.simulate_gap = 0.1;
  record.bound_covers = "all cuts";
  record.links_bound = *row.lower_bound + Nanoseconds{1};
  EXPECT_THAT(below(record), Not(HasSubstr("because links are shared")));
  record.links_bound = 2 * *row.lower_bound;
  row.simulate = 3 * *row.lower_bound;
  EXPECT_THAT(below(record),
              HasSubstr("of all cuts; none of them is simulated below " +
                        milliseconds_text(record.links_bound) + " ms, because links are shared"));
}

// 21.105 ms is 0.5 % more than 21. Each needs a twentieth less than the one before; of those that
// take as long, to the digits shown, the last is; the plan itself is not.
TEST(ScreenDetails, LessMemoryForMoreTimeInALine) {
  CaseRecord record = example();
  const auto at = [](std::int64_t us, std::int64_t memory) {
    return FrontPoint{"gpipe", std::chrono::microseconds{us}, mib(memory)};
  };
  record.front = {at(21'000, 10)};
  EXPECT_EQ(below(record), "");
  record.front = {at(21'000, 10), at(23'100, 8)};
  record.front = {at(21'000, 10), at(21'105, 9), at(21'106, 8), at(23'100, 7)};
  record.front.push_back({"gpipe", milliseconds{25}, mib(7) - Bytes{100}});
  EXPECT_EQ(below(record),
            "  less memory, times estimated: 8.0 MiB at +0.5 %, 7.0 MiB at +10.0 %\n");
  record.front = {at(21'000, 1000), at(21'210, 951), at(21'420, 950), at(21'630, 903)};
  record.plans.front().row.peak_memory = mib(1000);
  EXPECT_THAT(below(record), HasSubstr("  less memory, times estimated: 950.0 MiB at +2.0 %\n"));
  record = example();
  record.front = {at(18'900, 12), at(19'950, 10), at(20'580, 9), at(23'100, 8)};
  EXPECT_EQ(below(record), "  less memory, times estimated: 8.0 MiB at +10.0 %\n");
  // The simulator chose a plan in spite of its estimate: estimates are no reason to take another.
  record.choices = {{SelectBy::Estimate, 0, "gpipe"},
                    {SelectBy::Simulate, 1, "looped", {}, {}, {}, true}};
  EXPECT_THAT(below(record), Not(HasSubstr("less memory")));
  record.choices.clear();
  record.front = {at(21'000, 10), at(23'100, 9), at(25'200, 8), at(27'300, 7)};
  EXPECT_EQ(below(record),
            "  less memory, times estimated: 9.0 MiB at +10.0 %, 8.0 MiB at +20.0 %, 7.0 MiB at "
            "+30.0 %\n");
  record.front.push_back(at(42'000, 6));
  EXPECT_EQ(below(record),
            "  less memory, times estimated: 9.0 MiB at +10.0 %, 8.0 MiB at +20.0 %, 7.0 MiB at "
            "+30.0 %, ...\n");
}

// To five digits 19.996999 ms is 19.997, which is not proven.
TEST(ScreenDetails, TheBoundIsRoundedDownAndSaysWhatItCovers) {
  CaseRecord record = example();
  record.plans[0].row.lower_bound = Nanoseconds{19'996'999};
  record.plans[0].row.gap = 0.0502;
  record.bound_covers = "all cuts of 37 layers, 14 listed schedules in all";
  EXPECT_EQ(below(record),
            "  bound 19.996 ms (gap 5.0 % estimated) of all cuts of 37 layers, 14 listed "
            "schedules in all\n");
  record.plans[0].row.simulate_gap = 0.1;
  EXPECT_THAT(below(record), HasSubstr("(gap 10.0 % simulated, 5.0 % estimated) of all"));
}

// Files of one name in two folders have their folders in front, no more of them than it takes.
TEST(ScreenTable, FilesOfOneNameAreToldApart) {
  const auto models = [](const std::vector<std::string>& files) {
    std::vector<CaseRecord> cases;
    for (const std::string& file : files) cases.push_back(example()), cases.back().model = file;
    for (const Key& key : keys_of(cases))
      if (key.head == "model") return key.values;
    return std::vector<std::string>{};
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(models({"v1/t.csv", "v2/t.csv"}), (Names{"v1/t", "v2/t"}));
  EXPECT_EQ(models({"/a/x/t.csv", "/b/x/t.csv", "/b/x/u.csv"}), (Names{"a/x/t", "b/x/t", "u"}));
  EXPECT_EQ(models({"v1/t.csv", "v1/u.csv"}), (Names{"t", "u"}));
  EXPECT_EQ(models({"t.csv", "t.pt2"}), (Names{"t.csv", "t.pt2"}));
  EXPECT_EQ(models({"v1.0/t", "v1.1/t"}), (Names{"v1.0/t", "v1.1/t"}));
  EXPECT_EQ(models({"v1/t.csv", "v1/t.csv"}), Names{}) << "one model has no column";
}

// As many decimals as the plan's own time: 0.31826 ms is not below 0.3183, nor 1069547.78 ms below
// 1069547.8. What the plan reaches reads as its time does, however that is rounded.
TEST(ScreenDetails, TheBoundHasThePlansDecimalsAndIsThePlansTimeWhereThatIsReached) {
  CaseRecord record = example();
  const auto shown = [&](std::int64_t estimate, std::int64_t bound) {
    record.plans[0].row.estimate = Nanoseconds{estimate};
    record.plans[0].row.lower_bound = Nanoseconds{bound};
    record.plans[0].row.gap = static_cast<double>(estimate) / static_cast<double>(bound) - 1;
    const std::string line = below(record);
    return line.substr(0, line.find(" ms"));
  };
  EXPECT_EQ(shown(344'260, 318'260), "  bound 0.3182");
  EXPECT_EQ(shown(1'096'547'780'000, 1'069'547'780'000), "  bound 1069547.7");
  EXPECT_EQ(shown(1'506'190'000, 1'506'190'000), "  bound 1506.2");
  EXPECT_EQ(shown(1'506'190'001, 1'506'190'000), "  bound 1506.1");
}

TEST(ScreenTable, HasTheLatencyBesideTheRateWhereAModelRunsForwardOnly) {
  std::vector<CaseRecord> cases{example()};
  EXPECT_THAT(screen_table(cases, {}), Not(HasSubstr("latency")));
  cases[0].plans[0].figures.latency = milliseconds{4};
  cases[0].plans[1].figures.latency = milliseconds{6};
  const std::string text = screen_table(cases, {});
  EXPECT_LT(text.find("samples/s"), text.find("latency ms"));
  EXPECT_THAT(text, HasSubstr("4.00"));
  EXPECT_THAT(text, HasSubstr("6.00"));
}

TEST(ScreenDetails, OnlyWhatIsOptimalIsAtItsBound) {
  CaseRecord record = example();
  const auto shown = [&](double gap) {
    record.plans[0].row.lower_bound = milliseconds{21};
    record.plans[0].row.gap = gap;
    EXPECT_EQ(below(record).find(": optimal") != std::string::npos, gap == 0) << gap;
    return columns_of(std::vector{record}, {}, std::vector<std::string>{"gap"})[0].text(
        {}, record, record.plans[0]);
  };
  EXPECT_EQ(shown(0), "0");
  EXPECT_EQ(shown(0.00001), "<0.01");
  EXPECT_EQ(shown(0.000101), "0.01");
  EXPECT_EQ(shown(0.00049), "0.05");
  EXPECT_EQ(shown(0.0005), "0.1");
  EXPECT_EQ(shown(0.012), "1.2");
}

// Orders of families that the bound leaves out may be faster than a plan that reaches it.
TEST(ScreenDetails, NothingIsOptimalWhereOrdersAreLeftOut) {
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

// zbv has the shorter estimate and was simulated; of gpipe the estimate alone is known.
TEST(ScreenDetails, AReasonOfAnotherEngineThanTheOneThatChoseIsLeftOut) {
  CaseRecord record = example();
  record.lost = {
      {"zbv", "zbv", {.why = Why::Slower, .slower = milliseconds{2}, .by = SelectBy::Simulate}, {}},
      {"gpipe", "gpipe", slower(1), {}},
      {"1f1b", "1f1b", {.why = Why::RuledOut, .beside_least = true}, {}},
      {"1f1b, prefetch=1", "1f1b", lacks(1), {}}};
  record.lost[1].reason.beside_least = true;
  EXPECT_EQ(below(record),
            "  other families: zbv: 2 ms slower simulated; 1f1b: rank 0 lacks 1 GiB\n");
}

// 250 of 300 ms are 16.7 % less; 1f1b is not among the families that were searched.
TEST(ScreenTable, ABaselineThatFitsAndIsFasterIsSaid) {
  CaseRecord record = mixed_case();
  EXPECT_THAT(screen_table({record}, {}), Not(HasSubstr("less time than the plan")))
      << "245 ms do not fit, and 1000 ms are of another engine";
  std::swap(record.plans[0].row.simulate, record.plans[1].row.simulate);
  record.plans[0].row.candidates = 100;
  record.lost = {{"zb_h1", "zb_h1", slower(1), {}}};
  EXPECT_THAT(screen_table({record}, {.width = 200}),
              HasSubstr("baseline 1f1b fits and takes 16.7 % less time than the plan, 250.00 ms "
                        "simulated; its family is not among those searched: add 1f1b to "
                        "plan.families\n"));
  record.lost.push_back({"1f1b", "1f1b", slower(1), {}});
  EXPECT_THAT(screen_table({record}, {.width = 200}),
              HasSubstr("than the plan, 250.00 ms simulated\n"));
  EXPECT_THAT(screen_table({measured_case()}, {.width = 200}),
              HasSubstr("baseline 1f1b fits and takes 20.0 % less time than the plan, 800.00 ms "
                        "measured\n"));
}

TEST(ScreenDetails, EachOtherFamilySaysWhyItLostIfTheCasesAreFew) {
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
      "  other families: zbv: 2 ms slower; gpipe, 1f1b: their bounds are not below the plan's "
      "time; zb_h1: rank 0 lacks 1 GiB";
  EXPECT_EQ(below(record), line + "\n");
  record.lost.erase(record.lost.begin() + 4);
  EXPECT_THAT(below(record), HasSubstr("gpipe: " + ruled_out + ";"));
  record.lost.insert(record.lost.begin() + 4, early);
  record.lost.push_back({"zb_h2", "zb_h2", lacks(2), {}});
  EXPECT_EQ(below(record), line + "; zb_h2: rank 0 lacks 2 GiB\n");
  record.lost.push_back({"zb1p", "zb1p", lacks(3), {}});
  EXPECT_EQ(below(record), line + "; zb_h2: rank 0 lacks 2 GiB; others are in report.html\n");
  // Where nothing fits no family is the plan's.
  record.plans[0] = {};
  record.plans[0].row.plan = "planned", record.plans[0].row.family = "looped";
  record.plans[0].reason = "no plan fits";
  EXPECT_THAT(below(record), HasSubstr("  families: looped: 1 ms slower; zbv: "));
}

// 23 ms instead of 23.2 ms is 0.9 %; of 23.3 ms it is 1.3 %.
TEST(ScreenTable, AnotherWayOfChoosingIsToldWithoutBeingAskedWhereItGainsAPerCentOrMore) {
  CaseRecord record = example();
  const auto hint = [&](int simulated_us) {
    record.choices = {
        {SelectBy::Estimate, 0, "looped", milliseconds{21}, microseconds{simulated_us}, {}, true},
        {SelectBy::Simulate, 2, "gpipe", milliseconds{22}, milliseconds{23}, {}, false}};
    return screen_table({record}, {}).find("select_by simulate picks gpipe") != std::string::npos;
  };
  EXPECT_FALSE(hint(23'200));
  EXPECT_TRUE(hint(23'300));
}

TEST(ScreenTable, SaysThatPeakMemoryIsEstimatedWhateverTheTimesAre) {
  EXPECT_THAT(screen_table(screen_example(), {}),
              HasSubstr("times simulated; peak memory estimated, limit 38.0 GiB\n"));
}

TEST(ScreenDetails, OtherWaysOfChoosingAreToldWhereTheyPickOtherPlans) {
  CaseRecord record = example();
  const PlanChoice first{SelectBy::Estimate, 0,  "looped", milliseconds{21},
                         milliseconds{24},   {}, true};
  PlanChoice second{SelectBy::Simulate, 2, "gpipe", milliseconds{22}, milliseconds{23}, {}, false};
  record.choices = {first};
  EXPECT_EQ(below(record), "");
  record.choices = {first, second};
  EXPECT_EQ(below(record),
            "  select_by simulate picks gpipe, 22.000 ms estimated, 23.000 ms simulated\n");
  second.p95 = milliseconds{30};
  record.choices = {first, second, second};
  record.choices[2].by = SelectBy::P95;
  EXPECT_EQ(below(record),
            "  select_by simulate or p95 picks gpipe, 22.000 ms estimated, 23.000 ms simulated, "
            "p95 30.000 ms\n");
  record.choices[1].simulate = record.choices[2].simulate = std::nullopt;
  EXPECT_EQ(below(record),
            "  select_by simulate or p95 picks gpipe, 22.000 ms estimated, p95 30.000 ms\n");
  record.choices[0].used = false;
  EXPECT_EQ(below(record), "") << "the plan is none of them";
}

TEST(ScreenDetails, WhatWasOpenAndHowItWasSettled) {
  CaseRecord record = example();
  record.alternatives = {
      {.choice = "4 microbatches of 3", .estimate = milliseconds{21}},
      {.choice = "6 of 2", .estimate = milliseconds{22}, .reason = slower(1)},
      {.choice = "12 of 1", .reason = {.why = Why::NothingFound}},
      {.choice = "3 of 4", .bound = milliseconds{23}, .reason = {.why = Why::RuledOut}}};
  const std::string four =
      "  chosen: 4 microbatches of 3: 21.000 ms estimated\n"
      "  not: 6 of 2: 1 ms slower\n"
      "  not: 12 of 1: no cuts found that fit\n"
      "  not: 3 of 4: its bound, 23 ms, is not below the plan's time\n";
  EXPECT_EQ(below(record), four);
  record.alternatives.push_back(record.alternatives[3]);
  EXPECT_EQ(below(record), four + "  and 1 more, in report.html\n");
  record.alternatives = {{.choice = "1 of 12"}};
  EXPECT_EQ(below(record), "  chosen: 1 of 12: closest to fitting\n");
}

TEST(ScreenDetails, WhatWouldHelpAndWhatWouldNot) {
  CaseRecord record = example();
  record.tried = {{.change = "4 devices",
                   .schedule = "1f1b",
                   .estimate = milliseconds{20},
                   .peak_memory = mib(3)},
                  {.change = "other schedules", .reason = "rank 0 lacks 1 MiB"}};
  EXPECT_EQ(below(record),
            "  would help: 4 devices: 1f1b, 20 ms estimated, peak memory 3 MiB\n"
            "  tried: other schedules: does not help: rank 0 lacks 1 MiB\n");
  record.tried = {{.change = "other schedules, which keep fewer microbatches in flight",
                   .schedule = "looped, V=3, loop_batch=4, prefetch=2",
                   .estimate = milliseconds{20},
                   .peak_memory = mib(3)}};
  EXPECT_EQ(below(record),
            "  would help: other schedules, which keep fewer microbatches in flight: looped, "
            "V=3, loop_batch=4, prefetch=2, 20 ms estimated, peak memory 3 MiB\n");
}

}  // namespace
}  // namespace pfeife
