// Certificates judged on several threads, against the same judge on one.
#include <gtest/gtest.h>

#include "planner/schedule_tool/certify.h"
#include "tests/search/certified.h"

namespace pfeife {
namespace {

void expect_as_on_one(const Certificate& certificate) {
  const tool::Verdict expected = tool::certify(certificate);
  for (const std::size_t threads : {1, 2, 5}) {
    const tool::Verdict verdict = tool::certify(certificate, threads);
    EXPECT_EQ(verdict.refusal, expected.refusal) << threads;
    EXPECT_EQ(verdict.cuts, expected.cuts) << threads;
  }
}

TEST(CertifyThreads, OutcomeIsThatOfOne) {
  std::mt19937 random(5);
  std::size_t accepted = 0, refused = 0;
  for (int round = 0; round < 12; ++round) {
    const Instance instance = random_instance(random, 6, 0.5);
    const auto found = certified_search(instance.problem()).certificate;
    if (!found) continue;
    Certificate certificate = *found;
    expect_as_on_one(certificate);
    accepted += tool::certify(certificate).refusal.empty() && certificate.proofs.size() > 1;
    // Two mistakes of different kinds: the first of them is named.
    if (certificate.proofs.size() < 3) continue;
    certificate.proofs[2].spec.ranks += 1;
    certificate.proofs[1].least_load.push_back(0);
    expect_as_on_one(certificate);
    refused += !tool::certify(certificate).refusal.empty();
    certificate.proofs.clear();
    expect_as_on_one(certificate);
  }
  EXPECT_GT(accepted, 3U);
  EXPECT_GT(refused, 3U);
}

}  // namespace
}  // namespace pfeife
