#include "planner/search/branch_and_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pfeife {
namespace {
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr std::int32_t kSmallModel = 64;  ///< segments; below, the proof always covers all cuts
constexpr std::size_t kNothing = ~std::size_t{0};
}  // namespace

BranchAndBound::BranchAndBound(Candidates& candidates, const Settings& settings)
    : candidates_(candidates),
      settings_(settings),
      cut_bound_(candidates.model(), candidates.costs(), candidates.live(),
                 candidates.memory_limit(), candidates.stages()),
      master_(candidates.stages(), candidates.model().load(0).back()),
      latency_(candidates.stages()),
      level_(candidates.stages()),
      weights_(candidates.stages()),
      fractional_(candidates.program().durations()),
      target_(kInfinite),
      closed_bound_(kInfinite) {
  const CutModel& model = candidates.model();
  const double work = std::max(1.0, model.load(0).back());
  double longest = 0;
  for (std::size_t s = 0; s < candidates.stages(); ++s) {
    const std::size_t kind = candidates.costs().kind(s);
    scale_.push_back(std::max(1.0, model.load(kind).back()) / work);
    std::array<double, kWorks> share{};
    for (std::size_t w = 0; w < kWorks; ++w)
      share[w] = model.time(kind, static_cast<Work>(w)).back() / work;
    share_.push_back(share);
    longest = std::max(longest, model.load(kind).back() + model.time(kind, Work::Optimizer).back() +
                                    4 * candidates.costs().action_overhead(s));
  }
  // Sums of weight * count * time stay below 2^53: counts up to the microbatches.
  const double most = 16 * longest * static_cast<double>(candidates.spec().microbatches + 1);
  weight_target_ = std::clamp(std::floor(9007199254740992.0 / (8 * most)), 1.0, 16777216.0);
}

bool BranchAndBound::Later::operator()(const Node& a, const Node& b) const {
  if (a.bound != b.bound) return a.bound > b.bound;
  if (a.depth != b.depth) return a.depth < b.depth;
  return a.id > b.id;
}

/// Returns the number of the node in the record.
std::size_t BranchAndBound::push(CutRegion region, double bound, std::uint32_t depth) {
  const std::size_t record = settings_.record ? record_.add() : 0;
  open_.push_back({std::move(region), bound, depth, next_id_++, record});
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
  return open_.empty() ? closed_bound_ : std::min(closed_bound_, open_.front().bound);
}

/// The smallest whole number of ns that `scaled` allows.
double BranchAndBound::least(double scaled) const {
  if (scaled <= 0) return 0;
  const auto sum = static_cast<std::int64_t>(weight_sum_);
  return static_cast<double>((static_cast<std::int64_t>(scaled) + sum - 1) / sum);
}

BranchAndBound::Verdict BranchAndBound::close(Node& node, double bound) {
  node.bound = std::min(bound, target());
  closed_bound_ = std::min(closed_bound_, node.bound);
  if (settings_.record) record_.node(node.record).bound = node.bound;
  return Verdict::Closed;
}

/// Tells the master what the present region says of loads and latencies.
void BranchAndBound::load_master() {
  forget_paths();
  const CutRegion& region = cut_bound_.region();
  const std::size_t stages = candidates_.stages();
  std::vector<double> low(stages), high(stages);
  for (std::size_t s = 0; s < stages; ++s)
    low[s] = region.low[s] / scale_[s], high[s] = region.high[s] / scale_[s];
  master_.set_box(low, high);
  if (paths_.empty())
    for (std::size_t i = 1; i < stages; ++i) latency_[i] = cut_bound_.least_latency(i);
  set_constants();
}

void BranchAndBound::set_constants() {
  for (std::size_t p = 0; p < paths_.size(); ++p) master_.set_constant(p, constant_of(paths_[p]));
  master_.price_basis();
}

