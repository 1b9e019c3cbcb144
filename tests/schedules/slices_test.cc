// Schedules whose microbatches are cut into slices of their sequence: orders, makespans and what is
// in flight, against an event loop written by others (tests/data/slices) and closed forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "planner/cost/estimate/memory.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/judge/validate.h"
#include "planner/ir/schedule/slice_costs.h"
#include "planner/schedules/runnable.h"
#include "tests/schedules/oracle_csv.h"
#include "tests/schedules/timed.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kUnit =
    1'000'000;  // ns of F of a rank's whole microbatch, and bytes it saves

/// F = 1 and B = 2 of a rank's share of a microbatch, in V stages.
StageCosts unit_costs(const ScheduleSpec& spec, double linear, SliceLengths lengths,
                      double transfer = 0) {
  const auto v = static_cast<std::int64_t>(spec.stages_per_rank);
  StageCosts costs =
      uniform_costs(spec.stages(), Nanoseconds{kUnit / v}, Nanoseconds{kUnit / v},
                    Nanoseconds{kUnit / v}, Nanoseconds{std::llround(transfer * kUnit)});
  costs.values.clear();  // saved values alone
  for (StageCost& stage : costs.stages) stage.saved = Bytes{kUnit};
  const double of_all[] = {linear};
  return spec.slices == 1
             ? costs
             : with_slices(std::move(costs), slice_ends(spec.slices, lengths, linear), of_all);
}

double makespan(const ScheduleSpec& spec, const StageCosts& costs) {
  return static_cast<double>(step_time(timed(spec, costs)).count()) / kUnit;
}

/// [rank] microbatches of a stage that are saved at most.
std::vector<double> peaks(const ScheduleSpec& spec, const StageCosts& costs) {
  const Placement placement = placement_for(spec);
  std::vector<double> found;
  for (const Bytes bytes : peak_memory(lower(generate(spec), costs, placement), costs, placement))
    found.push_back(static_cast<double>(bytes.value) / kUnit);
  return found;
}

ScheduleSpec spec_of(const std::string& family, std::size_t d, std::size_t n, std::size_t s,
                     std::size_t v = 1) {
  return {.family = family, .ranks = d, .microbatches = n, .stages_per_rank = v, .slices = s};
}

TEST(Slices, EveryCaseOfTheTableComesOutExactly) {
  const auto rows = oracle_rows("slices/unit_cases.csv");
  ASSERT_EQ(rows.size(), 74U);
  for (const auto& row : rows) {
    const std::string family =
        row.at("schedule") == "gpipe_slices" ? "terapipe" : row.at("schedule");
    const ScheduleSpec spec = spec_of(family, std::stoul(row.at("D")), std::stoul(row.at("N")),
                                      std::stoul(row.at("slices")));
    const double linear = std::stod(row.at("linear_share"));
    const StageCosts costs = unit_costs(
        spec, linear, row.at("cut") == "equal" ? SliceLengths::Equal : SliceLengths::EqualTime);
    const std::string name = family + " " + row.at("D") + " " + row.at("N") + " " +
                             row.at("slices") + " " + row.at("linear_share");
    EXPECT_NEAR(makespan(spec, costs), std::stod(row.at("makespan")), 5.1e-5) << name;
    std::istringstream expected(row.at("peak_by_rank"));
    const double scale = linear < 1 ? 1 : static_cast<double>(spec.slices);
    for (const double found : peaks(spec, costs)) {
      double peak = 0;
      expected >> peak;
      EXPECT_NEAR(found * scale, peak, 5.2e-5 * scale) << name;
    }
  }
}

// N (F + B) + (D - 1)(F + B) / (S V), with S + D - 1 - r and S V + 2 (D - 1 - r) slices in flight.
TEST(Slices, StepsAndSlicesInFlightHaveClosedForms) {
  for (const std::size_t d : {2U, 3U, 4U})
    for (const std::size_t n : {4U, 8U})
      for (const std::size_t s : {1U, 2U, 4U, 8U})
        for (const std::size_t v : {1U, 2U}) {
          const ScheduleSpec slim = spec_of("slimpipe", d, n, s, v);
          if (refusal(slim)) continue;
          const double step = 3.0 * static_cast<double>(n) +
                              3.0 * static_cast<double>(d - 1) / static_cast<double>(s * v);
          const StageCosts costs = unit_costs(slim, 1, SliceLengths::Equal);
          EXPECT_DOUBLE_EQ(makespan(slim, costs), step) << d << n << s << v;
          const std::vector<double> held = peaks(slim, costs);
          for (std::size_t r = 0; r < d; ++r)
            EXPECT_DOUBLE_EQ(held[r] * static_cast<double>(s),
                             static_cast<double>(std::min(s * v + 2 * (d - 1 - r), n * s * v)));
          if (v > 1) continue;
          const ScheduleSpec seq = spec_of("seq1f1b", d, n, s);
          EXPECT_DOUBLE_EQ(makespan(seq, costs), step);
          const std::vector<double> held_by_seq = peaks(seq, costs);
          for (std::size_t r = 0; r < d; ++r)
            EXPECT_DOUBLE_EQ(held_by_seq[r] * static_cast<double>(s),
                             static_cast<double>(std::min(s + d - 1 - r, n * s)));
        }
  const ScheduleSpec interleaved = spec_of("slimpipe", 4, 8, 4, 2);
  EXPECT_DOUBLE_EQ(makespan(interleaved, unit_costs(interleaved, 1, SliceLengths::Equal)), 25.125);
}

