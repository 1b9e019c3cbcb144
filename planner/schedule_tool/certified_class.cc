// What certificates prove together of all that a plan's bound covers.
#include <algorithm>
#include <numeric>

#include "planner/schedule_tool/certify.h"
#include "planner/schedules/families.h"

namespace pfeife::tool {
namespace {

constexpr std::size_t kMostDevices = 8;  // whose orders are looked at one by one

using Ranks = std::vector<std::pair<DeviceId, Bytes>>;  // [rank] its device and limit

Ranks ranks_of(const Certificate& c) {
  Ranks ranks;
  for (std::size_t r = 0; r < c.device_of_rank.size(); ++r)
    ranks.emplace_back(c.device_of_rank[r], c.memory_limit[r]);
  return ranks;
}

/// At no size: between the points of both, the time of each is a line.
bool no_slower(const Path& a, const Path& b) {
  const auto at = [&](const BandwidthCurve::Point& point) {
    return a.bandwidth.at(point.size).value >= b.bandwidth.at(point.size).value;
  };
  return a.links.empty() || (!b.links.empty() && a.latency <= b.latency &&
                             std::ranges::all_of(a.bandwidth.points, at) &&
                             std::ranges::all_of(b.bandwidth.points, at));
}

/// One kind of device than another, at any layer.
bool no_slower(const Certificate& c, std::size_t a, std::size_t b) {
  const auto layer = [&](const Layer& of) {
    const LayerTimes &s = of.times[a], &t = of.times[b];
    return s.forward <= t.forward && s.backward_input <= t.backward_input &&
           s.backward_weight <= t.backward_weight && s.optimizer <= t.optimizer;
  };
  const auto step = [&](const LayerParameter& of) {
    return of.optimizer.empty() || of.optimizer[a] <= of.optimizer[b];
  };
  const DeviceKind &s = c.cluster.kinds[a], &t = c.cluster.kinds[b];
  if (a == b) return true;
  return s.stage_overhead <= t.stage_overhead && s.iteration_overhead <= t.iteration_overhead &&
         std::ranges::all_of(c.layers.layers, layer) &&
         std::ranges::all_of(c.layers.parameters, step);
}

/// Whether no plan is slower with the devices `a` than with `b`, and each that fits there fits.
bool as_good(const Certificate& c, const Ranks& a, const Ranks& b) {
  const auto kind = [&](DeviceId device) { return c.cluster.kind_of_device[device.index()]; };
  if (a.size() != b.size()) return false;
  for (std::size_t r = 0; r < a.size(); ++r) {
    const DeviceId one = a[r].first, other = b[r].first;
    if (a[r].second < b[r].second || !no_slower(c, kind(one), kind(other))) return false;
    for (std::size_t s = 0; s < a.size(); ++s)
      if ((one == a[s].first) != (other == b[s].first) ||
          !no_slower(c.cluster.path(one, a[s].first), c.cluster.path(other, b[s].first)))
        return false;
  }
  return true;
}

/// Whether every rank could have every device as well: exchanges with the first make all orders.
bool alike(const Certificate& c, const Ranks& ranks) {
  for (Ranks exchanged = ranks; auto& rank : exchanged) {
    std::swap(exchanged[0], rank);
    if (!as_good(c, exchanged, ranks)) return false;
    std::swap(exchanged[0], rank);
  }
  return true;
}

/// Whether the certificate speaks of a problem of the plan, the order of the devices apart: of all
/// schedules, by a proof of them or of any order of such stages; of other numbers of microbatches
/// the families and loops are looked at. `own` speaks of the plan's.
bool speaks_of(const Certificate& c, const CoveredProblem& problem, const Plan& plan,
               const Certificate& own) {
  const bool same = problem.microbatches == plan.spec.microbatches;
  const auto has = [&](ScheduleSpec spec) {
    spec.microbatches = problem.microbatches;
    if (!same) spec.loop_batch = {}, spec.prefetch = {};
    if (refusal(spec)) return !same;  // there are none
    return std::ranges::any_of(c.proofs, [&](const CertifiedProof& p) {
      if (p.any_order)
        return placement_for(p.spec).rank_of_stage == placement_for(spec).rank_of_stage;
      return same ? p.spec == spec : p.spec.family == spec.family && p.spec.loops == spec.loops;
    });
  };
  return c.layers.digest == problem.model_digest && c.layers.order == problem.order &&
         (c.recompute == problem.recompute || c.recompute == Recompute::Choose) &&
         c.cluster == own.cluster && std::ranges::all_of(plan.bound->schedules, has) &&
         std::ranges::all_of(c.proofs, [&](const CertifiedProof& p) {
           return p.spec.microbatches == problem.microbatches;
         });
}

/// What is proven of a problem of the plan that `certificates.front()` speaks of; 0 = nothing.
std::int64_t proven_of(const CoveredProblem& problem, const std::vector<Certificate>& certificates,
                       const Plan& plan) {
  Certificate own = certificates.front();
  own.memory_limit = plan.bound->memory_limit;
  const Ranks given = ranks_of(own);
  std::vector<const Certificate*> speaking;
  std::int64_t any = 0;  // whatever the order of the devices
  for (const Certificate& c : certificates) {
    if (!speaks_of(c, problem, plan, own)) continue;
    speaking.push_back(&c);
    if (of_any_devices(c, own)) any = std::max(any, c.bound);
  }
  const auto of = [&](const Ranks& ranks) {
    std::int64_t best = any;
    for (const Certificate* c : speaking)
      if (c->bound > best && as_good(*c, ranks_of(*c), ranks)) best = c->bound;
    return best;
  };
  if (!problem.any_devices || speaking.empty()) return of(given);
  if (given.size() > kMostDevices) return any;
  std::vector<std::size_t> order(given.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::int64_t least = Certificate::kNothingFits;
  do {
    Ranks ranks;
    for (const std::size_t rank : order) ranks.push_back(given[rank]);
    least = std::min(least, of(ranks));
  } while (least > any && std::ranges::next_permutation(order).found);
  return least;
}

}  // namespace

bool of_any_devices(const Certificate& c, const Certificate& own) {
  const auto whole = [](const CertifiedProof& p) { return p.whole != CertifiedProof::Whole::No; };
  if (c.cluster != own.cluster) return false;
  if (std::ranges::all_of(c.proofs, whole))
    return std::ranges::is_permutation(c.device_of_rank, own.device_of_rank);
  const Ranks ranks = ranks_of(c);
  return as_good(c, ranks, ranks_of(own)) && alike(c, ranks);
}

Proven proven(const std::vector<Certificate>& certificates, const Plan* plan) {
  Proven all{Certificate::kNothingFits, {}};
  if (plan == nullptr) {
    for (const Certificate& c : certificates) all.bound = std::min(all.bound, c.bound);
    return all;
  }
  std::vector<CoveredProblem> problems = plan->bound->problems;
  if (problems.empty())
    problems = {
        {plan->model_digest, plan->order, plan->spec.microbatches, certificates.front().recompute}};
  for (const CoveredProblem& problem : problems) {
    const std::int64_t best = proven_of(problem, certificates, *plan);
    if (best == 0)
      all.missing.push_back(problem);
    else
      all.bound = std::min(all.bound, best);
  }
  return all;
}

bool proves_all_of(const Proven& proven, const Plan* plan) {
  return plan == nullptr || (proven.missing.empty() && plan->bound->time.count() <= proven.bound);
}

}  // namespace pfeife::tool