/// Work and latencies at the cuts that the master's loads come closest to. The master then sees
/// them rise with the load from there, at the model's mean rates: with layers as different as they
/// are, rates alone mislead it. It only chooses weights, so nothing here must be exact.
void BranchAndBound::linearise() {
  const CutModel& model = candidates_.model();
  const CutRegion& region = cut_bound_.region();
  const std::vector<double>& load = model.load(0);
  const std::size_t stages = candidates_.stages();
  Cuts cuts(stages + 1, 0);
  cuts[stages] = model.last();
  double sum = 0;
  for (std::size_t i = 1; i < stages; ++i) {
    sum += master_.loads()[i - 1];
    auto near = std::ranges::lower_bound(load, sum);
    if (near != load.begin() && (near == load.end() || *near - sum > sum - *(near - 1))) --near;
    cuts[i] =
        std::clamp(static_cast<std::int32_t>(near - load.begin()), region.first[i], region.last[i]);
    cuts[i] = std::max(cuts[i], cuts[i - 1] + 1);
    latency_[i] = cut_bound_.sure_at(i, std::min(cuts[i], region.last[i]));
  }
  for (std::size_t s = 0; s < stages; ++s) {
    const std::size_t kind = candidates_.costs().kind(s);
    const auto begin = static_cast<std::size_t>(std::min(cuts[s], model.last()));
    const auto end = static_cast<std::size_t>(std::min(cuts[s + 1], model.last()));
    for (std::size_t w = 0; w < kWorks; ++w) {
      const std::vector<double>& prefix = model.time(kind, static_cast<Work>(w));
      level_[s][w] = prefix[end] - prefix[begin] - share_[s][w] * master_.loads()[s];
    }
  }
  set_constants();
}

/// Keeps the pool small: what is in the basis, and of the rest the youngest.
void BranchAndBound::forget_paths() {
  const std::size_t most = 6 * candidates_.stages() + 64;
  if (paths_.size() <= most) return;
  std::vector<bool> keep(paths_.size(), false);
  for (const std::size_t p : master_.basic_paths()) keep[p] = true;
  for (std::size_t p = paths_.size() - most / 2; p < paths_.size(); ++p) keep[p] = true;
  master_.keep_paths(keep);
  std::size_t kept = 0;
  for (std::size_t p = 0; p < keep.size(); ++p)
    if (keep[p]) {
      if (kept != p) paths_[kept] = std::move(paths_[p]), turns_[kept] = std::move(turns_[p]);
      ++kept;
    }
  paths_.resize(kept, PathCounts<std::int32_t>()), turns_.resize(kept);
}

double BranchAndBound::constant_of(const PathCounts<std::int32_t>& path) const {
  const CutCosts& costs = candidates_.costs();
  double sum = 0;
  for (std::size_t s = 0; s < candidates_.stages(); ++s) {
    sum += (path.work[0][s] + path.work[1][s]) * costs.action_overhead(s) +
           path.work[3][s] * costs.step_overhead(s);
    for (std::size_t w = 0; w < kWorks; ++w) sum += path.work[w][s] * level_[s][w];
    if (path.forward[s] > 0) sum += path.forward[s] * latency_[s].forward;
    if (path.backward[s] > 0) sum += path.backward[s] * latency_[s].backward;
  }
  return sum;
}

std::size_t BranchAndBound::add_path(PathCounts<std::int32_t> path, CertifiedPath turns) {
  std::vector<double> slope(candidates_.stages(), 0.0);
  for (std::size_t s = 0; s < slope.size(); ++s)
    for (std::size_t w = 0; w < kWorks; ++w) slope[s] += path.work[w][s] * share_[s][w];
  const std::size_t index = master_.add(slope, constant_of(path));
  paths_.push_back(std::move(path)), turns_.push_back(std::move(turns));
  return index;
}

