#include "experiments/plans/proven_bound.h"

#include <algorithm>
#include <limits>

#include "planner/schedule_tool/certify.h"

namespace pfeife {
namespace {

/// About what the judge does once: positions of stages that it looks at, for all weights. Infinite
/// if it looks at cuts one by one.
double work_of(const Certificate& certificate) {
  const auto layers = static_cast<double>(certificate.layers.size() + 1);
  double work = 0;
  for (const CertifiedProof& proof : certificate.proofs)
    for (const CertifiedNode& node : proof.tree) {
      if (node.then == CertifiedNode::Then::Each) return std::numeric_limits<double>::infinity();
      const auto filters = static_cast<double>(node.weights.size() + 2 * proof.moments.size() + 1);
      work += filters * static_cast<double>(proof.spec.stages()) * layers * layers;
    }
  return work;
}

/// The highest bound up to `most` that the judge accepts, whatever the certificate states.
std::int64_t highest_accepted(Certificate certificate, std::int64_t most, std::size_t threads) {
  std::int64_t low = certificate.bound, high = most + 1;
  const auto is_accepted = [&](std::int64_t bound) {
    certificate.bound = bound;
    return tool::certify(certificate, threads).refusal.empty();
  };
  if (is_accepted(most)) return most;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (is_accepted(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

void raise_to_proven(EvaluatedCase& evaluated, std::size_t threads) {
  constexpr double kMostWork = 2e7;
  const Answer& answer = evaluated.answer();
  if (!answer.bound || !answer.certificate || answer.plans.empty() ||
      !answer.alternatives.empty() || !to_string(answer.uncertified).empty() ||
      answer.orders_left_out)
    return;
  const std::int64_t best = answer.plans.front().estimate.count();
  const Certificate& stated = *answer.certificate;
  Plan plan{answer.plans.front()};
  plan.bound = answer.bound;
  plan.bound->time = std::min(plan.bound->time, Nanoseconds{stated.bound});
  if (stated.bound >= best || work_of(stated) > kMostWork || !tool::unproven(stated, plan).empty())
    return;
  Certificate raised = stated;
  raised.bound = highest_accepted(stated, best, threads);
  const Nanoseconds proven{raised.bound};
  evaluated.pool.raise(proven, std::make_shared<const Certificate>(std::move(raised)));
}

}  // namespace pfeife
