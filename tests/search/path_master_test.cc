// The master on programs worked by hand, and against another implementation of linear programs,
// Clp, on random ones.
#include "planner/search/bound/path_master.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <random>
#include <vector>

#ifdef PFEIFE_CLP
#include <coin/Clp_C_Interface.h>
#endif

namespace pfeife {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

/// Pivots until nothing is violated; false: no solution.
bool solve(PathMaster& master) {
  return master.solve(
             1e-9, 100, [&] { return master.most_violated(1e-9); }, [] {}) ==
         PathMaster::End::Solved;
}

// Twelve units of work on two stages; each path counts one stage thrice:
//
//   T >= 3 x + y,   T >= x + 3 y,   x + y = 12
//
// The paths are equally long where x = y = 6: T = 24. Any weights w, 1 - w of the paths bound T by
// the least of (1 + 2 w) x + (3 - 2 w) y, which is largest where both slopes are 2: w = 1/2.
class TwoPathsByHand : public ::testing::Test {
 protected:
  TwoPathsByHand() {
    box(0, 12, 0, 12);
    master_.add(std::vector<double>{3, 1}, 0);
    master_.add(std::vector<double>{1, 3}, 0);
    EXPECT_TRUE(master_.enter_path(0));
  }
  void box(double low_x, double high_x, double low_y, double high_y) {
    master_.set_box(std::vector{low_x, low_y}, std::vector{high_x, high_y});
  }
  void expect_loads(double x, double y) const {
    EXPECT_THAT(master_.loads(), ElementsAre(DoubleNear(x, 1e-12), DoubleNear(y, 1e-12)));
  }
  PathMaster master_{2, 12};
};

TEST_F(TwoPathsByHand, MeetWhereBothAreEquallyLong) {
  ASSERT_TRUE(solve(master_));
  EXPECT_NEAR(master_.value(), 24, 1e-12);
  expect_loads(6, 6);
  ASSERT_EQ(master_.weights().size(), 2u);
  for (const PathMaster::Weight& path : master_.weights()) EXPECT_NEAR(path.weight, 0.5, 1e-12);
}

// x <= 4 leaves y = 8: 3 y + x = 28, and the other path, 20 long, has no weight.
TEST_F(TwoPathsByHand, AreHeldApartByTheBox) {
  ASSERT_TRUE(solve(master_));
  box(0, 4, 0, 12);
  master_.price_basis();
  ASSERT_TRUE(solve(master_));
  EXPECT_NEAR(master_.value(), 28, 1e-12);
  expect_loads(4, 8);
}

// The limit y <= 5 leaves x = 7: 3 x + y = 26. Beside x <= 6 it leaves nothing.
TEST_F(TwoPathsByHand, GiveWayToALimitUntilNothingIsLeft) {
  const std::size_t limit = master_.add(std::vector<double>{0, 1}, -5, true);
  ASSERT_TRUE(solve(master_));
  EXPECT_NEAR(master_.value(), 26, 1e-12);
  expect_loads(7, 5);
  box(0, 6, 0, 12);
  master_.price_basis();
  EXPECT_FALSE(solve(master_));
  ASSERT_EQ(master_.contradiction().size(), 1u);
  EXPECT_EQ(master_.contradiction().front().path, limit);
}

#ifdef PFEIFE_CLP

struct Row {
  std::vector<double> slope;
  double constant = 0;
  bool limit = false;
};
struct LinearProgram {
  double work = 0;
  std::vector<double> low, high;  // [stage]
  std::vector<Row> rows;          // the first is a path
};

/// The least T; nullopt if no loads meet the limits.
std::optional<double> solve_with_clp(const LinearProgram& program) {
  const auto stages = static_cast<int>(program.low.size());
  const auto rows = static_cast<int>(program.rows.size());
  // Columns: the loads, then T. Rows: T - slope . x >= constant (limits without T), then the sum.
  std::vector<CoinBigIndex> start;
  std::vector<int> index;
  std::vector<double> value, column_low = program.low, column_high = program.high,
                             objective(program.low.size(), 0.0), row_low, row_high;
  for (int s = 0; s <= stages; ++s) {
    start.push_back(static_cast<CoinBigIndex>(index.size()));
    for (int r = 0; r < rows; ++r) {
      const Row& row = program.rows[static_cast<std::size_t>(r)];
      const double entry = s < stages  ? -row.slope[static_cast<std::size_t>(s)]
                           : row.limit ? 0.0
                                       : 1.0;
      if (entry != 0) index.push_back(r), value.push_back(entry);
    }
    if (s < stages) index.push_back(rows), value.push_back(1);
  }
  start.push_back(static_cast<CoinBigIndex>(index.size()));
  column_low.push_back(-std::numeric_limits<double>::max());
  column_high.push_back(std::numeric_limits<double>::max());
  objective.push_back(1);
  for (const Row& row : program.rows)
    row_low.push_back(row.constant), row_high.push_back(std::numeric_limits<double>::max());
  row_low.push_back(program.work), row_high.push_back(program.work);

  Clp_Simplex* const model = Clp_newModel();
  Clp_setLogLevel(model, 0);
  Clp_loadProblem(model, stages + 1, rows + 1, start.data(), index.data(), value.data(),
                  column_low.data(), column_high.data(), objective.data(), row_low.data(),
                  row_high.data());
  Clp_dual(model, 0);
  std::optional<double> least;
  if (Clp_status(model) == 0) least = Clp_objectiveValue(model);
  EXPECT_LE(Clp_status(model), 1);
  Clp_deleteModel(model);
  return least;
}

/// The same with our master, from the basis that it is in.
std::optional<double> solve(PathMaster& master, const LinearProgram& program) {
  const double tolerance = 1e-9 * program.work;
  master.set_box(program.low, program.high);
  for (std::size_t p = 0; p < master.paths(); ++p) master.set_constant(p, program.rows[p].constant);
  if (master.paths() < program.rows.size()) {
    for (const Row& row : program.rows) master.add(row.slope, row.constant, row.limit);
    EXPECT_TRUE(master.enter_path(0));
  } else {
    master.price_basis();
  }
  const auto most_violated = [&]() -> std::optional<std::size_t> {
    std::optional<std::size_t> worst;
    double most = tolerance;
    for (std::size_t p = 0; p < master.paths(); ++p)
      if (const double violation = master.violation(p); violation > most)
        most = violation, worst = p;
    return worst;
  };
  const PathMaster::End end = master.solve(tolerance, 100000, most_violated, [] {});
  EXPECT_NE(end, PathMaster::End::Spent) << "the master does not end";
  if (end != PathMaster::End::Solved) return std::nullopt;
  return master.value();
}

void random_box(std::mt19937& random, LinearProgram& program) {
  const std::size_t stages = program.low.size();
  const double mean = program.work / static_cast<double>(stages);
  double low = 0, high = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    low += program.low[s] = static_cast<double>(random() % 100) / 125 * mean;
    high += program.high[s] = mean * (1.25 + static_cast<double>(random() % 100) / 50);
  }
  ASSERT_LE(low, program.work);
  ASSERT_GE(high, program.work);
}

