// What checking a certificate takes, told before it starts.
#include <gtest/gtest.h>

#include "planner/schedule_tool/certify.h"

namespace pfeife {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

/// A certificate of `rows` layers with a cut after each; two stages, one proof of one path.
Certificate of_rows(std::size_t rows) {
  Certificate certificate;
  Layer layer;
  layer.times.resize(1);
  certificate.layers.layers.assign(rows, layer);
  certificate.cluster.kinds.resize(1);
  certificate.proofs = {{.spec = {"1f1b", 2, 4, 1, {}, {}}, .paths = {{}}, .tree = {{}}}};
  return certificate;
}

TEST(CertifyMemory, GrowsWithTheSquareOfTheRowsOnlyWhereAProofLooksAtMemory) {
  Certificate rows = of_rows(10'000);
  EXPECT_LT(tool::certify_memory(rows, 1).value, 16 * kMiB);
  rows.proofs[0].moments = {{0, 0}};
  // Four passes, a word each, of 10,001 x 10,001 positions: 3,052 MiB.
  EXPECT_GT(tool::certify_memory(rows, 1).value, 3052 * kMiB);
  EXPECT_LT(tool::certify_memory(rows, 1).value, 3100 * kMiB);
  Certificate more = of_rows(12'000);
  more.proofs[0].moments = {{0, 0}};
  EXPECT_GT(tool::certify_memory(more, 1).value, 4096 * kMiB);
}

TEST(CertifyMemory, CountsOpenRegionsThreadsSchedulesAndWhatCrosses) {
  const Certificate one = of_rows(1000);
  const std::int64_t least = tool::certify_memory(one, 1).value;
  Certificate other = one;
  other.proofs.push_back(other.proofs[0]);
  EXPECT_EQ(tool::certify_memory(other, 1).value, least);
  EXPECT_GT(tool::certify_memory(other, 2).value, least);
  other = one;
  other.proofs[0].tree.assign(100, {{}, CertifiedNode::Then::SplitEnd});
  // A hundred more regions of two stages and 1001 ends, 16 bytes each.
  EXPECT_GE(tool::certify_memory(other, 1).value - least, 100 * 2 * 1001 * 16);
  other = one;
  other.proofs[0].spec.microbatches = 1'000'000'000'000;
  EXPECT_GT(tool::certify_memory(other, 1).value, 4096 * kMiB);
  other = one;
  other.layers.values.resize(1000, {"v", LayerId{0}, {LayerId{999}}, Bytes{1}, Bytes{1}, {}});
  EXPECT_GE(tool::certify_memory(other, 1).value - least, 999 * 1000 * 24);
}

}  // namespace
}  // namespace pfeife