/// The path that the present loads violate most, from the pool or the longest one there is.
std::size_t BranchAndBound::price_path(double tolerance) {
  double worst = tolerance;
  std::size_t found = kNothing;
  for (std::size_t p = 0; p < paths_.size(); ++p)
    if (const double violation = master_.violation(p); violation > worst)
      worst = violation, found = p;
  if (found != kNothing) return found;
  const Program& program = candidates_.program();
  const CutCosts& costs = candidates_.costs();
  const auto loads = master_.loads();
  for (std::size_t s = 0; s < candidates_.stages(); ++s) {
    for (std::size_t w = 0; w < kWorks; ++w)
      fractional_[program.work(static_cast<Work>(w), s)] = loads[s] * share_[s][w] + level_[s][w];
    fractional_[program.work(Work::Forward, s)] += costs.action_overhead(s);
    fractional_[program.work(Work::BackwardInput, s)] += costs.action_overhead(s);
    fractional_[program.work(Work::Optimizer, s)] += costs.step_overhead(s);
    const bool boundary = s > 0;
    fractional_[program.forward_latency(s)] =
        boundary && !cut_bound_.sure_forward(s) ? Program::kNever : latency_[s].forward;
    fractional_[program.backward_latency(s)] =
        boundary && !cut_bound_.sure_backward(s) ? Program::kNever : latency_[s].backward;
  }
  program.complete(fractional_.data(), 1);
  const double longest = program.makespan(fractional_, ends_);
  if (longest <= master_.value() + tolerance) return kNothing;
  return add_path(program.critical_path(fractional_, ends_),
                  settings_.record ? program.critical_turns(fractional_, ends_) : CertifiedPath());
}

bool BranchAndBound::solve_master(double tolerance, std::size_t pivots) {
  const double slack = 1e-9 * candidates_.model().load(0).back();
  for (std::size_t k = 0; k < pivots; ++k) {
    const PathMaster::Entered side = master_.enter_box(slack);
    if (side == PathMaster::Entered::Stuck) return false;
    if (side == PathMaster::Entered::Yes) continue;
    const std::size_t path = price_path(tolerance * std::max(1.0, master_.value()));
    if (path == kNothing) return true;
    if (!master_.enter_path(path)) return false;
  }
  return true;
}

/// The master's weights as whole numbers, summed to counts.
void BranchAndBound::weigh() {
  weights_ = PathCounts<double>(candidates_.stages());
  weight_sum_ = 0, weight_constant_ = 0;
  last_weights_ = {};
  const auto add = [&](std::size_t number, double weight) {
    const PathCounts<std::int32_t>& path = paths_[number];
    if (settings_.record)
      last_weights_.paths.push_back(
          {record_.path(turns_[number]), static_cast<std::int64_t>(weight)});
    weight_sum_ += weight;
    const auto sum = [&](std::vector<double>& out, const std::vector<std::int32_t>& counts) {
      for (std::size_t s = 0; s < out.size(); ++s) out[s] += weight * counts[s];
    };
    for (std::size_t w = 0; w < kWorks; ++w) sum(weights_.work[w], path.work[w]);
    sum(weights_.forward, path.forward), sum(weights_.backward, path.backward);
  };
  const auto basis = master_.weights();
  for (const auto& [path, weight] : basis)
    if (const double whole = std::round(weight * weight_target_); whole > 0) add(path, whole);
  if (weight_sum_ == 0) add(basis.empty() ? 0 : basis.front().path, 1);
  const CutCosts& costs = candidates_.costs();
  for (std::size_t s = 0; s < candidates_.stages(); ++s)
    weight_constant_ += (weights_.work[0][s] + weights_.work[1][s]) * costs.action_overhead(s) +
                        weights_.work[3][s] * costs.step_overhead(s);
}

bool BranchAndBound::offer(const Cuts& cuts) {
  const double time = candidates_.time(cuts);
  return time < target() && !candidates_.surely_too_full(cuts) && candidates_.offer(cuts, time);
}

