// How much memory a certificate takes to check, by its size: what certify() allocates, counted.
#include <algorithm>
#include <functional>

#include "planner/schedule_tool/certify.h"

namespace pfeife::tool {
namespace {

constexpr double kPosition = 16;  // bytes of a stage's begins for an end, and of a sum
constexpr double kAction = 600;   // of an action with its tasks and edges, transfers included
constexpr double kCounts = 272;   // of a stage in a path or moment

double positions(const Certificate& c) {
  return 2 + static_cast<double>(std::ranges::count(c.layers.layers, "", &Layer::no_cut_after));
}

/// Regions that are open at the same time.
double most_open(const std::vector<CertifiedNode>& tree) {
  std::size_t open = 1, most = 1;
  for (const CertifiedNode& node : tree) {
    if (open > 0) --open;
    if (node.then == CertifiedNode::Then::SplitLoad || node.then == CertifiedNode::Then::SplitEnd)
      open += 2;
    most = std::max(most, open);
  }
  return static_cast<double>(most + 1);
}

double of_proof(const Certificate& c, const CertifiedProof& proof) {
  const double stages =
      static_cast<double>(proof.spec.ranks) * static_cast<double>(proof.spec.stages_per_rank);
  const double n = positions(c);
  const double graph =
      proof.any_order ? 0 : stages * static_cast<double>(proof.spec.microbatches) * 3 * kAction;
  const auto known = static_cast<double>(proof.paths.size() + proof.moments.size());
  return graph + known * stages * kCounts + (most_open(proof.tree) + 4) * stages * n * kPosition;
}

}  // namespace

bool looks_at_memory(const Certificate& c) {
  return std::ranges::any_of(c.proofs, [](const CertifiedProof& p) { return !p.moments.empty(); });
}

Bytes certify_memory(const Certificate& c, std::size_t threads) {
  const double n = positions(c);
  double bytes = looks_at_memory(c) ? 4 * 8 * n * n : 0;
  bytes += static_cast<double>(c.cluster.kinds.size()) * n * 56;
  for (const LayerValue& value : c.layers.values)  // at every position that it crosses
    if (!value.consumers.empty())
      bytes += 24 * static_cast<double>(value.consumers.back().value - value.producer.value);
  std::vector<double> proofs;
  for (const CertifiedProof& proof : c.proofs) proofs.push_back(of_proof(c, proof));
  std::ranges::sort(proofs, std::greater{});
  for (std::size_t p = 0; p < std::min(threads, proofs.size()); ++p) bytes += proofs[p];
  constexpr double kAll = 9e18;
  return Bytes{static_cast<std::int64_t>(std::min(bytes, kAll))};
}

}  // namespace pfeife::tool
