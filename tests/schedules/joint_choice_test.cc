// Keeping, computing again and offloading together, against a brute force by others: 1F1B on four
// ranks, two blocks a stage of F 1/2 and B 1 and one unit of memory each, every block kept,
// computed again or offloaded for all microbatches (tests/data/offload/joint_unit_cases.csv).
#include "planner/cost/estimate/joint_choice.h"

#include <gtest/gtest.h>

#include <cmath>

#include "planner/schedules/families.h"
#include "tests/schedules/oracle_csv.h"

namespace pfeife {
namespace {

constexpr std::int64_t kBlockTime = 1000;  // ns of F of a block

/// Blocks of a stage, of two.
struct Blocks {
  std::int64_t recomputed = 0, offloaded = 0;
};

/// What a stage may do where some of the three are allowed: "keep", "recompute", "offload", "both".
std::vector<Blocks> blocks_allowed(const std::string& allowed) {
  std::vector<Blocks> found;
  for (const Blocks blocks : {Blocks{0, 0}, {1, 0}, {0, 1}, {2, 0}, {1, 1}, {0, 2}})
    if ((blocks.recomputed == 0 || allowed == "recompute" || allowed == "both") &&
        (blocks.offloaded == 0 || allowed == "offload" || allowed == "both"))
      found.push_back(blocks);
  return found;
}

StageCost stage_of(const Blocks& blocks, double one_way) {
  const Nanoseconds block{kBlockTime};
  StageCost stage{.forward = 2 * block};
  stage.backward_input = 2 * block + blocks.recomputed * block;
  stage.backward_weight = 2 * block;
  stage.saved = Bytes{2 - blocks.recomputed};
  stage.recomputed = Bytes{blocks.recomputed};
  stage.offloaded = Bytes{blocks.offloaded};
  stage.offload = stage.reload =
      Nanoseconds{std::llround(2 * one_way * kBlockTime * static_cast<double>(blocks.offloaded))};
  return stage;
}

std::optional<JointChoice> fastest(const std::map<std::string, std::string>& row) {
  const ScheduleSpec spec{
      .family = "1f1b", .ranks = std::stoul(row.at("D")), .microbatches = std::stoul(row.at("N"))};
  const Placement placement = placement_for(spec);
  const Schedule schedule = generate(spec);
  const std::vector<Blocks> blocks = blocks_allowed(row.at("allowed"));
  const double one_way = std::stod(row.at("one_way_time_a_block"));
  return fastest_fitting(
      {.compute_only = schedule,
       .placement = placement,
       .counts = std::vector<std::size_t>(spec.ranks, blocks.size()),
       .costs_of =
           [&](const Alternatives& chosen) {
             StageCosts costs = uniform_costs(spec.ranks, Nanoseconds{0}, Nanoseconds{0},
                                              Nanoseconds{0}, Nanoseconds{0});
             costs.values.clear();
             for (std::size_t s = 0; s < chosen.size(); ++s)
               costs.stages[s] = stage_of(blocks[chosen[s]], one_way);
             return costs;
           },
       .memory_limit = std::vector<Bytes>(spec.ranks, Bytes{std::stol(row.at("limit"))})});
}

/// The table's units; nothing if nothing fits.
std::optional<double> makespan(const std::optional<JointChoice>& found) {
  if (!found) return std::nullopt;
  return static_cast<double>(found->estimate.count()) / (2 * kBlockTime);
}
std::optional<double> makespan(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(std::stod(text));
}

// The table offloads a block of all microbatches or of none, and has it back from the beginning of
// the action before B on. Here what has no room stays, and it comes back as late as it may: with
// offload nothing is slower, and more fits.
TEST(JointChoice, KeepsAndRecomputesAsTheTableAndOffloadsNoWorse) {
  std::size_t rows = 0, faster = 0;
  for (const auto& row : oracle_rows("offload/joint_unit_cases.csv")) {
    const std::optional<double> found = makespan(fastest(row)),
                                expected = makespan(row.at("makespan"));
    const std::string name = row.at("N") + " " + row.at("one_way_time_a_block") + " limit " +
                             row.at("limit") + " " + row.at("allowed");
    ++rows;
    if (row.at("allowed") == "keep" || row.at("allowed") == "recompute") {
      EXPECT_EQ(found, expected) << name;
    } else if (expected) {
      ASSERT_TRUE(found) << name;
      EXPECT_LE(*found, *expected) << name;
      faster += *found < *expected;
    }
  }
  EXPECT_EQ(rows, 112U);
  EXPECT_GT(faster, 0U);
}

// With three units recomputing alone takes 25, and offloading alone does not fit.
TEST(JointChoice, ThePairBeatsBothWhereTheFirstRankIsTight) {
  std::map<std::string, std::string> row{
      {"D", "4"}, {"N", "4"}, {"one_way_time_a_block", "0.25"}, {"limit", "3"}};
  const auto with = [&](const std::string& allowed) {
    row["allowed"] = allowed;
    return makespan(fastest(row));
  };
  EXPECT_EQ(with("recompute"), 25);
  EXPECT_EQ(with("offload"), std::nullopt);
  EXPECT_LE(with("both").value(), 24.5);
}

// Eight stages have too many combinations for all to be tried.
TEST(JointChoice, GreedilyFindsWhatFits) {
  const std::map<std::string, std::string> row{{"D", "8"},
                                               {"N", "8"},
                                               {"one_way_time_a_block", "0.25"},
                                               {"limit", "8"},
                                               {"allowed", "both"}};
  const auto found = fastest(row);
  ASSERT_TRUE(found);
  for (const Bytes peak : found->peak_memory) EXPECT_LE(peak, Bytes{8});
  EXPECT_EQ(makespan(found), 3 * (8 + 8 - 1));  // as if everything were kept
}

}  // namespace
}  // namespace pfeife
