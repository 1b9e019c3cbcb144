#include "planner/search/choices/work_certificate.h"

#include <algorithm>
#include <numeric>

#include "planner/schedules/families.h"
#include "planner/search/bound/any_order.h"
#include "planner/search/bound/proof_record.h"
#include "planner/search/bound/segment_bound.h"

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

__extension__ using Big = __int128;

/// [piece between legal cuts] the time (ns) of all microbatches and of the optimizer on a device; a
/// parameter counts with the first layer that uses it.
std::vector<std::int64_t> work_of_pieces(const Problem& problem, DeviceId device) {
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

/// A proof and what it shows (ns).
struct Shown {
  CertifiedProof proof;
  std::int64_t bound = 0;
};

/// The work of the devices, shared in proportion to their speeds; any other shares would do, too.
Shown mean_work(const Problem& problem) {
  std::vector<std::vector<std::int64_t>> work;  // [rank][piece]
  std::vector<double> all;                      // [rank] all work on its device
  for (const DeviceId device : problem.device_of_rank) {
    work.push_back(work_of_pieces(problem, device));
    all.push_back(std::accumulate(work.back().begin(), work.back().end(), 1.0));
  }
  // The judge takes shares whose work by all microbatches stays below 2^53.
  const double largest =
      0x1p52 / static_cast<double>(all.size() * problem.schedules.front().microbatches);
  const double fastest = std::ranges::min(all);
  Shown shown{.proof = {.any_order = true, .whole = CertifiedProof::Whole::Work}};
  std::vector<std::int64_t>& shares = shown.proof.shares;
  for (const double one : all)
    shares.push_back(static_cast<std::int64_t>(largest * (fastest / one)));
  Big least = 0;
  for (std::size_t piece = 0; piece < work[0].size(); ++piece) {
    Big cheapest = Big{1} << 124;
    for (std::size_t r = 0; r < all.size(); ++r)
      cheapest = std::min(cheapest, Big{shares[r]} * work[r][piece]);
    least += cheapest;
  }
  const Big together = std::accumulate(shares.begin(), shares.end(), Big{0});
  shown.bound = static_cast<std::int64_t>((least + together - 1) / together);
  return shown;
}

/// The better of what there is to say of the model as a whole.
Shown of_the_whole(const Problem& problem) {
  Shown chain{.proof = {.any_order = true, .whole = CertifiedProof::Whole::Chain},
              .bound = static_cast<std::int64_t>(one_microbatch_bound(problem))};
  Shown work = mean_work(problem);
  return work.bound < chain.bound ? chain : work;
}

/// By the rows of a placement.
Shown of_rows(const CutModel& model, const Problem& problem, const ScheduleSpec& spec) {
  const AnyOrder any(model, problem, spec);
  const bool cuts = spec.stages() <= static_cast<std::size_t>(model.last());
  return {any.proof_by_rows(),
          cuts ? static_cast<std::int64_t>(any.bound_by_rows()) : Certificate::kNothingFits};
}

/// Of one proof for each placement, which `prove(spec)` gives.
std::shared_ptr<const Certificate> certificate_by(const Problem& problem, const auto& prove) {
  std::vector<CertifiedProof> proofs;
  std::int64_t bound = Certificate::kNothingFits;
  for (const ScheduleSpec& spec : one_a_placement(problem.schedules)) {
    Shown shown = prove(spec);
    shown.proof.spec = spec;
    bound = std::min(bound, shown.bound);
    proofs.push_back(std::move(shown.proof));
  }
  if (bound < 1 || proofs.empty()) return nullptr;
  return std::make_shared<Certificate>(certificate_of(problem, bound, std::move(proofs)));
}

}  // namespace

std::shared_ptr<const Certificate> work_certificate(const Problem& given) {
  const Problem problem = with_any_recomputation(given);
  const CutModel model(problem.layers, problem.cluster, problem.memory_rule,
                       problem.recompute == Recompute::Full);
  const Shown whole = of_the_whole(problem);
  return certificate_by(problem, [&](const ScheduleSpec& spec) {
    Shown rows = of_rows(model, problem, spec);
    return rows.bound < whole.bound ? whole : rows;
  });
}

std::shared_ptr<const Certificate> whole_certificate(const Problem& given) {
  const Problem problem = with_any_recomputation(given);
  const Shown whole = of_the_whole(problem);
  return certificate_by(problem, [&](const ScheduleSpec&) { return whole; });
}

}  // namespace pfeife
