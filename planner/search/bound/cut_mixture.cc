#include "planner/search/bound/cut_mixture.h"

#include <algorithm>
#include <cmath>

namespace pfeife {
namespace {
constexpr double kTolerance = 1e-6;    ///< of the master, in its units
constexpr double kUnit = 0.01;         ///< of the length of a path
constexpr std::size_t kPivots = 4000;  ///< of one game
constexpr double kNothing = 0;
}  // namespace

CutMixture::CutMixture(Candidates& candidates, CutBound& cut_bound, double to_beat,
                       ProofRecord* record)
    : candidates_(candidates),
      cut_bound_(cut_bound),
      record_(record),
      weigher_(candidates, record),
      to_beat_(to_beat),
      unit_(std::max(1.0, kUnit * to_beat)),
      master_(1, 1),
      weights_{PathCounts<double>(candidates.stages())} {
  const double whole = 1;
  master_.set_box({&kNothing, 1}, {&whole, 1});
  for (std::size_t r = 0; r < candidates.live().ranks(); ++r)
    for (const LiveMoment& moment : cut_bound.moments(r)) limits_.push_back({r, &moment});
  const Program& program = candidates.program();  // a first row, which all cuts have
  add_row({program.rank_path(0), record != nullptr ? program.rank_turns(0) : CertifiedPath()}, 0);
}

/// As the bound sees them: transfers take what they surely take.
std::vector<double> CutMixture::durations(const Cuts& cuts) const {
  const Program& program = candidates_.program();
  const CutModel& model = candidates_.model();
  const CutCosts& costs = candidates_.costs();
  std::vector<double> found(program.durations(), 0.0);
  for (std::size_t s = 0; s < candidates_.stages(); ++s) {
    for (std::size_t w = 0; w < kWorks; ++w) {
      const auto work = static_cast<Work>(w);
      found[program.work(work, s)] = of_stage(model.time(costs.kind(s), work), cuts, s);
    }
    found[program.work(Work::Forward, s)] += costs.action_overhead(s);
    found[program.work(Work::BackwardInput, s)] += costs.action_overhead(s);
    found[program.work(Work::Optimizer, s)] += costs.step_overhead(s);
    if (s == 0) continue;
    const CutCosts::Latency latency = cut_bound_.latency_at(s, cuts[s]);
    found[program.forward_latency(s)] = latency.forward;
    found[program.backward_latency(s)] = latency.backward;
  }
  return found;
}

double CutMixture::length(const PathCounts<std::int32_t>& counts,
                          const std::vector<double>& durations) const {
  const Program& program = candidates_.program();
  double sum = 0;
  for (std::size_t s = 0; s < candidates_.stages(); ++s) {
    for (std::size_t w = 0; w < kWorks; ++w)
      sum += counts.work[w][s] * durations[program.work(static_cast<Work>(w), s)];
    if (counts.forward[s] > 0) sum += counts.forward[s] * durations[program.forward_latency(s)];
    if (counts.backward[s] > 0) sum += counts.backward[s] * durations[program.backward_latency(s)];
  }
  return sum;
}

std::vector<double> CutMixture::excess(const Cuts& cuts) const {
  std::vector<double> found;
  for (const auto& [rank, moment] : limits_)
    found.push_back(candidates_.live().held(candidates_.model(), *moment, cuts, rank) -
                    static_cast<double>(candidates_.memory_limit()[rank].value));
  return found;
}

std::size_t CutMixture::limit_of(const BoundRow& row) const {
  return static_cast<std::size_t>(std::ranges::find(limits_, row.moment, &Limit::moment) -
                                  limits_.begin());
}

/// In the master's units.
double CutMixture::slope(const BoundRow& row, const Column& column) const {
  if (!row.is_limit()) return (length(row.counts, column.durations) - to_beat_) / unit_;
  return column.excess[limit_of(row)] * weigher_.byte_scale(static_cast<std::size_t>(row.rank)) /
         unit_;
}

bool CutMixture::known(const Cuts& cuts) const {
  return std::ranges::find(columns_, cuts, &Column::cuts) != columns_.end();
}

void CutMixture::add_cuts(const Cuts& cuts) {
  if (known(cuts)) return;
  columns_.push_back({cuts, durations(cuts), excess(cuts)});
  std::vector<double> slopes;
  for (const Row& row : rows_) slopes.push_back(slope(row.row, columns_.back()));
  master_.add_stage(slopes, 0, 1);
}

void CutMixture::add_row(BoundRow row, double weight) {
  if (row.is_limit() && limit_of(row) == limits_.size()) return;  // of a moment forgotten since
  std::vector<double> slopes{0.0};                                // of the cuts that do not exist
  for (const Column& column : columns_) slopes.push_back(slope(row, column));
  work_ += 5.0 * static_cast<double>(columns_.size() * candidates_.stages());
  rows_.push_back({std::move(row), weight});
  master_.add(slopes, 0, rows_.back().row.is_limit());
  if (rows_.size() == 1) master_.enter_path(0);
}

/// The limit that the mean of the cuts exceeds most. False if the master knows that, or none is.
bool CutMixture::price_limit() {
  mean_.assign(limits_.size(), 0.0);
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (const double share = master_.loads()[c + 1]; share > 0)
      for (std::size_t k = 0; k < mean_.size(); ++k) mean_[k] += share * columns_[c].excess[k];
  for (std::size_t k = 0; k < mean_.size(); ++k) mean_[k] *= weigher_.byte_scale(limits_[k].rank);
  work_ += static_cast<double>(columns_.size() * limits_.size());
  const auto worst = std::ranges::max_element(mean_);
  if (worst == mean_.end() || *worst <= kTolerance * unit_) return false;
  const auto& [rank, moment] = limits_[static_cast<std::size_t>(worst - mean_.begin())];
  const auto same = [&moment = moment](const Row& row) { return row.row.moment == moment; };
  if (std::ranges::any_of(rows_, same)) return false;
  add_row(weigher_.limit(rank, *moment), 0);
  return true;
}

/// The longest path at the mean times. False if the master knows that none is longer.
bool CutMixture::price_path() {
  const Program& program = candidates_.program();
  mean_.assign(program.durations(), 0.0);
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (const double share = master_.loads()[c + 1]; share > 0)
      for (std::size_t k = 0; k < mean_.size(); ++k) mean_[k] += share * columns_[c].durations[k];
  for (std::size_t i = 1; i < candidates_.stages(); ++i) {
    if (!cut_bound_.always_forward(i)) mean_[program.forward_latency(i)] = Program::kNever;
    if (!cut_bound_.always_backward(i)) mean_[program.backward_latency(i)] = Program::kNever;
  }
  work_ += 5.0 * static_cast<double>(program.compute_nodes());
  program.complete(mean_.data(), 1);
  const double real = 1 - master_.loads()[0];  // the share of cuts that exist
  const double longest = (program.makespan(mean_, ends_) - real * to_beat_) / unit_;
  if (longest <= master_.value() + kTolerance) return false;
  add_row({program.critical_path(mean_, ends_),
           record_ != nullptr ? program.critical_turns(mean_, ends_) : CertifiedPath()},
          0);
  return true;
}

/// The game of what is known. False if the pivots did not suffice.
bool CutMixture::solve() {
  const auto inverse = static_cast<double>((columns_.size() + 1) * (columns_.size() + 1));
  const auto next = [&] {
    std::optional<std::size_t> row = master_.most_violated(kTolerance);
    if (!row && (price_limit() || price_path())) row = rows_.size() - 1;
    return row;
  };
  const auto spend = [&] {
    work_ += inverse + 0.2 * static_cast<double>(rows_.size() * columns_.size()) + 150;
  };
  return master_.solve(kTolerance, kPivots, next, spend) == PathMaster::End::Solved;
}

/// Whole numbers between the master's weights and the best.
void CutMixture::weigh(double share_of_best) {
  tried_.assign(rows_.size(), 0.0);
  for (std::size_t p = 0; p < rows_.size(); ++p) tried_[p] = share_of_best * rows_[p].weight;
  for (const auto& [row, weight] : master_.weights()) tried_[row] += (1 - share_of_best) * weight;
  std::vector<RowWeigher::Weighted> all;
  for (std::size_t p = 0; p < rows_.size(); ++p) all.push_back({&rows_[p].row, tried_[p]});
  weights_ = weigher_.weigh(all, weigher_.target());
}

std::optional<CutBound::Minimum> CutMixture::next() {
  if (ended_ || !solve()) return std::nullopt;
  value_ = to_beat_ + unit_ * master_.value();
  for (const double share : {0.5, 0.0}) {
    weigh(share);
    if (weights_.sum <= 0) return std::nullopt;
    auto minimum = cut_bound_.minimum(weights_.counts, weights_.constant);
    if (!minimum) return std::nullopt;
    ended_ = known(minimum->cuts);
    if (ended_ && share > 0) continue;  // better weights, if there are any, are farther away
    add_cuts(minimum->cuts);
    return minimum;
  }
  return std::nullopt;
}

std::vector<CutMixture::Spread> CutMixture::spread() const {
  const auto share = master_.loads().subspan(1);
  const double real = 1 - master_.loads()[0];
  std::vector<Spread> found;
  for (std::size_t s = 0; s < candidates_.stages() && real > kTolerance; ++s) {
    const std::vector<double>& sums = candidates_.model().load(candidates_.costs().kind(s));
    const auto load = [&](const Column& column) { return of_stage(sums, column.cuts, s); };
    Spread& stage = found.emplace_back();
    for (std::size_t c = 0; c < columns_.size(); ++c)
      stage.mean += share[c] / real * load(columns_[c]);
    for (std::size_t c = 0; c < columns_.size(); ++c)
      stage.distance += share[c] / real * std::abs(load(columns_[c]) - stage.mean);
  }
  return found;
}

void CutMixture::keep_weights() {
  tried_.resize(rows_.size(), 0.0);
  for (std::size_t p = 0; p < rows_.size(); ++p) rows_[p].weight = tried_[p];
}

}  // namespace pfeife
