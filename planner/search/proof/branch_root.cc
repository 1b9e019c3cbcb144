// The root of the tree: the class of cuts that it covers, and the best bound of all of them.
#include <algorithm>
#include <array>
#include <cmath>

#include "planner/search/bound/stage_bound.h"
#include "planner/search/bound/stage_paths.h"
#include "planner/search/proof/branch_and_bound.h"

namespace pfeife {
namespace {
constexpr std::size_t kMixtures = 120;  ///< minima for the root's weights
constexpr double kMixed = 0.03;  ///< of what is missing: left to gain when weights are good enough

/// Ways to cut a model into stages, by the number of its last position.
double choices(std::int32_t last, std::size_t stages) {
  double found = 1;
  for (std::size_t k = 1; k < stages; ++k)
    found *= (static_cast<double>(last) - static_cast<double>(k)) / static_cast<double>(k);
  return found;
}
}  // namespace

void BranchAndBound::bound_root(double target) {
  target_ = std::min(target_, target);
  if (handled_ > 0 || (rooted_ && open_.empty())) return;
  Node root{rooted_ ? open_.front().region : cut_bound_.everything(),
            rooted_ ? open_.front().bound : 0, 0, 0};
  if (settings_.record) root.record = open_.empty() ? record_.add() : open_.front().record;
  open_.clear();
  rooted_ = false;
  const Verdict verdict = tighten_root(root);
  rooted_ = true;
  if (verdict == Verdict::Closed) return;
  open_.push_back(std::move(root));
}

/// What certificates say of restrict_class.
void BranchAndBound::record_class(const CutRegion& root) {
  record_.linked = linked_only_;
  record_.least_load.clear();
  for (const double low : root.low) record_.least_load.push_back(static_cast<std::int64_t>(low));
}

/// In a model with branches a stage of very few layers may send nothing to the next one. So that
/// all transfers between neighbours surely exist, the proof is restricted to stages of at least a
/// small share of the mean load, as small as will do. If none will do, it is restricted to cuts
/// that have these transfers.
void BranchAndBound::restrict_class(CutRegion& region) {
  const std::size_t stages = candidates_.stages();
  const CutRegion whole = region;
  const auto enter_with = [&](double share) {
    region = whole;
    for (std::size_t s = 0; s < stages; ++s)
      region.low[s] =
          std::floor(share * candidates_.model().load(candidates_.costs().kind(s)).back() /
                     static_cast<double>(stages));
    return cut_bound_.enter(region);
  };
  constexpr std::array kShares{0.0, 0.002, 0.005, 0.01, 0.02, 0.05};
  // Larger stages have more links: where those of the largest share are unsure, so are all.
  const bool none = enter_with(kShares.back()) && !cut_bound_.always_linked();
  for (std::size_t k = 0; !none && k < kShares.size() && enter_with(kShares[k]); ++k) {
    least_share_ = kShares[k];
    always_linked_ = cut_bound_.always_linked();
    if (always_linked_) return;
  }
  region = whole;
  least_share_ = 0;
  linked_only_ = true;
  cut_bound_.linked_only();
}

/// Raises the root's bound to what the paths of linked stages say.
void BranchAndBound::bound_stages(Node& root) {
  if (!linked_only_ && !cut_bound_.always_linked()) return;
  std::vector<CutCosts::Latency> latency(candidates_.stages());
  for (std::size_t i = 1; i < latency.size(); ++i) latency[i] = cut_bound_.least_latency(i);
  const CutModel& model = candidates_.model();
  const Schedule schedule = candidates_.schedule();
  const double bound = stage_bound(model, candidates_.costs(), schedule, latency, target());
  if (std::floor(bound) <= root.bound) return;
  root.bound = std::floor(bound);
  if (!settings_.record) return;
  const auto paths = binding_paths(model, candidates_.costs(), schedule, latency, bound);
  for (const CertifiedPath& path : certified_paths(schedule, candidates_.placement(), paths))
    record_.node(root.record).certified.weights.push_back({{record_.number(path), 1}});
}

BranchAndBound::Verdict BranchAndBound::tighten_root(Node& root) {
  if (handled_ == 0 && root.bound == 0) {
    if (choices(candidates_.model().last(), candidates_.stages()) > settings_.few_cuts)
      restrict_class(root.region);
    record_class(root.region);
  }
  if (candidates_.best()) cut_bound_.forget_idle_moments(candidates_.best_cuts());
  if (settings_.record) cut_bound_.set_record(&record_);
  const auto microbatches = static_cast<double>(candidates_.spec().microbatches);
  const std::size_t rounds = candidates_.stages() <= Relaxation::kFewStages ? 6 : 2;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (double& high : root.region.high)
      high = std::min(high, std::floor((target() - 1) / microbatches));
    const double before = root.bound;
    const CutRegion old = root.region;
    if (!cut_bound_.enter(root.region)) {
      last_weights_ = best_weights_ = {};
      if (settings_.record) record_weights(root);
      return close(root, target());
    }
    cut_bound_.refresh_latencies();
    if (round == 0) bound_stages(root);
    if (root.bound >= target()) return close(root, root.bound);
    if (improve(root, rounds) == Verdict::Closed) return Verdict::Closed;
    cut_bound_.keep_filtered(true);
    root.weights = best_;
    const bool left = cut_bound_.filter((target() - 1) * last_sum_);
    cut_bound_.keep_filtered(false);
    if (!left) return close(root, target());
    root.region = cut_bound_.region();
    const bool same = root.region.first == old.first && root.region.last == old.last;
    if (round > 0 && same && root.bound <= before) break;
  }
  return Verdict::Open;
}

