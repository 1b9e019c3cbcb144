// Proofs that look at the model as a whole: they hold wherever it is cut, in any order of the
// actions, whichever device runs which rank. A piece is what lies between two neighbouring legal
// cuts.
#include <algorithm>
#include <functional>

#include "planner/schedule_tool/certify.h"

namespace pfeife::tool {
namespace {

using enum StageBounds::Amount;
__extension__ using Big = __int128;

/// A microbatch passes a chain of pieces one after the other, and comes back over those whose
/// values get gradients, each on the device that is fastest at it.
Big longest_chain(const Placement& placement, const StageBounds& bounds) {
  const auto fastest = [&](StageBounds::Amount work) {
    std::vector<Big> least(bounds.last(), Big{1} << 53);
    for (std::size_t s = 0; s < placement.stages(); ++s)
      for (std::size_t j = 0; j < least.size(); ++j)
        least[j] = std::min(least[j], Big{bounds.until(j + 1, s, work) - bounds.until(j, s, work)});
    return least;
  };
  const std::vector<Big> forward = fastest(kForward), input = fastest(kInput);
  std::vector<Big> there = forward, back = input;  // [piece] to its end, from where it comes back
  for (std::size_t q = 0; q < bounds.last(); ++q)
    for (const auto& [producer, reader, value] : bounds.crossing(q)) {
      there[reader] = std::max(there[reader], there[producer] + forward[reader]);
      if (value->gradient_bytes > Bytes{0})
        back[reader] = std::max(back[reader], back[producer] + input[reader]);
    }
  std::ranges::transform(there, back, there.begin(), std::plus{});
  return std::ranges::max(there);
}

/// The slowest device works at least as long as the weighted mean of all, and that is least if each
/// piece is where it weighs least.
bool mean_work_takes(std::int64_t bound, const CertifiedProof& proof, const Placement& placement,
                     const StageBounds& bounds) {
  const Big most = Big{1} << 53, n = proof.spec.microbatches;
  if (proof.shares.size() != proof.spec.ranks) return false;
  Big weights = 0, least = 0;
  for (const Big share : proof.shares) {
    if (share < 0 || n * share >= most) return false;
    weights += share;
  }
  for (std::size_t j = 0; j < bounds.last(); ++j) {
    Big piece = most * most;
    for (std::size_t s = 0; s < placement.stages(); ++s) {
      const Big step = bounds.until(j + 1, s, kStep) - bounds.until(j, s, kStep);
      piece = std::min(piece, proof.shares[placement.rank_of_stage[s].index()] *
                                  (n * bounds.load(s, j, j + 1) + step));
    }
    least += piece;
  }
  return least > weights * (bound - 1);
}

}  // namespace

bool whole_takes_the_bound(std::int64_t bound, const CertifiedProof& proof,
                           const Placement& placement, const StageBounds& bounds) {
  using enum CertifiedProof::Whole;
  return proof.whole == Chain  ? longest_chain(placement, bounds) >= bound
         : proof.whole == Work ? mean_work_takes(bound, proof, placement, bounds)
                               : false;
}

}  // namespace pfeife::tool
