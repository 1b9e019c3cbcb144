#include "planner/search/proof/branch_and_bound.h"

#include <algorithm>
#include <cmath>

#include "planner/search/price/numbers.h"

namespace pfeife {
namespace {
constexpr std::size_t kNothing = ~std::size_t{0};
constexpr std::size_t kMixturesAtNode = 30;  ///< minima for the weights, where memory binds
}  // namespace

BranchAndBound::BranchAndBound(Candidates& candidates, const Settings& settings)
    : candidates_(candidates),
      settings_(settings),
      cut_bound_(candidates.model(), candidates.costs(), candidates.live(),
                 candidates.memory_limit(), candidates.stages()),
      own_record_(std::make_unique<ProofRecord>()),
      record_(*own_record_),
      relaxation_(candidates, cut_bound_, settings.record ? &record_ : nullptr),
      target_(kInfinite),
      closed_bound_(kInfinite) {}

bool BranchAndBound::Later::operator()(const Node& a, const Node& b) const {
  if (a.bound != b.bound) return a.bound > b.bound;
  if (a.depth != b.depth) return a.depth < b.depth;
  return a.id > b.id;
}

/// Returns the number of the node in the record.
std::size_t BranchAndBound::push(CutRegion region, const Node& parent) {
  const std::size_t record = settings_.record ? record_.add() : 0;
  open_.push_back({std::move(region), parent.bound, parent.depth + 1, next_id_++, record, best_});
  std::ranges::push_heap(open_, Later{});
  return record;
}

BranchAndBound::Node BranchAndBound::pop() {
  std::ranges::pop_heap(open_, Later{});
  Node node = std::move(open_.back());
  open_.pop_back();
  return node;
}

double BranchAndBound::bound() const {
  if (!rooted_) return 0;
  const double least = open_.empty() ? closed_bound_ : std::min(closed_bound_, open_.front().bound);
  return least < Candidates::kTooFull ? least : kInfinite;
}

/// The smallest whole number of ns that `scaled` allows.
double BranchAndBound::least(double scaled, double weight_sum) const {
  if (scaled <= 0) return 0;
  const auto sum = static_cast<std::int64_t>(weight_sum);
  return static_cast<double>((static_cast<std::int64_t>(scaled) + sum - 1) / sum);
}

BranchAndBound::Verdict BranchAndBound::close(Node& node, double bound) {
  node.bound = std::min(bound, target());
  closed_bound_ = std::min(closed_bound_, node.bound);
  if (settings_.record) record_.node(node.record).bound = node.bound;
  return Verdict::Closed;
}

bool BranchAndBound::offer(const Cuts& cuts) {
  if (candidates_.excess(cuts) > 0) return false;
  double time = candidates_.search_time(cuts);
  if (time >= target()) return false;
  if (candidates_.is_large()) time = candidates_.time(cuts);
  return candidates_.offer(cuts, time);
}

/// The master's loads as cuts: unlike the minimum's they respect the limits, nearly.
void BranchAndBound::offer_nearest() {
  const Cuts& cuts = relaxation_.nearest();
  if (std::ranges::adjacent_find(cuts, std::ranges::greater_equal{}) != cuts.end()) return;
  nearest_ = cuts;
  offer(cuts);
}

BranchAndBound::Verdict BranchAndBound::improve(Node& node, std::size_t rounds) {
  last_weights_ = best_weights_ = {};
  const Verdict verdict = raise(node, rounds);
  if (verdict == Verdict::Open && best_ && last_bound_ < best_bound_) {  // filters by the best
    cut_bound_.minimum(best_->counts, best_->constant);
    last_weights_ = best_->certified, last_sum_ = best_->sum;
  }
  if (settings_.record) record_weights(node);
  return verdict;
}

/// The weights that filter, and those that raised the bound; none at all see an empty region.
void BranchAndBound::record_weights(Node& node) {
  ProofRecord::Node& written = record_.node(node.record);
  written.bound = node.bound;
  if (best_weights_ != last_weights_) written.certified.weights.push_back(best_weights_);
  written.certified.weights.push_back(last_weights_);
}

/// The smallest weighted sum, by the master's weights. It takes memory for linear in the loads, and
/// finds contradictions where there are none: then the limits weigh as much as raises the bound.
std::optional<CutBound::Minimum> BranchAndBound::minimum() {
  relaxation_.weigh();
  const auto found = [&] {
    return cut_bound_.minimum(relaxation_.weights().counts, relaxation_.weights().constant);
  };
  auto minimum = found();
  if (!minimum || relaxation_.weights().sum > 0 || minimum->scaled > 0) return minimum;
  constexpr double kLeast = 1.0 / 64, kMost = 64;  // as paths weigh 1 together
  double best = -1, chosen = 0;
  for (double more = 0; more < kMost; more = std::max(kLeast, 2 * more)) {
    relaxation_.weigh_despite(more);
    minimum = found();
    const double bound = least(minimum->scaled, relaxation_.weights().sum);
    if (bound <= best) break;
    best = bound, chosen = more;
    if (bound >= target()) return minimum;
  }
  relaxation_.weigh_despite(chosen);
  return found();
}

double BranchAndBound::bound_of(const CutBound::Minimum& minimum, double weight_sum) const {
  return std::floor(least(minimum.scaled, weight_sum));
}

/// Keeps and tries the cuts of a minimum if they are new.
void BranchAndBound::respond(const Cuts& cuts) {
  if (std::ranges::find(responses_, cuts) != responses_.end()) return;
  responses_.push_back(cuts);
  offer(cuts);
}

/// Begins with the weights that were best around the node: the master's first ones may be worse.
BranchAndBound::Verdict BranchAndBound::inherit(Node& node) {
  best_ = node.weights;
  best_bound_ = 0;
  if (!best_) return Verdict::Open;
  last_weights_ = best_->certified;
  const auto minimum = cut_bound_.minimum(best_->counts, best_->constant);
  if (!minimum) return close(node, target());
  best_bound_ = bound_of(*minimum, best_->sum);
  if (best_bound_ > node.bound) node.bound = best_bound_, best_weights_ = last_weights_;
  respond(minimum->cuts);
  return node.bound >= target() ? close(node, node.bound) : Verdict::Open;
}

/// How exact the master is to be, relative to its value: nothing is gained by digits far below what
/// the node's bound lacks.
double BranchAndBound::tolerance(const Node& node) const {
  constexpr double kRoot = 1e-5, kMost = 3e-3, kOfMissing = 0.2;
  if (!rooted_) return kRoot;
  return std::clamp(kOfMissing * (target() / node.bound - 1), kRoot, kMost);
}

/// Raises the node's bound by rounds of master, minimum and the minimum's longest path.
BranchAndBound::Verdict BranchAndBound::raise(Node& node, std::size_t rounds) {
  responses_.clear(), spread_.clear();
  if (!cut_bound_.enter(node.region)) return close(node, target());
  relaxation_.enter();
  if (inherit(node) == Verdict::Closed) return Verdict::Closed;
  const double tolerance = this->tolerance(node);
  for (std::size_t round = 0; round < rounds; ++round) {
    const double before = node.bound;
    relaxation_.solve(tolerance);
    relaxation_.linearise();
    relaxation_.solve(tolerance);
    const auto minimum = this->minimum();
    last_weights_ = relaxation_.weights().certified, last_sum_ = relaxation_.weights().sum;
    if (!minimum || last_sum_ == 0) return close(node, target());  // limits alone exclude all
    last_bound_ = bound_of(*minimum, last_sum_);
    if (last_bound_ > best_bound_) {
      best_ = std::make_shared<const RowWeights>(relaxation_.weights());
      best_bound_ = last_bound_;
    }
    if (last_bound_ > node.bound) node.bound = last_bound_, best_weights_ = last_weights_;
    respond(minimum->cuts);
    if (round == 0) offer_nearest();
    if (node.bound >= target()) return close(node, node.bound);
    if (round + 1 == rounds) break;
    const bool slow = node.bound - before < 0.05 * (target() - node.bound);
    if (rooted_ && round > 0 && slow) break;
    if (!relaxation_.learn(minimum->cuts)) break;
  }
  return Verdict::Open;
}

/// Tries all cuts of the present region if they are few. True if it did.
bool BranchAndBound::enumerate() {
  const std::size_t stages = candidates_.stages();
  std::size_t count = 1;
  std::vector<std::vector<std::int32_t>> positions(stages);
  for (std::size_t i = 1; i < stages; ++i) {
    positions[i] = cut_bound_.positions(i);
    count *= positions[i].size();
    if (count > settings_.enumerate) return false;
  }
  std::vector<Cuts> all;
  Cuts cuts(stages + 1, 0);
  cuts[stages] = candidates_.model().last();
  const auto extend = [&](auto&& self, std::size_t i) -> void {
    if (i == stages) {
      if (cuts[stages - 1] < cuts[stages]) all.push_back(cuts);
      return;
    }
    for (const std::int32_t q : positions[i])
      if (q > cuts[i - 1]) cuts[i] = q, self(self, i + 1);
  };
  extend(extend, 1);
  std::vector<double> times;
  candidates_.times(all, times, target());
  for (std::size_t k = 0; k < all.size(); ++k)
    if (times[k] < target() && !candidates_.surely_too_full(all[k]))
      candidates_.offer(all[k], times[k]);
  return true;
}

/// Where to split the load of a stage, and what that promises. Half way between the master's load
/// and the minima's: how far they disagree says how far both halves are pushed, more than the
/// spread of the minima alone. Where there is a mixture, at its mean: no half has all of it.
BranchAndBound::Threshold BranchAndBound::threshold(std::size_t s) const {
  if (!spread_.empty())
    return {std::floor(spread_[s].mean), spread_[s].distance * relaxation_.price(*best_, s)};
  const CutRegion& region = cut_bound_.region();
  const std::vector<double>& load = candidates_.model().load(candidates_.costs().kind(s));
  const double solved =
      std::clamp(relaxation_.loads()[s] * relaxation_.scale(s), region.low[s], region.high[s]);
  double sum = solved;
  for (const Cuts& cuts : responses_) sum += of_stage(load, cuts, s);
  const double at = std::floor(sum / static_cast<double>(responses_.size() + 1));
  return {at, std::abs(solved - at) * relaxation_.price(relaxation_.weights(), s)};
}

/// Two children: by the load whose threshold promises most; by position if none promises anything.
void BranchAndBound::split(const Node& node) {
  const CutRegion& region = cut_bound_.region();
  std::size_t stage = kNothing;
  Threshold best;
  // Without a plan to beat nothing is closed by its bound: halve ranges until few cuts are left.
  const bool by_load = target() < Candidates::kTooFull;
  for (std::size_t s = 0; by_load && s < candidates_.stages(); ++s) {
    const Threshold found = threshold(s);
    if (found.at < region.low[s] || found.at + 1 > region.high[s]) continue;
    if (found.worth > best.worth) best = found, stage = s;
  }
  CutRegion left = region, right = region;
  CertifiedNode certified;
  if (stage != kNothing && best.worth > 1e-6 * last_sum_ * node.bound) {
    left.high[stage] = best.at, right.low[stage] = best.at + 1;
    certified = {{},
                 CertifiedNode::Then::SplitLoad,
                 static_cast<std::uint32_t>(stage),
                 static_cast<std::int64_t>(best.at)};
  } else {
    std::size_t widest = 1;
    for (std::size_t i = 2; i < candidates_.stages(); ++i)
      if (region.last[i] - region.first[i] > region.last[widest] - region.first[widest]) widest = i;
    const std::int32_t middle = (region.first[widest] + region.last[widest]) / 2;
    left.last[widest] = middle, right.first[widest] = middle + 1;
    certified = {{}, CertifiedNode::Then::SplitEnd, static_cast<std::uint32_t>(widest - 1), middle};
  }
  const std::size_t left_child = push(std::move(left), node);
  const std::size_t right_child = push(std::move(right), node);
  if (!settings_.record) return;
  ProofRecord::Node& written = record_.node(node.record);
  certified.weights = std::move(written.certified.weights);
  written.certified = std::move(certified), written.children = {left_child, right_child};
}

void BranchAndBound::run(std::size_t nodes, double target, double most) {
  target_ = std::min(target_, target);
  const double enough = candidates_.work_on_reserved() + most;
  for (std::size_t k = 0; k < nodes && !open_.empty(); ++k) {
    if (candidates_.work_on_reserved() >= enough) break;
    if (open_.front().bound >= this->target()) {
      closed_bound_ = std::min(closed_bound_, this->target());
      open_.clear();
      break;
    }
    Node node = pop();
    ++handled_;
    if (improve(node, 3) == Verdict::Closed) continue;
    if (cut_bound_.limited() && mix(node, kMixturesAtNode) == Verdict::Closed) continue;
    if (!cut_bound_.filter((this->target() - 1) * last_sum_)) {
      close(node, this->target());
      continue;
    }
    if (enumerate()) {
      if (settings_.record) record_.node(node.record).certified.then = CertifiedNode::Then::Each;
      closed_bound_ = std::min(closed_bound_, this->target());
    } else {
      split(node);
    }
  }
}

}  // namespace pfeife
