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
        return std::holds_alternative<CertifiedPath>(*facts_[weight.of]);
      };
      if (nothing_fits) std::erase_if(weights, is_path);
      for (CertifiedWeight& weight : weights) {
        std::uint32_t& known = written_as[weight.of];
        if (known == kUnused) {
          known = static_cast<std::uint32_t>(proof.moments.size() + proof.paths.size());
          proof.paths.push_back(std::get<CertifiedPath>(*facts_[weight.of]));
        }
        weight.of = known;
      }
    }
  }
  return proof;
}

/// Only the devices of the ranks, with what their costs are made of.
static void keep_devices(const Problem& problem, Certificate& certificate) {
  std::vector<DeviceId> devices = problem.device_of_rank;
  std::ranges::sort(devices);
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  for (const DeviceKind& kind : problem.cluster.kinds) {
    DeviceKind& kept = certificate.cluster.kinds.emplace_back();
    kept.stage_overhead = kind.stage_overhead, kept.iteration_overhead = kind.iteration_overhead;
  }
  for (const DeviceId from : devices) {
    certificate.cluster.kind_of_device.push_back(problem.cluster.kind_of_device[from.index()]);
    for (const DeviceId to : devices) {
      Path path = problem.cluster.path(from, to);
      if (!path.links.empty()) path.links = {0};  // which ones matters to the simulator alone
      certificate.cluster.paths.push_back(std::move(path));
    }
  }
  for (const DeviceId device : problem.device_of_rank)
    certificate.device_of_rank.emplace_back(std::ranges::find(devices, device) - devices.begin());
}

Certificate certificate_of(const Problem& problem, std::int64_t bound,
                           std::vector<CertifiedProof> proofs) {
  Certificate certificate;
  Layers& layers = certificate.layers;
  layers = problem.layers;
  layers.name.clear(), layers.notes.clear();
  for (Layer& layer : layers.layers) {
    layer.name.clear(), layer.module_path.clear(), layer.nodes.clear();
    layer.model_input = Bytes{0};
    if (!layer.no_cut_after.empty()) layer.no_cut_after = "no cut";
  }
  for (LayerValue& value : layers.values) value.name.clear(), value.waiting_gradient = Bytes{0};
  for (LayerParameter& parameter : layers.parameters) parameter.name.clear();
  certificate.cluster.digest = problem.cluster.digest;
  keep_devices(problem, certificate);
  certificate.memory_limit = problem.memory_limit;
  certificate.recompute = problem.recompute;
  certificate.bound = bound;
  certificate.proofs = std::move(proofs);
  return certificate;
}

}  // namespace pfeife