BranchAndBound::Verdict BranchAndBound::improve(Node& node, std::size_t rounds) {
  last_weights_ = best_weights_ = {};
  const Verdict verdict = raise(node, rounds);
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

/// Raises the node's bound by rounds of master, minimum and the minimum's longest path.
BranchAndBound::Verdict BranchAndBound::raise(Node& node, std::size_t rounds) {
  responses_.clear();
  if (!cut_bound_.enter(node.region)) return close(node, target());
  load_master();
  for (std::size_t round = 0; round < rounds; ++round) {
    const double before = node.bound;
    const std::size_t pivots = 8 * candidates_.stages() + 64;
    solve_master(rooted_ ? 1e-4 : 1e-5, pivots);
    linearise();
    solve_master(rooted_ ? 1e-4 : 1e-5, pivots);
    weigh();
    const auto minimum = cut_bound_.minimum(weights_, weight_constant_);
    if (!minimum) return close(node, target());
    const double bound = std::floor(least(minimum->scaled) * settings_.inflation);
    if (bound > node.bound) node.bound = bound, best_weights_ = last_weights_;
    if (std::ranges::find(responses_, minimum->cuts) == responses_.end()) {
      responses_.push_back(minimum->cuts);
      offer(minimum->cuts);
    }
    if (node.bound >= target()) return close(node, node.bound);
    if (round + 1 == rounds) break;
    const bool slow = node.bound - before < 0.05 * (target() - node.bound);
    if (rooted_ && round > 0 && slow) break;
    PathCounts<std::int32_t> longest = candidates_.critical_path(minimum->cuts);
    if (!surely_exists(longest)) break;
    const std::size_t path =
        add_path(std::move(longest), settings_.record ? candidates_.last_turns() : CertifiedPath());
    if (master_.violation(path) <= 0 || !master_.enter_path(path)) break;
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

/// Two children: by the load on which the master's loads and the minima differ most, weighted by
/// what the load costs; by position if they do not differ.
void BranchAndBound::split(const Node& node) {
  const CutModel& model = candidates_.model();
  const CutRegion& region = cut_bound_.region();
  const auto loads = master_.loads();
  std::size_t stage = kNothing;
  double score = 0, threshold = 0;
  // Without a plan to beat nothing is closed by its bound: halve ranges until few cuts are left.
  const bool by_load = target() < kInfinite;
  for (std::size_t s = 0; by_load && s < candidates_.stages(); ++s) {
    const std::vector<double>& load = model.load(candidates_.costs().kind(s));
    double low = std::clamp(loads[s] * scale_[s], region.low[s], region.high[s]), high = low;
    double sum = low;
    for (const Cuts& cuts : responses_) {
      const double x =
          load[static_cast<std::size_t>(cuts[s + 1])] - load[static_cast<std::size_t>(cuts[s])];
      low = std::min(low, x), high = std::max(high, x), sum += x;
    }
    double price = 0;
    for (std::size_t w = 0; w < kWorks; ++w) price += weights_.work[w][s] * share_[s][w];
    const double cut = std::floor(sum / static_cast<double>(responses_.size() + 1));
    if (cut < region.low[s] || cut + 1 > region.high[s]) continue;
    const double worth = (high - low) * price / scale_[s];
    if (worth > score) score = worth, stage = s, threshold = cut;
  }
  CutRegion left = region, right = region;
  CertifiedNode certified;
  if (stage != kNothing && score > 1e-6 * weight_sum_ * node.bound) {
    left.high[stage] = threshold, right.low[stage] = threshold + 1;
    certified = {{},
                 CertifiedNode::Then::SplitLoad,
                 static_cast<std::uint32_t>(stage),
                 static_cast<std::int64_t>(threshold)};
  } else {
    std::size_t widest = 1;
    for (std::size_t i = 2; i < candidates_.stages(); ++i)
      if (region.last[i] - region.first[i] > region.last[widest] - region.first[widest]) widest = i;
    const std::int32_t middle = (region.first[widest] + region.last[widest]) / 2;
    left.last[widest] = middle, right.first[widest] = middle + 1;
    certified = {
        {}, CertifiedNode::Then::SplitPosition, static_cast<std::uint32_t>(widest), middle};
  }
  const std::size_t one = push(std::move(left), node.bound, node.depth + 1);
  const std::size_t other = push(std::move(right), node.bound, node.depth + 1);
  if (!settings_.record) return;
  ProofRecord::Node& written = record_.node(node.record);
  certified.weights = std::move(written.certified.weights);
  written.certified = std::move(certified), written.children = {one, other};
}

/// Every transfer on the path exists for all cuts of the root.
bool BranchAndBound::surely_exists(const PathCounts<std::int32_t>& path) const {
  for (std::size_t i = 1; i < candidates_.stages(); ++i)
    if ((path.forward[i] > 0 && !cut_bound_.sure_forward(i)) ||
        (path.backward[i] > 0 && !cut_bound_.sure_backward(i)))
      return false;
  return true;
}

/// A first path for the master: all that the first rank does.
void BranchAndBound::seed_master() {
  const Program& program = candidates_.program();
  master_.enter_path(add_path(program.rank_path(0), program.rank_turns(0)));
}

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

/// What certificates say of choose_least_share.
void BranchAndBound::record_least_load(const CutRegion& root) {
  if (least_share_ == 0) return;
  record_.least_load.clear();
  for (const double low : root.low) record_.least_load.push_back(static_cast<std::int64_t>(low));
}

/// In a model with branches a stage of very few layers may send nothing to the next one. So that
/// all transfers between neighbours surely exist, the proof is restricted to stages of at least a
/// small share of the mean load, as small as will do. If none will do, it covers all cuts and does
/// without the transfers that may not exist.
void BranchAndBound::choose_least_share(CutRegion& region) {
  const std::size_t stages = candidates_.stages();
  const CutRegion whole = region;
  for (const double share : {0.0, 0.002, 0.005, 0.01, 0.02, 0.05}) {
    region = whole;
    for (std::size_t s = 0; s < stages; ++s)
      region.low[s] =
          std::floor(share * candidates_.model().load(candidates_.costs().kind(s)).back() /
                     static_cast<double>(stages));
    if (!cut_bound_.enter(region)) break;
    cut_bound_.refresh_latencies();
    bool sure = true;
    for (std::size_t i = 1; i < stages; ++i)
      sure = sure && cut_bound_.sure_forward(i) && cut_bound_.sure_backward(i);
    least_share_ = share;
    if (sure) return;
  }
  region = whole;
  least_share_ = 0;
}

BranchAndBound::Verdict BranchAndBound::tighten_root(Node& root) {
  if (paths_.empty() && candidates_.model().last() > kSmallModel) {
    choose_least_share(root.region);
    record_least_load(root.region);
  }
  const auto microbatches = static_cast<double>(candidates_.spec().microbatches);
  const std::size_t rounds = candidates_.stages() <= 48 ? 6 : 2;  // the master is cubic in stages
  for (std::size_t round = 0; round < rounds; ++round) {
    if (target() < kInfinite)
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
    if (paths_.empty()) load_master(), seed_master();
    if (improve(root, rounds) == Verdict::Closed) return Verdict::Closed;
    if (target() < kInfinite) {
      cut_bound_.keep_filtered(true);
      const bool left = cut_bound_.filter((target() - 1) * weight_sum_);
      cut_bound_.keep_filtered(false);
      if (!left) return close(root, target());
    }
    root.region = cut_bound_.region();
    const bool same = root.region.first == old.first && root.region.last == old.last;
    if (round > 0 && same && root.bound <= before) break;
  }
  return Verdict::Open;
}

void BranchAndBound::run(std::size_t nodes, double target) {
  target_ = std::min(target_, target);
  for (std::size_t k = 0; k < nodes && !open_.empty(); ++k) {
    if (open_.front().bound >= this->target()) {
      closed_bound_ = std::min(closed_bound_, this->target());
      open_.clear();
      break;
    }
    Node node = pop();
    ++handled_;
    if (improve(node, 3) == Verdict::Closed) continue;
    if (this->target() < kInfinite) {
      if (!cut_bound_.filter((this->target() - 1) * weight_sum_)) {
        close(node, this->target());
        continue;
      }
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
