#include "planner/search/proof_record.h"

#include <algorithm>

namespace pfeife {

std::uint32_t ProofRecord::path(const CertifiedPath& path) {
  const std::lock_guard lock(mutex_);
  const auto [at, added] =
      number_.try_emplace({path.rank, path.turns}, static_cast<std::uint32_t>(paths_.size()));
  if (added) paths_.push_back(path);
  return at->second;
}

std::uint32_t ProofRecord::moment(const CertifiedMoment& moment) {
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::find(moments_, moment);
  const auto number = static_cast<std::uint32_t>(at - moments_.begin());
  if (at == moments_.end()) moments_.push_back(moment);
  return number;
}

CertifiedProof ProofRecord::proof(const ScheduleSpec& spec, std::int64_t bound) const {
  CertifiedProof proof{spec, least_load, {}, moments_, {}, linked};
  std::ranges::sort(proof.moments);
  const bool nothing_fits = bound == Certificate::kNothingFits;
  constexpr std::uint32_t kUnused = ~std::uint32_t{0};
  std::vector<std::uint32_t> number(paths_.size(), kUnused);
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
      for (auto& weight : weights.moments)
        weight.of = static_cast<std::uint32_t>(
            std::ranges::lower_bound(proof.moments, moments_[weight.of]) - proof.moments.begin());
      if (nothing_fits) weights.paths.clear();
      for (auto& weight : weights.paths) {
        std::uint32_t& known = number[weight.of];
        if (known == kUnused) {
          known = static_cast<std::uint32_t>(proof.paths.size());
          proof.paths.push_back(paths_[weight.of]);
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