TEST(Slices, LongerWarmUpHidesTransfers) {
  const auto step = [](const std::string& family, double transfer) {
    const ScheduleSpec spec = spec_of(family, 4, 8, 4);
    return makespan(spec, unit_costs(spec, 1, SliceLengths::Equal, transfer));
  };
  EXPECT_DOUBLE_EQ(step("seq1f1b", 0.1), 31.05);
  EXPECT_DOUBLE_EQ(step("slimpipe", 0.1), 26.85);
  EXPECT_DOUBLE_EQ(step("seq1f1b", 0.05), 28.65);
  EXPECT_DOUBLE_EQ(step("slimpipe", 0.05), 26.55);
}

TEST(Slices, OfASingleSliceSeq1F1BIs1F1BAndTeraPipeIsGPipe) {
  for (const std::size_t d : {1U, 2U, 5U})
    for (const std::size_t n : {1U, 3U, 8U}) {
      EXPECT_EQ(generate(spec_of("seq1f1b", d, n, 1)), generate(spec_of("1f1b", d, n, 1)));
      EXPECT_EQ(generate(spec_of("terapipe", d, n, 1)), generate(spec_of("gpipe", d, n, 1)));
    }
}

// 16384 to 131072 tokens, h 4096, f 16384, 32 heads of 128, 24 layers, 32000
// words: what the authors' own solver (thunlp/Seq1F1B, sp_utils.py) cuts, but for its rounding.
TEST(Slices, OfEqualTimeAreThoseOfSeq1F1BsSolver) {
  const double h = 4096, f = 16384, n = 32, d = 128, words = 32000, layers = 24;
  const std::map<double, std::vector<double>> published{{16384, {4929, 4238, 3777, 3440}},
                                                        {32768, {11040, 8418, 7080, 6230}},
                                                        {65536, {25049, 16268, 13030, 11189}},
                                                        {131072, {55770, 30854, 24046, 20402}}};
  for (const auto& [tokens, lengths] : published) {
    const double linear = tokens * (layers * (4 * h * f + 8 * h * n * d) + 4 * h * words);
    const double attention = layers * (4 * d + 3) * n * tokens * tokens / 2;
    double begin = 0;
    const std::vector<double> ends =
        slice_ends(4, SliceLengths::EqualTime, linear / (linear + attention));
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_NEAR((ends[k] - begin) * tokens, lengths[k], 2.5) << tokens << " " << k;
      begin = ends[k];
    }
  }
}

