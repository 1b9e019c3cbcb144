#include "planner/search/bound/relaxation.h"

#include <algorithm>
#include <cmath>

namespace pfeife {
namespace {
constexpr double kContradiction = 9007199254740992.0;  ///< as large as numbers allow
}  // namespace

Relaxation::Relaxation(Candidates& candidates, CutBound& cut_bound, ProofRecord* record)
    : candidates_(candidates),
      cut_bound_(cut_bound),
      record_(record),
      weigher_(candidates, record),
      stages_(candidates.stages()),
      master_(stages_, candidates.model().load(0).back()),
      share_(stages_),
      level_(stages_),
      latency_(stages_),
      weights_{PathCounts<double>(stages_)},
      fractional_(candidates.program().durations()) {
  const CutModel& model = candidates.model();
  const double work = std::max(1.0, model.load(0).back());
  for (std::size_t s = 0; s < stages_; ++s) {
    scale_.push_back(std::max(1.0, model.load(candidates.costs().kind(s)).back()) / work);
    for (std::size_t a = 0; a < kAmounts; ++a) share_[s][a] = prefix(a, s).back() / work;
  }
}

const std::vector<double>& Relaxation::prefix(std::size_t amount, std::size_t stage) const {
  const CutModel& model = candidates_.model();
  return amount < kWorks ? model.time(candidates_.costs().kind(stage), static_cast<Work>(amount))
                         : model.held(static_cast<Hold>(amount - kWorks));
}

void Relaxation::take_rows(const Relaxation& other) {
  master_ = other.master_, rows_ = other.rows_;
  level_ = other.level_, latency_ = other.latency_, nearest_ = other.nearest_;
}

/// Tells the master what the present region says of loads and latencies.
void Relaxation::enter() {
  forget();
  contradiction_ = false;
  const CutRegion& region = cut_bound_.region();
  std::vector<double> low(stages_), high(stages_);
  for (std::size_t s = 0; s < stages_; ++s)
    low[s] = region.low[s] / scale_[s], high[s] = region.high[s] / scale_[s];
  master_.set_box(low, high);
  if (!rows_.empty()) return master_.price_basis();  // constants know loads and latencies already
  for (std::size_t i = 1; i < stages_; ++i) latency_[i] = cut_bound_.least_latency(i);
  seed();
}

/// A first path for the master: all that the first rank does.
void Relaxation::seed() {
  const Program& program = candidates_.program();
  master_.enter_path(add({program.rank_path(0), program.rank_turns(0)}));
}

void Relaxation::set_constants() {
  for (std::size_t p = 0; p < rows_.size(); ++p) master_.set_constant(p, constant_of(rows_[p]));
  master_.price_basis();
}

/// With layers as different as they are, mean rates alone mislead the master.
void Relaxation::linearise() {
  const CutModel& model = candidates_.model();
  const CutRegion& region = cut_bound_.region();
  const std::vector<double>& load = model.load(0);
  Cuts cuts(stages_ + 1, 0);
  cuts[stages_] = model.last();
  double sum = 0;
  for (std::size_t i = 1; i < stages_; ++i) {
    sum += master_.loads()[i - 1];
    auto nearest = std::ranges::lower_bound(load, sum);
    if (nearest != load.begin() && (nearest == load.end() || *nearest - sum > sum - *(nearest - 1)))
      --nearest;
    cuts[i] = std::clamp(static_cast<std::int32_t>(nearest - load.begin()), region.first[i],
                         region.last[i]);
    cuts[i] = std::max(cuts[i], cuts[i - 1] + 1);
    latency_[i] = cut_bound_.latency_at(i, std::min(cuts[i], region.last[i]));
  }
  for (std::size_t s = 0; s < stages_; ++s) {
    const auto begin = static_cast<std::size_t>(std::min(cuts[s], model.last()));
    const auto end = static_cast<std::size_t>(std::min(cuts[s + 1], model.last()));
    for (std::size_t a = 0; a < kAmounts; ++a) {
      const std::vector<double>& sums = prefix(a, s);
      level_[s][a] = sums[end] - sums[begin] - share_[s][a] * master_.loads()[s];
    }
  }
  nearest_ = std::move(cuts);
  set_constants();
}

/// Keeps the pool small: what is in the basis, and of the rest the youngest.
void Relaxation::forget() {
  const std::size_t most = 6 * stages_ + 64;
  if (rows_.size() <= most) return;
  std::vector<bool> keep(rows_.size(), false);
  for (const std::size_t p : master_.basic_paths()) keep[p] = true;
  for (std::size_t p = rows_.size() - most / 2; p < rows_.size(); ++p) keep[p] = true;
  master_.keep_paths(keep);
  std::size_t kept = 0;
  for (std::size_t p = 0; p < keep.size(); ++p)
    if (keep[p]) {
      if (kept != p) rows_[kept] = std::move(rows_[p]);
      ++kept;
    }
  rows_.resize(kept);
}

double Relaxation::constant_of(const BoundRow& row) const {
  const CutCosts& costs = candidates_.costs();
  const PathCounts<std::int32_t>& counts = row.counts;
  double sum = 0;
  if (row.is_limit()) {
    const auto rank = static_cast<std::size_t>(row.rank);
    for (const std::size_t s : candidates_.live().stages(rank))
      for (std::size_t a = kWorks; a < kAmounts; ++a) sum += count(counts, a)[s] * level_[s][a];
    sum += temporary(rank, *row.moment);
    return (sum - static_cast<double>(candidates_.memory_limit()[rank].value)) *
           weigher_.byte_scale(rank);
  }
  for (std::size_t s = 0; s < stages_; ++s) {
    sum += (counts.work[0][s] + counts.work[1][s]) * costs.action_overhead(s) +
           counts.work[3][s] * costs.step_overhead(s);
    for (std::size_t w = 0; w < kWorks; ++w) sum += counts.work[w][s] * level_[s][w];
    if (counts.forward[s] > 0) sum += counts.forward[s] * latency_[s].forward;
    if (counts.backward[s] > 0) sum += counts.backward[s] * latency_[s].backward;
  }
  return sum;
}

/// The temporary of what runs at a moment, if the cuts are the nearest.
double Relaxation::temporary(std::size_t rank, const LiveMoment& moment) const {
  if (nearest_.empty()) return 0;
  const std::size_t s = candidates_.live().stages(rank)[static_cast<std::size_t>(moment.running)];
  const std::int32_t last = candidates_.model().last();
  return candidates_.model().temporary(moment.op, std::min(nearest_[s], last),
                                       std::min(nearest_[s + 1], last));
}

std::size_t Relaxation::add(BoundRow row) {
  std::vector<double> slope(stages_, 0.0);
  for (std::size_t a = 0; a < kAmounts; ++a)
    for (std::size_t s = 0; s < stages_; ++s) slope[s] += count(row.counts, a)[s] * share_[s][a];
  if (row.is_limit())
    for (double& x : slope) x *= weigher_.byte_scale(static_cast<std::size_t>(row.rank));
  rows_.push_back(std::move(row));
  return master_.add(slope, constant_of(rows_.back()), rows_.back().is_limit());
}

std::size_t Relaxation::add_limit(std::size_t rank, const LiveMoment& moment) {
  for (std::size_t p = 0; p < rows_.size(); ++p)
    if (rows_[p].moment == &moment) return p;
  return add(weigher_.limit(rank, moment));
}

/// The limit that the present loads break most.
std::optional<std::size_t> Relaxation::worst_limit(double tolerance) {
  const LiveMemory& live = candidates_.live();
  const auto loads = master_.loads();
  double worst = tolerance;
  std::size_t rank = 0;
  const LiveMoment* found = nullptr;
  for (std::size_t r = 0; r < live.ranks(); ++r) {
    const std::vector<std::size_t>& stages = live.stages(r);
    for (const LiveMoment& moment : cut_bound_.moments(r)) {
      double bytes =
          temporary(r, moment) - static_cast<double>(candidates_.memory_limit()[r].value);
      for (std::size_t k = 0; k < stages.size(); ++k) {
        const std::size_t s = stages[k];
        const auto held = [&](std::size_t h) {
          return loads[s] * share_[s][kWorks + h] + level_[s][kWorks + h];
        };
        bytes += held(0) + moment.saved[k] * held(1) + moment.weight_saved[k] * held(2);
      }
      if (bytes * weigher_.byte_scale(r) > worst)
        worst = bytes * weigher_.byte_scale(r), rank = r, found = &moment;
    }
  }
  if (found == nullptr) return std::nullopt;
  return add_limit(rank, *found);
}

/// The row that the present loads violate most: of the pool, a limit, or the longest path there is.
std::optional<std::size_t> Relaxation::price_row(double tolerance) {
  work_ += 0.2 * static_cast<double>(rows_.size() * stages_);
  if (const auto row = master_.most_violated(tolerance)) return row;
  if (const auto limit = worst_limit(tolerance)) return limit;
  const Program& program = candidates_.program();
  const CutCosts& costs = candidates_.costs();
  const auto loads = master_.loads();
  for (std::size_t s = 0; s < stages_; ++s) {
    for (std::size_t w = 0; w < kWorks; ++w)
      fractional_[program.work(static_cast<Work>(w), s)] = loads[s] * share_[s][w] + level_[s][w];
    fractional_[program.work(Work::Forward, s)] += costs.action_overhead(s);
    fractional_[program.work(Work::BackwardInput, s)] += costs.action_overhead(s);
    fractional_[program.work(Work::Optimizer, s)] += costs.step_overhead(s);
    const bool boundary = s > 0;
    fractional_[program.forward_latency(s)] =
        boundary && !cut_bound_.always_forward(s) ? Program::kNever : latency_[s].forward;
    fractional_[program.backward_latency(s)] =
        boundary && !cut_bound_.always_backward(s) ? Program::kNever : latency_[s].backward;
  }
  work_ += 5.0 * static_cast<double>(program.compute_nodes());
  program.complete(fractional_.data(), 1);
  const double longest = program.makespan(fractional_, ends_);
  if (longest <= master_.value() + tolerance) return std::nullopt;
  return add({program.critical_path(fractional_, ends_),
              record_ ? program.critical_turns(fractional_, ends_) : CertifiedPath()});
}

void Relaxation::solve(double tolerance) {
  const double slack = 1e-9 * candidates_.model().load(0).back();
  const auto inverse = static_cast<double>((stages_ + 1) * (stages_ + 1));
  const std::size_t pivots = (stages_ <= kFewStages ? 32 : 8) * stages_ + 64;
  const PathMaster::End end = master_.solve(
      slack, pivots, [&] { return price_row(tolerance * std::max(1.0, master_.value())); },
      [&] { work_ += inverse + 150; });
  contradiction_ = end == PathMaster::End::Stuck && !master_.contradiction().empty();
}

double Relaxation::price(const RowWeights& weights, std::size_t s) const {
  double price = 0;
  for (std::size_t w = 0; w < kWorks; ++w) price += weights.counts.work[w][s] * share_[s][w];
  for (std::size_t h = 0; h < kHolds; ++h)
    price += weights.counts.held[h][s] * share_[s][kWorks + h];
  return price / scale_[s];
}

void Relaxation::weigh(const std::vector<PathMaster::Weight>& weights, double factor) {
  std::vector<RowWeigher::Weighted> rows;
  for (const auto& [number, weight] : weights) rows.push_back({&rows_[number], weight});
  weights_ = weigher_.weigh(rows, factor);
}

void Relaxation::weigh() {
  if (!contradiction_) return weigh_despite(0);
  weigh(master_.contradiction(), kContradiction);
}

void Relaxation::weigh_despite(double more) {
  std::vector<PathMaster::Weight> all = master_.weights();
  if (more > 0)
    for (const auto& [path, weight] : master_.contradiction()) all.push_back({path, more * weight});
  weigh(all, weigher_.target());
  if (weights_.sum > 0) return;
  // Some path must count: there always is one.
  const auto path = std::ranges::find_if_not(rows_, &BoundRow::is_limit);
  all.push_back({static_cast<std::size_t>(path - rows_.begin()), 1 / weigher_.target()});
  weigh(all, weigher_.target());
}

/// Every transfer on the path exists for all cuts of the root.
bool Relaxation::always_exists(const PathCounts<std::int32_t>& path) const {
  for (std::size_t i = 1; i < stages_; ++i)
    if ((path.forward[i] > 0 && !cut_bound_.always_forward(i)) ||
        (path.backward[i] > 0 && !cut_bound_.always_backward(i)))
      return false;
  return true;
}

bool Relaxation::learn(const Cuts& cuts) {
  bool learnt = false;
  const auto learn_row = [&](std::size_t row) {
    learnt = (master_.violation(row) > 0 && master_.enter_path(row)) || learnt;
  };
  double worst = 0;
  std::size_t rank = 0;
  const LiveMoment* broken = nullptr;
  for (std::size_t r = 0; r < candidates_.live().ranks(); ++r) {
    for (const LiveMoment& moment : cut_bound_.moments(r)) {
      const double excess = candidates_.live().held(candidates_.model(), moment, cuts, r) -
                            static_cast<double>(candidates_.memory_limit()[r].value);
      if (excess > worst) worst = excess, rank = r, broken = &moment;
    }
  }
  if (broken != nullptr) learn_row(add_limit(rank, *broken));
  PathCounts<std::int32_t> longest = candidates_.critical_path(cuts);
  if (always_exists(longest))
    learn_row(add({std::move(longest), record_ ? candidates_.last_turns() : CertifiedPath()}));
  return learnt;
}

}  // namespace pfeife
