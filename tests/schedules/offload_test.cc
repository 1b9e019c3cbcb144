// Copies of saved values to the host and back: which rows they make, what they save, and what the
// judge refuses. Expected: a brute force by others over all subsets of microbatches, on 1F1B with
// F = 1 and B = 2 (tests/data/offload), and cases by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "planner/cost/estimate/memory.h"
#include "planner/ir/judge/validate.h"
#include "planner/ir/schedule/slice_costs.h"
#include "tests/ir/rows.h"
#include "tests/schedules/oracle_csv.h"
#include "tests/schedules/timed.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::rows;

constexpr std::int64_t kUnitTime = 1000;  // ns of F

/// One value of 1 byte a microbatch, all of it offloaded in `one_way` times F.
StageCosts offloading(std::size_t stages, double one_way, bool one_engine = false) {
  StageCosts costs = uniform_costs(stages, Nanoseconds{kUnitTime}, Nanoseconds{kUnitTime},
                                   Nanoseconds{kUnitTime}, Nanoseconds{0});
  costs.values.clear();
  costs.one_copy_engine = one_engine;
  for (StageCost& stage : costs.stages) {
    stage.offloaded = stage.saved;
    stage.offload = stage.reload = Nanoseconds{std::llround(one_way * kUnitTime)};
  }
  return costs;
}

/// [rank] the microbatches that it offloads.
std::vector<std::vector<std::size_t>> offloaded(const Schedule& schedule) {
  std::vector<std::vector<std::size_t>> found(schedule.ranks());
  for (std::size_t r = 0; r < schedule.ranks(); ++r)
    for (const Cell& cell : schedule.rows[r])
      for_each_action(cell, [&](const Action& action) {
        if (action.op == Op::Offload) found[r].push_back(action.microbatch->index());
      });
  return found;
}

Trace run(const Schedule& lowered, const StageCosts& costs, const Placement& placement) {
  const auto answer = estimate(dependencies(lowered, stage_graph(costs), placement, {}), costs);
  EXPECT_TRUE(std::holds_alternative<Trace>(answer));
  return std::holds_alternative<Trace>(answer) ? std::get<Trace>(answer) : Trace{};
}

std::vector<std::int64_t> values(const std::vector<Bytes>& bytes) {
  std::vector<std::int64_t> found;
  for (const Bytes b : bytes) found.push_back(b.value);
  return found;
}

/// The least peak of a rank, and the first of the smallest subsets that reach it.
struct BestSubset {
  std::int64_t peak = 0;
  std::vector<std::size_t> microbatches;
  auto order() const { return std::tuple{peak, microbatches.size(), microbatches}; }
};

