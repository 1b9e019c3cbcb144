#include "planner/search/bound/proof_record.h"

#include <algorithm>

namespace pfeife {

std::uint32_t ProofRecord::number(Fact fact) {
  const std::lock_guard lock(mutex_);
  const auto [at, added] =
      number_.try_emplace(std::move(fact), static_cast<std::uint32_t>(facts_.size()));
  if (added) facts_.push_back(&at->first);
  return at->second;
}

CertifiedProof ProofRecord::proof(const ScheduleSpec& spec, std::int64_t bound) const {
  CertifiedProof proof{.spec = spec, .least_load = least_load, .linked = linked};
  const bool nothing_fits = bound == Certificate::kNothingFits;
  constexpr std::uint32_t kUnused = ~std::uint32_t{0};
  std::vector<std::uint32_t> written_as(facts_.size(), kUnused);
  for (const auto& [fact, number] : number_)  // moments come first, in their order
    if (const auto* moment = std::get_if<CertifiedMoment>(&fact)) {
      written_as[number] = static_cast<std::uint32_t>(proof.moments.size());
      proof.moments.push_back(*moment);
    }
  std::vector<std::size_t> open;
  if (!nodes_.empty()) open.push_back(0);
  while (!open.empty()) {
    const Node& node = nodes_[open.back()];
    open.pop_back();
    CertifiedNode& written = proof.tree.emplace_back(node.certified);
    const bool proven = !nothing_fits && node.bound >= static_cast<double>(bound);
    if (proven) written.then = CertifiedNode::Then::Nothing;
    if (written.then == CertifiedNode::Then::SplitLoad ||
        written.then == CertifiedNode::Then::SplitEnd)
      open.insert(open.end(), node.children.rbegin(), node.children.rend());
    else
      written.stage = 0, written.threshold = 0;
    for (CertifiedWeights& weights : written.weights) {
      const auto is_path = [&](const CertifiedWeight& weight) {
        return std::holds_alternative<CertifiedPath>(*facts_[weight.fact]);
      };
      if (nothing_fits) std::erase_if(weights, is_path);
      for (CertifiedWeight& weight : weights) {
        std::uint32_t& known = written_as[weight.fact];
        if (known == kUnused) {
          known = static_cast<std::uint32_t>(proof.moments.size() + proof.paths.size());
          proof.paths.push_back(std::get<CertifiedPath>(*facts_[weight.fact]));
        }
        weight.fact = known;
      }
    }
  }
  return proof;
}

Certificate certificate_of(const Problem& problem, std::int64_t bound,
                           std::vector<CertifiedProof> proofs) {
  Certificate certificate =
      certified_problem(problem.layers, problem.cluster, problem.device_of_rank,
                        problem.memory_limit, problem.recompute, problem.norm);
  certificate.bound = bound;
  certificate.proofs = std::move(proofs);
  return certificate;
}

}  // namespace pfeife
