// Pfeife's family against the action lists, warm-up counts and cyclic points computed from the
// published program.
#include "planner/schedules/looped.h"

#include <gtest/gtest.h>

#include <set>

#include "planner/io/plan/schedule_csv.h"
#include "planner/schedules/families.h"
#include "planner/schedules/runnable.h"
#include "tests/schedules/oracle_csv.h"

namespace pfeife {
namespace {

ScheduleSpec looped_point(std::size_t d, std::size_t n, std::size_t v, std::size_t batch,
                          std::vector<std::size_t> prefetch) {
  return {.family = "looped",
          .ranks = d,
          .microbatches = n,
          .stages_per_rank = v,
          .loop_batch = batch,
          .prefetch = std::move(prefetch)};
}
ScheduleSpec looped_point(const OracleRow& row) {
  const auto number = [&](const char* key) { return std::stoul(row.at(key)); };
  return looped_point(number("D"), number("N"), number("V"), number("B_l"), {number("B_f")});
}

std::string row_text(const std::vector<Cell>& row) {
  std::string text;
  for (const Cell& cell : row) text += (text.empty() ? "" : " ") + to_string(cell);
  return text;
}

std::vector<std::size_t> warm_up(const Schedule& schedule) {
  std::vector<std::size_t> counts;
  for (const auto& row : schedule.rows) {
    std::size_t count = 0;
    while (std::get<Action>(row[count]).op == Op::Forward) ++count;
    counts.push_back(count);
  }
  return counts;
}

TEST(Looped, ActionListsAreThoseOfThePublishedProgram) {
  for (const OracleRow& row : oracle_rows("oracles/looped_actions.csv"))
    EXPECT_EQ(row_text(generate(looped_point(row)).rows[std::stoul(row.at("rank"))]),
              row.at("actions"));
}

TEST(Looped, WarmUpCountsOfTheSearchSet) {
  const auto rows = oracle_rows("oracles/looped_makespans.csv");
  EXPECT_EQ(rows.size(), 103u);
  for (const OracleRow& row : rows)
    EXPECT_EQ(warm_up(generate(looped_point(row))), numbers(row.at("warmup_forwards_per_rank")));
}

TEST(Looped, WarmUpCountsOfThePapersTuples) {
  using Counts = std::vector<std::size_t>;
  EXPECT_EQ(warm_up(generate(looped_point(4, 8, 2, 4, {3, 2, 1, 0}))),
            (Counts{11, 9, 7, 5}));                                                    // Megatron
  EXPECT_EQ(warm_up(generate(looped_point(4, 6, 1, 6, {0}))), (Counts{4, 3, 2, 1}));   // DAPPLE
  EXPECT_EQ(warm_up(generate(looped_point(4, 8, 2, 4, {2}))), (Counts{10, 9, 7, 5}));  // Fig. 3
  EXPECT_EQ(warm_up(generate(looped_point(4, 8, 1, 8, {4, 5, 6, 7}))),
            (Counts{8, 8, 8, 8}));  // GPipe
  EXPECT_EQ(warm_up(generate(looped_point(4, 8, 2, 4, {0, 1, 2, 3}))),
            (Counts{8, 8, 8, 8}));  // TeraPipe
}

/// Every point with D in {2,3,4,8}, V <= 3, 2 <= N <= 16; B_l = N for V = 1, else D or a divisor of
/// N above D; B_f < D.
std::vector<ScheduleSpec> published_grid() {
  std::vector<ScheduleSpec> grid;
  for (const std::size_t d : {2u, 3u, 4u, 8u})
    for (std::size_t v = 1; v <= 3; ++v)
      for (std::size_t n = 2; n <= 16; ++n)
        for (std::size_t batch = 1; batch <= n; ++batch) {
          const bool listed = v == 1 ? batch == n : (batch == d || (batch > d && n % batch == 0));
          for (std::size_t p = 0; listed && p < d; ++p)
            grid.push_back(looped_point(d, n, v, batch, {p}));
        }
  return grid;
}

TEST(Looped, CyclicPointsAreExactlyTheTwentyEightOfTheGrid) {
  std::set<ScheduleSpec> expected;
  for (const OracleRow& row : oracle_rows("oracles/looped_cyclic.csv"))
    expected.insert(looped_point(row));
  EXPECT_EQ(expected.size(), 28u);
  std::set<ScheduleSpec> found;
  const auto grid = published_grid();
  EXPECT_EQ(grid.size(), 1141u);
  for (const ScheduleSpec& spec : grid)
    if (refusal(spec)) found.insert(spec);
  EXPECT_EQ(found, expected);
}

TEST(Looped, ThePrefetchRuleIsTheCyclicityOfTheOrderItself) {
  std::size_t cyclic = 0;
  for (std::size_t d = 1; d <= 6; ++d)
    for (std::size_t v = 1; v <= 4; ++v)
      for (std::size_t n = 1; n <= 13; ++n)
        for (std::size_t batch = 1; batch <= n + 3; ++batch)
          for (std::size_t p = 0; p < d; ++p) {
            const ScheduleSpec spec = looped_point(d, n, v, batch, {p});
            const bool stuck = !stuck_cells(looped_schedule(spec), spec.stages(), n).empty();
            cyclic += stuck;
            EXPECT_EQ(refusal(spec).has_value(), stuck) << d << " ranks, " << n << " microbatches, "
                                                        << v << " stages a rank, " << knobs(spec);
          }
  EXPECT_GT(cyclic, 0u);
}

TEST(Looped, CyclicPrefetchVectorsAreRefusedWithTheWaitingActions) {
  const auto refused = refusal(looped_point(2, 8, 1, 8, {0, 5}));
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->reason,
            "the ranks would wait for one another in a circle (rank 0 waits at 0B0, rank 1 waits "
            "at 1F2)");
}

TEST(OneForwardOneBackward, IsLoopedWithOneStageARank) {
  for (std::size_t p = 0; p < 4; ++p)
    EXPECT_EQ(generate({.family = "1f1b", .ranks = 4, .microbatches = 6, .prefetch = {p}}),
              generate(looped_point(4, 6, 1, 6, {p})));
}

TEST(Interleaved, IsLoopedWithLoopBatchDAndPrefetchDMinusOneWhereDDividesN) {
  for (std::size_t d = 1; d <= 5; ++d)
    for (std::size_t v = 2; v <= 4; ++v)
      for (std::size_t n = d; n <= 4 * d; n += d) {
        Schedule megatron = generate(
            {.family = "interleaved_1f1b", .ranks = d, .microbatches = n, .stages_per_rank = v});
        for (auto& row : megatron.rows)
          std::erase_if(
              row, [](const Cell& cell) { return std::holds_alternative<std::monostate>(cell); });
        EXPECT_EQ(megatron, generate(looped_point(d, n, v, d, {d - 1})))
            << d << " " << n << " " << v;
      }
}

TEST(Looped, DistinctPrefetchesAreThoseThatMakeOtherSchedules) {
  for (std::size_t d = 1; d <= 7; ++d)
    for (std::size_t n = 1; n <= 9; ++n)
      for (std::size_t v = 1; v <= 3; ++v)
        for (std::size_t batch = 1; batch <= 9; ++batch) {
          ScheduleSpec spec{"looped", d, n, v, batch, {0}};
          std::set<std::string> made;
          for (std::size_t p = 0; p < d; ++p) {
            spec.prefetch = {p};
            made.insert(write_schedule(looped_schedule(spec)));
            EXPECT_EQ(made.size(), std::min(p + 1, distinct_prefetches(spec)))
                << d << " " << n << " " << v << " " << batch << " " << p;
          }
        }
}

}  // namespace
}  // namespace pfeife