TEST(Offload, BruteForceOverMicrobatchesGivesThePeaksOfTheTable) {
  std::map<std::vector<std::string>, std::vector<std::map<std::string, std::string>>> cases;
  for (const auto& row : oracle_rows("offload/unit_cases.csv"))
    cases[{row.at("D"), row.at("N"), row.at("one_way_time"), row.at("engines")}].push_back(row);
  ASSERT_EQ(cases.size(), 24U);
  for (const auto& [key, of_ranks] : cases) {
    const std::size_t d = std::stoul(key[0]), n = std::stoul(key[1]);
    const ScheduleSpec spec{.family = "1f1b", .ranks = d, .microbatches = n};
    const Placement placement = placement_for(spec);
    const StageCosts costs = offloading(d, std::stod(key[2]), key[3] == "1");
    const Schedule compute_only = generate(spec);
    StageCosts keeping = costs;
    for (StageCost& stage : keeping.stages) stage.offloaded = Bytes{0};
    const Schedule base = lower(compute_only, keeping, placement);
    std::vector<BestSubset> best(d);
    for (std::size_t mask = 0; mask < std::size_t{1} << n; ++mask) {
      std::vector<std::size_t> wanted;
      for (std::size_t m = 0; m < n; ++m)
        if (mask >> m & 1) wanted.push_back(m);
      const Schedule copied = with_offload(
          base, costs, placement, [&](StageId, MicrobatchId m) { return mask >> m.index() & 1; });
      EXPECT_EQ(static_cast<double>(step_time(run(copied, costs, placement)).count()),
                std::stod(of_ranks[0].at("makespan")) * kUnitTime);
      const std::vector<std::int64_t> peaks = values(peak_memory(copied, costs, placement));
      const auto fitting = offloaded(copied);
      for (std::size_t r = 0; r < d; ++r) {
        const BestSubset found{peaks[r], wanted};
        if (fitting[r] == wanted && (mask == 0 || found.order() < best[r].order())) best[r] = found;
      }
    }
    const Schedule lowered = lower(compute_only, costs, placement);
    EXPECT_THAT(validate(lowered, requirements_of(lowered, true)), ::testing::IsEmpty());
    const std::vector<std::int64_t> first_fit = values(peak_memory(lowered, costs, placement));
    for (const auto& row : of_ranks) {
      const std::size_t r = std::stoul(row.at("rank"));
      std::string fewest;
      for (const std::size_t m : best[r].microbatches)
        fewest += (fewest.empty() ? "" : " ") + std::to_string(m);
      const std::string name =
          key[0] + " " + key[1] + " " + key[2] + " " + key[3] + " rank " + row.at("rank");
      EXPECT_EQ(std::to_string(best[r].peak), row.at("peak")) << name;
      EXPECT_EQ(fewest, row.at("fewest_offloaded")) << name;
      EXPECT_EQ(std::to_string(first_fit[r]), row.at("peak")) << name;
    }
  }
}

// Rank 0 of D = N = 4, one way 1: F0 to F3 from 0 to 4, B0 at 10, then every 3 until 21. Out 1-2,
// 2-3, 3-4; back as late as possible: 12-13, 15-16; B0's 9-10.
TEST(Offload, CopiesStandWhereTheyBegin) {
  const ScheduleSpec spec{.family = "1f1b", .ranks = 4, .microbatches = 4};
  const Placement placement = placement_for(spec);
  const StageCosts costs = offloading(4, 1);
  const Schedule lowered = lower(generate(spec), costs, placement,
                                 {.reduce_grad = ReduceGrad::None, .optimizer_step = false});
  std::string copies;
  for (const Cell& cell : lowered.rows[0])
    if (const auto& action = std::get<Action>(cell); !is_transfer(action.op))
      copies += to_string(action) + " ";
  EXPECT_EQ(copies,
            "0F0 0OFFLOAD0 0F1 0OFFLOAD1 0F2 0OFFLOAD2 0F3 0OFFLOAD3 0RELOAD0 0B0 0RELOAD1 0B1 "
            "0RELOAD2 0B2 0RELOAD3 0B3 ");
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> times;
  for (const Event& event : run(lowered, costs, placement).events)
    if (event.kind == TaskKind::Copy && event.rank == RankId{0})
      times[to_string(event.cell)] = {event.start.count() / kUnitTime,
                                      event.end.count() / kUnitTime};
  EXPECT_EQ(times.at("0OFFLOAD0"), std::pair(1L, 2L));
  EXPECT_EQ(times.at("0OFFLOAD3"), std::pair(4L, 5L));
  EXPECT_EQ(times.at("0RELOAD0"), std::pair(9L, 10L));
  EXPECT_EQ(times.at("0RELOAD1"), std::pair(12L, 13L));
}

// One stage: F0, F1, then B0 must wait for what comes back: F0 0-1, out 1-3, back 3-5, B0 5-7.
TEST(Offload, ABackwardWaitsForWhatComesBack) {
  const Schedule row = rows({"0F0 0OFFLOAD0 0RELOAD0 0F1 0B0 0B1"});
  const StageCosts costs = offloading(1, 2);
  const Placement placement = *placement_of(row);
  const Trace trace = run(row, costs, placement);
  EXPECT_EQ(step_time(trace), Nanoseconds{9 * kUnitTime});
  EXPECT_EQ(attribution(trace, RankId{0}).exposed_transfer, Nanoseconds{2 * kUnitTime});
  EXPECT_EQ(attribution(trace, RankId{0}).total(), step_time(trace));
  EXPECT_THAT(values(host_peak_memory(row, costs, placement)), ElementsAre(1));
  EXPECT_THAT(values(peak_memory(row, costs, placement)), ElementsAre(2));
}