LinearProgram random_program(std::mt19937& random) {
  const std::size_t stages = 2 + random() % 23;
  LinearProgram program{static_cast<double>(1000 + random() % 1000000),
                        std::vector<double>(stages),
                        std::vector<double>(stages),
                        {}};
  random_box(random, program);
  const std::size_t rows = 2 + random() % (3 * stages);
  const double mean = program.work / static_cast<double>(stages);
  for (std::size_t r = 0; r < rows; ++r) {
    Row row{std::vector<double>(stages), mean * static_cast<double>(random() % 100) / 20, false};
    row.limit = r > 0 && random() % 5 == 0;
    for (double& slope : row.slope)
      slope = random() % 3 == 0 ? 0 : static_cast<double>(random() % 64) / 8;
    if (row.limit) {  // what mean loads hold, some more or less
      row.constant = 0;
      for (const double slope : row.slope)
        row.constant -= slope * mean * (0.5 + static_cast<double>(random() % 100) / 140);
    }
    program.rows.push_back(std::move(row));
  }
  return program;
}

/// One load more, with the old basis.
void add_stage(std::mt19937& random, LinearProgram& program, PathMaster& master) {
  std::vector<double> slope;
  for (Row& row : program.rows) {
    slope.push_back(static_cast<double>(random() % 64) / 8);
    row.slope.push_back(slope.back());
  }
  program.low.push_back(0), program.high.push_back(0);
  master.add_stage(slope, 0, 0);
}

// Values are sums of some twenty products: 1e-7 of them is far above rounding, and above what the
// violations that are left (1e-9 of the work) can add up to.
TEST(PathMaster, AgreesWithClpOnFourHundredRandomProgramsAndTheirBranches) {
  std::mt19937 random(43);
  int solved = 0, contradictions = 0;
  for (int round = 0; round < 400; ++round) {
    LinearProgram program = random_program(random);
    PathMaster master(program.low.size(), program.work);
    for (int branch = 0; branch < 4; ++branch) {
      const std::optional<double> expected = solve_with_clp(program);
      const std::optional<double> found = solve(master, program);
      ASSERT_EQ(found.has_value(), expected.has_value()) << round << " " << branch;
      if (!found) {
        ++contradictions;
        break;
      }
      ASSERT_NEAR(*found, *expected, 1e-7 * std::abs(*expected)) << round << " " << branch;
      ++solved;
      if (branch % 2 == 1) add_stage(random, program, master);
      random_box(random, program);  // a branch: another box, other constants, the old basis
      for (Row& row : program.rows)
        if (!row.limit) row.constant += program.work / 1000 * static_cast<double>(random() % 10);
    }
  }
  EXPECT_GT(solved, 800);
  EXPECT_GT(contradictions, 50);
}

#else

TEST(PathMaster, AgreesWithClpOnFourHundredRandomProgramsAndTheirBranches) {
  GTEST_SKIP() << "built without Clp (Debian: coinor-libclp-dev)";
}

#endif

}  // namespace
}  // namespace pfeife
