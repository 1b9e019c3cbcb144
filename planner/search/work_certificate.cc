#include "planner/search/work_certificate.h"

#include <algorithm>
#include <limits>
#include <numeric>

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

/// [piece between legal cuts] the time (ns) of all microbatches and of the optimizer on a device; a
/// parameter counts with the first layer that uses it.
static std::vector<std::int64_t> work_of_pieces(const Problem& problem, DeviceId device) {
  const auto n = static_cast<std::int64_t>(problem.schedules.front().microbatches);
  const std::size_t kind = problem.cluster.kind_of_device[device.index()];
  std::vector<Nanoseconds> steps(problem.layers.size(), Nanoseconds{0});
  for (const LayerParameter& p : problem.layers.parameters)
    if (!p.users.empty() && !p.optimizer.empty())
      steps[p.users.front().index()] += p.optimizer[kind];
  std::vector<std::int64_t> work{0};
  for (std::size_t l = 0; l < problem.layers.size(); ++l) {
    const LayerTimes& t = problem.layers.layers[l].times[kind];
    work.back() += (n * (t.forward + t.backward_input + t.backward_weight) + t.optimizer).count() +
                   steps[l].count();
    if (l + 1 < problem.layers.size() && problem.layers.layers[l].no_cut_after.empty())
      work.push_back(0);
  }
  return work;
}

std::shared_ptr<const Certificate> shared_work_certificate(const Problem& given) {
  const Problem problem = with_any_recomputation(given);
  std::vector<std::vector<std::int64_t>> work;  // [rank][piece]
  std::vector<double> all;                      // [rank] all work on its device
  for (const DeviceId device : problem.device_of_rank) {
    work.push_back(work_of_pieces(problem, device));
    all.push_back(std::accumulate(work.back().begin(), work.back().end(), 1.0));
  }
  // Shares in proportion to the speeds; any others would do, too. The judge takes sums below 2^53.
  const double largest =
      0x1p52 / static_cast<double>(all.size() * problem.schedules.front().microbatches);
  const double fastest = std::ranges::min(all);
  CertifiedNode root{.weights = {{}}, .then = CertifiedNode::Then::Shared};
  std::vector<CertifiedPath> rows;  // [rank] its own work
  Big together = 0, least = 0;
  for (std::uint32_t r = 0; r < all.size(); ++r) {
    rows.push_back({r, ""});
    root.weights[0].paths.push_back({r, static_cast<std::int64_t>(largest * (fastest / all[r]))});
    together += root.weights[0].paths[r].weight;
  }
  for (std::size_t piece = 0; piece < work[0].size(); ++piece) {
    Big cheapest = Big{1} << 124;
    for (std::size_t r = 0; r < all.size(); ++r)
      cheapest = std::min(cheapest, Big{root.weights[0].paths[r].weight} * work[r][piece]);
    least += cheapest;
  }
  const auto bound = static_cast<std::int64_t>((least + together - 1) / together);
  if (bound < 1) return nullptr;
  std::vector<CertifiedProof> proofs;
  for (const ScheduleSpec& spec : one_a_placement(problem.schedules))
    proofs.push_back({.spec = spec,
                      .least_load = std::vector<std::int64_t>(spec.stages(), 0),
                      .paths = rows,
                      .tree = {root},
                      .any_order = true});
  return std::make_shared<Certificate>(certificate_of(problem, bound, std::move(proofs)));
}

}  // namespace pfeife