// What comes back waits until the next microbatch is away.
TEST(Offload, OneEngineCopiesOneWayAtATime) {
  const Schedule row = rows({"0F0 0OFFLOAD0 0F1 0OFFLOAD1 0RELOAD0 0RELOAD1 0B0 0B1"});
  const Placement placement = *placement_of(row);
  // Two engines: out 1-4, 4-7, back 4-7, 7-10; B0 7-9, B1 10-12. One: out 1-4, 4-7, back 7-10,
  // 10-13; B1 13-15.
  EXPECT_EQ(step_time(run(row, offloading(1, 3), placement)), Nanoseconds{12 * kUnitTime});
  EXPECT_EQ(step_time(run(row, offloading(1, 3, true), placement)), Nanoseconds{15 * kUnitTime});
}

TEST(Offload, AShareOfWhatIsSavedLeaves) {
  const ScheduleSpec spec{.family = "1f1b", .ranks = 4, .microbatches = 8};
  const Placement placement = placement_for(spec);
  StageCosts costs = offloading(4, 0.5);
  for (StageCost& stage : costs.stages) stage.saved = Bytes{10}, stage.offloaded = Bytes{6};
  const Schedule lowered = lower(generate(spec), costs, placement);
  // Four, three, two, one microbatch in flight; the peaks of six tenths as in the table. Behind the
  // warm-up all that is in flight is on the host, but what is read at once.
  EXPECT_THAT(values(peak_memory(lowered, costs, placement)),
              ElementsAre(4 * 4 + 2 * 6, 3 * 4 + 2 * 6, 2 * 10, 10));
  EXPECT_THAT(values(host_peak_memory(lowered, costs, placement)), ElementsAre(24, 18, 12, 0));
}

TEST(Offload, WhatStagesKeepMakesTheRowsOfBefore) {
  const ScheduleSpec spec{
      .family = "interleaved_1f1b", .ranks = 2, .microbatches = 4, .stages_per_rank = 2};
  const Placement placement = placement_for(spec);
  const StageCosts costs =
      uniform_costs(4, Nanoseconds{3}, Nanoseconds{2}, Nanoseconds{2}, Nanoseconds{1});
  for (const auto& row : offloaded(lower(generate(spec), costs, placement)))
    EXPECT_THAT(row, ::testing::IsEmpty());
  EXPECT_THAT(host_peak_memory(lower(generate(spec), costs, placement), costs, placement),
              ::testing::IsEmpty());
}

// 1F1B of slices keeps three of rank 0 in flight, two of rank 1.
TEST(Offload, SlicesGoByThemselves) {
  const ScheduleSpec spec{.family = "seq1f1b", .ranks = 2, .microbatches = 4, .slices = 2};
  const Placement placement = placement_for(spec);
  StageCosts whole = offloading(2, 0.2);
  for (StageCost& stage : whole.stages) stage.saved = stage.offloaded = Bytes{20};
  const double ends[] = {0.5, 1}, linear[] = {1};
  const StageCosts costs = with_slices(whole, ends, linear);
  EXPECT_EQ(costs.slices[1].stages[0].offloaded, Bytes{10});
  EXPECT_EQ(costs.slices[1].stages[0].reload, Nanoseconds{kUnitTime / 10});
  StageCosts keeping = costs;
  for (StageCosts::Slice& slice : keeping.slices)
    for (StageCost& stage : slice.stages) stage.offloaded = Bytes{0};
  for (StageCost& stage : keeping.stages) stage.offloaded = Bytes{0};
  const Schedule base = lower(generate(spec), keeping, placement);
  const Schedule lowered = lower(generate(spec), costs, placement);
  EXPECT_THAT(validate(lowered, requirements_of(lowered, true)), ::testing::IsEmpty());
  EXPECT_EQ(step_time(run(lowered, costs, placement)), step_time(run(base, keeping, placement)));
  EXPECT_THAT(values(peak_memory(base, keeping, placement)), ElementsAre(30, 20));
  EXPECT_THAT(values(peak_memory(lowered, costs, placement)), ElementsAre(20, 20));
}

