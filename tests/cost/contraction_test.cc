// The products behind einsum and chains of matrices, counted by hand.
#include "planner/cost/operators/contraction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cost/graph_builder.h"

namespace pfeife {
namespace {

using testing::dense;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::strided;

double flops(const std::vector<Contraction>& products) {
  double sum = 0;
  for (const Contraction& product : products) sum += product.flops;
  return sum;
}

// [2, 3, 5] x [2, 5, 7]: 2 batches of 3 x 7 sums of 5 terms.
TEST(Einsum, IsAProductOfBatchRowsColumnsAndTerms) {
  const auto products =
      einsum_contractions("bij,bjk->bik", {dense({2, 3, 5}), dense({2, 5, 7})}, {});
  ASSERT_THAT(products, SizeIs(1));
  EXPECT_EQ(products[0].flops, 2 * 2 * 3 * 7 * 5);
  EXPECT_EQ(products[0].result, 2 * 3 * 7);
}

TEST(Einsum, UnderstandsSpacesEllipsesAndAnImpliedResult) {
  EXPECT_EQ(
      flops(einsum_contractions("b i j, b j k -> b i k", {dense({2, 3, 5}), dense({2, 5, 7})}, {})),
      420);
  EXPECT_EQ(
      flops(einsum_contractions("...ij,...jk->...ik", {dense({4, 2, 3, 5}), dense({2, 5, 7})}, {})),
      2 * 4 * 2 * 3 * 7 * 5);
  EXPECT_EQ(flops(einsum_contractions("ij,jk", {dense({3, 5}), dense({5, 7})}, {})), 2 * 3 * 7 * 5);
}

// Nothing is summed over both: element-wise. An index of one operand that nobody needs is summed
// before: [3, 5] becomes [5].
TEST(Einsum, SumsOfOneOperandAreNoProduct) {
  EXPECT_EQ(flops(einsum_contractions("i,j->ij", {dense({3}), dense({5})}, {})), 0);
  EXPECT_EQ(flops(einsum_contractions("ij,jk->jk", {dense({3, 5}), dense({5, 7})}, {})), 0);
  EXPECT_EQ(flops(einsum_contractions("ij,jk->k", {dense({3, 5}), dense({5, 7})}, {})), 2 * 5 * 7);
}

// (a b) c: 2 x 3 x 5 x 7 + 2 x 3 x 7 x 11. By a path that takes b and c first: 2 x 5 x 7 x 11 +
// 2 x 3 x 5 x 11; operand 0 and the result of the first product, number 3.
TEST(Einsum, GoesFromLeftToRightUnlessItHasAPath) {
  const std::vector<TensorType> operands{dense({3, 5}), dense({5, 7}), dense({7, 11})};
  EXPECT_EQ(flops(einsum_contractions("ij,jk,kl->il", operands, {})),
            2 * 3 * 5 * 7 + 2 * 3 * 7 * 11);
  const auto other = einsum_contractions("ij,jk,kl->il", operands, {1, 2, 0, 1});
  EXPECT_EQ(flops(other), 2 * 5 * 7 * 11 + 2 * 3 * 5 * 11);
  EXPECT_EQ(other[1].left.number, 0u);
  EXPECT_EQ(other[1].right.number, 3u);
}

// [heads, in, out] seen as a matrix [in, heads x out]: its strides do not allow that.
TEST(Einsum, SaysWhichOperandsAreLaidOutAnew) {
  const auto copied = [](const TensorType& weight) {
    return einsum_contractions("bti,hio->bhto", {dense({2, 3, 5}), weight}, {})[0].right.copied;
  };
  EXPECT_TRUE(copied(dense({4, 5, 6})));
  EXPECT_FALSE(copied(strided({4, 5, 6}, {6, 24, 1})));
}

TEST(Einsum, ThatDoesNotFitItsOperandsHasNoProducts) {
  EXPECT_THAT(einsum_contractions("ij,jk->ik", {dense({3, 5})}, {}), IsEmpty());
  EXPECT_THAT(einsum_contractions("ij->ij", {dense({3, 5}), dense({5, 7})}, {}), IsEmpty());
  EXPECT_THAT(einsum_contractions("ijk,jk->i", {dense({3, 5}), dense({5, 7})}, {}), IsEmpty());
  EXPECT_THAT(einsum_contractions("i1,jk->i", {dense({3, 5}), dense({5, 7})}, {}), IsEmpty());
}

// 10 x 100, 100 x 5, 5 x 50: 7,500 multiplications the one way, 75,000 the other (Cormen et al.,
// "Introduction to Algorithms", matrix-chain multiplication).
TEST(MatrixChain, TakesTheOrderOfFewestMultiplications) {
  EXPECT_EQ(flops(chain_contractions({dense({10, 100}), dense({100, 5}), dense({5, 50})})),
            2 * 7500);
  EXPECT_EQ(flops(chain_contractions({dense({4}), dense({4, 5}), dense({5})})), 2 * (20 + 4));
}

}  // namespace
}  // namespace pfeife
