#include "planner/search/work_certificate.h"

#include <algorithm>
#include <limits>

#include "planner/schedules/families.h"
#include "planner/search/any_order.h"
#include "planner/search/proof_record.h"

namespace pfeife {

namespace {

/// Times without recomputation bound every choice of it.
Problem with_any_recomputation(Problem problem) {
  if (problem.recompute == Recompute::None) problem.recompute = Recompute::Choose;
  return problem;
}

/// The schedules of `specs` whose placements differ.
std::vector<ScheduleSpec> one_a_placement(const std::vector<ScheduleSpec>& specs) {
  std::vector<ScheduleSpec> kept;
  for (const ScheduleSpec& spec : specs)
    if (std::ranges::none_of(kept, [&](const ScheduleSpec& other) {
          return placement_for(other).rank_of_stage == placement_for(spec).rank_of_stage;
        }))
      kept.push_back(spec);
  return kept;
}

std::shared_ptr<const Certificate> any_order_certificate(const Problem& problem) {
  const CutModel model(problem.layers, problem.cluster, problem.memory_rule,
                       problem.recompute == Recompute::Full);
  std::vector<CertifiedProof> proofs;
  double least = std::numeric_limits<double>::infinity();
  for (const ScheduleSpec& spec : one_a_placement(problem.schedules)) {
    const AnyOrder any(model, problem, spec);
    proofs.push_back(any.proof_by_rows());
    if (spec.stages() <= static_cast<std::size_t>(model.last()))
      least = std::min(least, any.bound_by_rows());
  }
  if (least < 1 || proofs.empty()) return nullptr;
  const std::int64_t bound = least < std::numeric_limits<double>::infinity()
                                 ? static_cast<std::int64_t>(least)
                                 : Certificate::kNothingFits;
  return std::make_shared<Certificate>(certificate_of(problem, bound, std::move(proofs)));
}

__extension__ using Big = __int128;

}  // namespace

std::shared_ptr<const Certificate> work_certificate(const Problem& given) {
  const Problem problem = with_any_recomputation(given);
  const auto any_order = any_order_certificate(problem), shared = shared_work_certificate(problem);
  if (!any_order || !shared) return any_order ? any_order : shared;
  return any_order->bound < shared->bound ? shared : any_order;
}

std::shared_ptr<const Certificate> shared_work_certificate(const Problem& given) {
  const Problem problem = with_any_recomputation(given);
  const auto n = static_cast<std::int64_t>(problem.schedules.front().microbatches);
  const auto work = [&](const Layer& layer, DeviceId device) {
    const LayerTimes& t = layer.times[problem.cluster.kind_of_device[device.index()]];
    return (n * (t.forward + t.backward_input + t.backward_weight) + t.optimizer).count();
  };
  std::vector<double> all;  // [rank] all work on its device
  for (const DeviceId device : problem.device_of_rank) {
    double sum = 1;
    for (const Layer& layer : problem.layers.layers)
      sum += static_cast<double>(work(layer, device));
    all.push_back(sum);
  }
  // Shares in proportion to the speeds; any others would do, too.
  constexpr double kLargest = 0x1p40;
  const double fastest = std::ranges::min(all);
  std::vector<std::int64_t> shares;  // [rank]
  Big together = 0, least = 0;
  for (const double sum : all) {
    shares.push_back(static_cast<std::int64_t>(kLargest * (fastest / sum)));
    together += shares.back();
  }
  for (const Layer& layer : problem.layers.layers) {
    Big cheapest = Big{1} << 124;
    for (std::size_t r = 0; r < shares.size(); ++r)
      cheapest = std::min(cheapest, Big{shares[r]} * work(layer, problem.device_of_rank[r]));
    least += cheapest;
  }
  const auto bound = static_cast<std::int64_t>((least + together - 1) / together);
  if (bound < 1) return nullptr;
  Certificate certificate = certificate_of(problem, bound, {});
  std::vector<std::int64_t> of_device(certificate.cluster.devices());
  for (std::size_t r = 0; r < shares.size(); ++r)
    of_device[certificate.device_of_rank[r].index()] = shares[r];
  for (const ScheduleSpec& spec : one_a_placement(problem.schedules))
    certificate.proofs.push_back({.spec = spec, .any_order = true, .shares = of_device});
  return std::make_shared<Certificate>(std::move(certificate));
}

}  // namespace pfeife