/// What the judge says of rows of one stage a rank.
std::vector<std::string> refusals(std::initializer_list<std::string> texts) {
  const Schedule schedule = rows(texts);
  std::vector<std::string> found;
  for (const Violation& v : validate(schedule, requirements_of(schedule, true)))
    found.push_back(to_string(v.rank) + ":" + std::to_string(v.position) + " " + v.message);
  return found;
}

TEST(Offload, TheJudgeRefusesWhatWouldReadAValueThatIsAway) {
  EXPECT_THAT(refusals({"0F0 0OFFLOAD0 0RELOAD0 0B0"}), ::testing::IsEmpty());
  EXPECT_THAT(refusals({"0F0 0OFFLOAD0 0RELOAD0 0I0 0W0"}), ::testing::IsEmpty());
  EXPECT_THAT(refusals({"0F0 0RELOAD0 0OFFLOAD0 0B0"}),
              ElementsAre("0:1 0RELOAD0 stands before 0OFFLOAD0, which it needs"));
  EXPECT_THAT(refusals({"0OFFLOAD0 0F0 0RELOAD0 0B0"}),
              ElementsAre("0:0 0OFFLOAD0 stands before 0F0, which saves what it copies"));
  EXPECT_THAT(refusals({"0F0 0OFFLOAD0 0B0 0RELOAD0"}),
              ElementsAre("0:2 0B0 stands before 0RELOAD0, which it needs"));
  EXPECT_THAT(refusals({"0F0 0OFFLOAD0 0I0 0RELOAD0 0W0"}),
              ElementsAre("0:2 0I0 stands before 0RELOAD0, which it needs"));
  EXPECT_THAT(refusals({"0F0 0OFFLOAD0 0B0"}),
              ElementsAre("0:1 0OFFLOAD0 has no 0RELOAD0: 0B0 would not find what it needs"));
  EXPECT_THAT(refusals({"0F0 0RELOAD0 0B0"}), ElementsAre("0:1 0RELOAD0 has no 0OFFLOAD0"));
  EXPECT_THAT(refusals({"0F0 0OFFLOAD0 0OFFLOAD0 0RELOAD0 0B0"}),
              ElementsAre("0:2 0OFFLOAD0 is there a second time; first at rank 0, position 1"));
  EXPECT_THAT(
      refusals({"0F0 0SEND_F0 1OFFLOAD0 0RECV_B0 0B0", "1RECV_F0 1F0 1B0 1SEND_B0"}),
      ElementsAre("0:2 1OFFLOAD0: stage 1 is on rank 1; a stage is copied by its own rank"));
}

TEST(Offload, OnlyLoweredRowsOfTrainingHaveCopies) {
  const Schedule row = rows({"0F0 0OFFLOAD0 0RELOAD0 0B0"});
  EXPECT_EQ(validate(row, requirements_of(row, false)).front().message,
            "0OFFLOAD0 is a copy, but the schedule is to be compute-only");
  const Schedule forward = rows({"0F0 0OFFLOAD0"});
  EXPECT_THAT(validate(forward, requirements_of(forward, true, Mode::Forward)).front().message,
              HasSubstr("nothing is saved that could be offloaded"));
  EXPECT_THAT(message_of([&] { lower(row, offloading(1, 1), *placement_of(row)); }),
              HasSubstr("lowering takes a compute-only one"));
}

}  // namespace
}  // namespace pfeife
