// Times between measured products, by hand.
#include "planner/ir/machine/measured_products.h"

#include <gtest/gtest.h>

#include <cmath>

namespace pfeife {
namespace {

ProductShape product(std::int64_t m, std::int64_t n, std::int64_t k,
                     ProductPass pass = ProductPass::Forward) {
  return {.pass = pass, .groups = 1, .m = m, .n = n, .k = k};
}
MeasuredProduct row(const ProductShape& shape, double us, const std::string& precision = "bf16") {
  return {precision, shape, us / 1e6};
}
/// Microseconds; NaN = by the curve.
double time(const MeasuredProducts& of, const ProductShape& shape,
            const std::string& precision = "bf16") {
  const auto found = of.find(precision, shape);
  return found ? found->seconds * 1e6 : std::nan("");
}

TEST(MeasuredProducts, ARowOfThePassGoesBeforeOneOfAnyPass) {
  const MeasuredProducts of{"f",
                            {row(product(8, 16, 32, ProductPass::Any), 7),
                             row(product(8, 16, 32, ProductPass::Weight), 9)}};
  EXPECT_DOUBLE_EQ(time(of, product(8, 16, 32, ProductPass::Weight)), 9);
  EXPECT_DOUBLE_EQ(time(of, product(8, 16, 32, ProductPass::Input)), 7);
  EXPECT_EQ(of.find("bf16", product(8, 16, 32))->source, ProductSource::Measured);
}

TEST(MeasuredProducts, PrecisionGroupsPassAndOperatorAreNeverMixed) {
  const MeasuredProducts of{"f", {row(product(8, 16, 32), 7)}};
  ProductShape grouped = product(8, 16, 32), attention = product(8, 16, 32);
  grouped.groups = 2, attention.op = ProductOperator::Attention;
  EXPECT_TRUE(std::isnan(time(of, product(8, 16, 32), "fp8")));
  EXPECT_TRUE(std::isnan(time(of, product(8, 16, 32, ProductPass::Weight))));
  EXPECT_TRUE(std::isnan(time(of, grouped)));
  EXPECT_TRUE(std::isnan(time(of, attention)));
  EXPECT_FALSE(of.find("bf16", {}));
}

// 200 lies half way from 100 to 400 in logs, and so does the time: sqrt(10 x 90) = 30. The pair 50,
// 400 is further apart. 6400 has a neighbour below only, and 900 lies between 400 and 3200, eight
// times apart.
TEST(MeasuredProducts, TimesAreInterpolatedInLogsBetweenTheNearestNeighbours) {
  const MeasuredProducts of{"f",
                            {row(product(50, 16, 32), 1), row(product(100, 16, 32), 10),
                             row(product(400, 16, 32), 90), row(product(3200, 16, 32), 500)}};
  EXPECT_NEAR(time(of, product(200, 16, 32)), 30, 1e-9);
  EXPECT_EQ(of.find("bf16", product(200, 16, 32))->source, ProductSource::Interpolated);
  EXPECT_TRUE(std::isnan(time(of, product(900, 16, 32))));
  EXPECT_TRUE(std::isnan(time(of, product(6400, 16, 32))));
}

// Both m and n have neighbours; those of n are the nearer ones.
TEST(MeasuredProducts, TheSideWithTheNearerNeighboursIsTaken) {
  const MeasuredProducts of{"f",
                            {row(product(100, 16, 32), 10), row(product(400, 16, 32), 90),
                             row(product(200, 12, 32), 40), row(product(200, 20, 32), 40)}};
  EXPECT_NEAR(time(of, product(200, 16, 32)), 40, 1e-9);
}

// A table of m n k / 1000 is a plane in logs, which is met wherever the corners are.
TEST(MeasuredProducts, AllCornersOfABoxGiveWhatLiesWithin) {
  MeasuredProducts of{"f", {}};
  for (const std::int64_t m : {64, 128, 256})
    for (const std::int64_t n : {64, 256})
      for (const std::int64_t k : {32, 64})
        of.rows.push_back(row(product(m, n, k), static_cast<double>(m * n * k) / 1000));
  EXPECT_NEAR(time(of, product(100, 100, 50)), 500, 1e-9);
  EXPECT_NEAR(time(of, product(200, 128, 64)), 200 * 128 * 64 / 1000.0, 1e-9);
  std::erase_if(of.rows, [](const MeasuredProduct& r) { return r.shape == product(64, 64, 32); });
  EXPECT_TRUE(std::isnan(time(of, product(100, 100, 50))));
}

// Experts of 1,228.8 rows on average, listed with 1,229 and measured with 1,232: in proportion.
TEST(MeasuredProducts, ASideWithinOnePerCentIsTakenInProportion) {
  const MeasuredProducts of{"f", {row(product(1232, 3072, 5120), 671)}};
  EXPECT_NEAR(time(of, product(1229, 3072, 5120)), 671 * 1229.0 / 1232, 1e-9);
  EXPECT_TRUE(std::isnan(time(of, product(1200, 3072, 5120))));
  EXPECT_TRUE(std::isnan(time(of, product(1229, 3072, 5121))));
}

TEST(MeasuredProducts, CoverageCountsEachProductAsOftenAsItRuns) {
  EXPECT_EQ(coverage_text({{"bf16", product(1, 1, 1), 80, ProductSource::Measured},
                           {"bf16", product(2, 1, 1), 3, ProductSource::Curve},
                           {"bf16", product(3, 1, 1), 1, ProductSource::Interpolated}}),
            "of a microbatch's 84 products 80 as measured, 1 interpolated between measured ones, 3 "
            "by the curve");
}

}  // namespace
}  // namespace pfeife