TEST(Slices, CostsAddUpToTheMicrobatchToTheLastUnit) {
  StageCosts whole = uniform_costs(2, Nanoseconds{1'000'003}, Nanoseconds{7}, Nanoseconds{999'983},
                                   Nanoseconds{5});
  whole.stages[1].saved = Bytes{12'345};
  const double linear[] = {0.9, 0.2};
  const StageCosts cut = with_slices(whole, slice_ends(7, SliceLengths::EqualTime, 0.6), linear);
  for (std::size_t s = 0; s < 2; ++s) {
    Nanoseconds forward{0}, weight{0};
    Bytes saved{0};
    for (const StageCosts::Slice& slice : cut.slices) {
      forward += slice.stages[s].forward, weight += slice.stages[s].backward_weight;
      saved += slice.stages[s].saved;
    }
    EXPECT_EQ(forward, whole.stages[s].forward);
    EXPECT_EQ(weight, whole.stages[s].backward_weight);
    EXPECT_EQ(saved, whole.stages[s].saved);
  }
}

// Two slices of one stage: keys' gradients of slice 0 are there from B of slice 1 to B of slice 0.
TEST(Slices, GradientsOfKeysAndValuesWaitForTheirOwnBackward) {
  ScheduleSpec spec = spec_of("seq1f1b", 1, 1, 2);
  StageCosts costs = unit_costs(spec, 1, SliceLengths::Equal);
  for (StageCosts::Slice& slice : costs.slices) slice.key_gradients = {Bytes{100}};
  const Placement placement = placement_for(spec);
  const MemoryCurve curve =
      memory(lower(generate(spec), costs, placement, {.optimizer_step = false}), RankId{0}, costs,
             placement);
  std::vector<std::int64_t> after;
  for (const MemoryStep& step : curve.steps) after.push_back(step.after.value);
  EXPECT_EQ(after, (std::vector<std::int64_t>{kUnit / 2, kUnit, kUnit / 2 + 100, 0}));
}

TEST(Slices, EveryPointRunsIsRightOnceLoweredAndIsReadAsItIsWritten) {
  for (const char* family : {"seq1f1b", "terapipe", "slimpipe"})
    for (std::size_t d = 1; d <= 4; ++d)
      for (std::size_t n = 1; n <= 3; ++n)
        for (std::size_t s = 1; s <= 5; ++s)
          for (std::size_t v = 1; v <= 2; ++v) {
            const ScheduleSpec spec = spec_of(family, d, n, s, v);
            if (refusal(spec)) continue;
            const Schedule schedule = generate(spec);
            const std::string name =
                schedule_name(spec) + " of " + std::to_string(d) + ", " + std::to_string(n);
            ASSERT_EQ(describe(stuck_cells(schedule, spec.stages(), n * s)), "") << name;
            EXPECT_EQ(read_schedule(write_schedule(schedule), "written"), schedule) << name;
            const Schedule lowered =
                lower(schedule, unit_costs(spec, 0.5, SliceLengths::Equal), placement_for(spec));
            const auto wrong = validate(lowered, {chain(spec.stages()), n * s, true, s});
            EXPECT_TRUE(wrong.empty()) << name << ": " << wrong.front().message;
          }
}

std::string first_mistake(const std::string& rows) {
  const Schedule schedule = read_schedule(rows, "rows");
  const auto wrong = validate(schedule, requirements_of(schedule, false));
  return wrong.empty() ? "" : wrong.front().message;
}

TEST(SlicesInTheJudge, OrdersThatCannotBeAreRefusedWithASentence) {
  EXPECT_EQ(first_mistake("0F0.0,0F0.1,0B0.1,0B0.0\n"), "");
  EXPECT_EQ(first_mistake("0F0.1,0F0.0,0B0.1,0B0.0\n"),
            "0F0.1 stands before 0F0.0, whose keys and values it needs");
  EXPECT_EQ(first_mistake("0F0.0,0F0.1,0B0.0,0B0.1\n"),
            "0B0.0 stands before 0B0.1, which adds to the gradients of its keys and values");
  EXPECT_EQ(first_mistake("0F0.0,0F0.1,0I0.0,0I0.1,0W0.0,0W0.1\n"),
            "0I0.0 stands before 0I0.1, which adds to the gradients of its keys and values");
  EXPECT_EQ(first_mistake("0F0.0,0F0.1,0W0.1,0I0.1,0I0.0,0W0.0\n"),
            "0W0.1 stands before 0I0.1, which it needs");
  EXPECT_EQ(first_mistake("0F0.0,0F0.1,0F1.0,0B0.1,0B0.0,0B1.0\n"),
            "stage 0 lacks F of microbatch 1.1");
  EXPECT_EQ(first_mistake("0F0.0,0F0.1,0B0.1,0B0.0,0F1,0B1\n"),
            "0F1 names no slice, but each microbatch has 2 slices");
  EXPECT_EQ(first_mistake("0F1,0B1,0F0.0,0F0.1,0B0.1,0B0.0\n"),
            "0F0.0 names a slice of 2 slices, but each microbatch has 1 slice");
}

TEST(SlicesInTheLowering, WhatCannotRunOrHasNoCostsIsRefused) {
  const Schedule schedule = read_schedule("0F0.0,0F0.1,0B0.0,0B0.1\n", "rows");
  const Placement placement = round_robin(1, 1);
  const StageCosts whole =
      uniform_costs(1, Nanoseconds{4}, Nanoseconds{4}, Nanoseconds{4}, Nanoseconds{0});
  const double linear[] = {1};
  const StageCosts costs = with_slices(whole, slice_ends(2, SliceLengths::Equal, 1), linear);
  EXPECT_THAT(message_of([&] { lower(schedule, costs, placement); }),
              HasSubstr("rank 0 waits at 0B0.0 for 0B0.1"));
  EXPECT_THAT(message_of([&] { lower(schedule, whole, placement); }),
              HasSubstr("2 slices, the costs are those of whole microbatches"));
  const Schedule mixed = read_schedule("0F0.0,0F0.1,0B0.1,0B0.0,0F1,0B1\n", "rows");
  EXPECT_THAT(message_of([&] { lower(mixed, costs, placement); }),
              HasSubstr("0F1: it names no slice, but the schedule cuts every microbatch into 2"));
}

TEST(SlicesAsText, TorchHasNoWordForThem) {
  EXPECT_THAT(
      message_of([] { write_schedule(read_schedule("0F0.0,0F0.1\n", "rows"), Reader::Torch); }),
      HasSubstr("0F0.0 names a slice, which torch.distributed.pipelining cannot do"));
  EXPECT_EQ(parse_cell("3F2.1024").error,
            "'3F2.1024' is not an action: the slice number is above 1023");
  EXPECT_EQ(to_string(*parse_cell("3F2.1").cell), "3F2.1");
  EXPECT_EQ(parse_cell("3F2.").error, "'3F2.' is not an action: a slice number is missing");
}

}  // namespace
}  // namespace pfeife