void BranchAndBound::strengthen_root(double target) {
  target_ = std::min(target_, target);
  if (handled_ > 0 || !rooted_ || open_.empty() || !can_mix()) return;
  Node root = pop();
  ++handled_;
  rooted_ = false;  // the master's rounds are those of a root
  Verdict verdict = improve(root, 2);
  rooted_ = true;
  if (verdict == Verdict::Open) verdict = mix(root, kMixtures);
  if (verdict == Verdict::Closed) return;
  cut_bound_.keep_filtered(true);
  const bool left = cut_bound_.filter((this->target() - 1) * last_sum_);
  cut_bound_.keep_filtered(false);
  if (!left) {
    close(root, this->target());
    return;
  }
  root.region = cut_bound_.region(), root.weights = best_;
  open_.push_back(std::move(root));
}

/// There is a time to beat, and the stages are few.
bool BranchAndBound::can_mix() const {
  return target() < Candidates::kTooFull && candidates_.stages() <= Relaxation::kFewStages;
}

/// After improve(): raises the bound by the weights of a mixture. The last minimum is then that of
/// the best weights, by which filter() may go.
BranchAndBound::Verdict BranchAndBound::mix(Node& node, std::size_t minima) {
  if (!best_ || !can_mix()) return Verdict::Open;
  CutMixture mixture(candidates_, cut_bound_, target(), settings_.record ? &record_ : nullptr);
  for (const Cuts& cuts : responses_) mixture.add_cuts(cuts);
  relaxation_.each_weighted_row(
      [&](const BoundRow& row, double weight) { mixture.add_row(row, weight); });
  bool better = false;
  for (std::size_t k = 0; k < minima && node.bound < target(); ++k) {
    const auto found = mixture.next();
    if (!found) break;
    offer(found->cuts);
    if (const double bound = bound_of(*found, mixture.weights().sum); bound > node.bound) {
      better = true;
      node.bound = best_bound_ = bound;
      mixture.keep_weights();
      best_ = std::make_shared<const RowWeights>(mixture.weights());
    }
    if (mixture.value() - node.bound < kMixed * (target() - node.bound)) break;
  }
  other_work_ += mixture.work();
  spread_ = mixture.spread();
  if (better && settings_.record) {
    record_.node(node.record).bound = node.bound;
    record_.node(node.record).certified.weights.push_back(best_->certified);
  }
  if (node.bound >= target()) return close(node, node.bound);
  cut_bound_.minimum(best_->counts, best_->constant);
  last_sum_ = best_->sum;
  return Verdict::Open;
}

}  // namespace pfeife
