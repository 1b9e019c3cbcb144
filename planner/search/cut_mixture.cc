#include "planner/search/cut_mixture.h"

#include <algorithm>
#include <cmath>

namespace pfeife {
namespace {
constexpr double kTolerance = 1e-6;    ///< of the master, in its units
constexpr double kUnit = 0.01;         ///< of the length of a path
constexpr std::size_t kPivots = 4000;  ///< of one game
}  // namespace

CutMixture::CutMixture(Candidates& candidates, CutBound& cut_bound, double weight_sum,
                       ProofRecord* record)
    : candidates_(candidates),
      cut_bound_(cut_bound),
      record_(record),
      target_sum_(weight_sum),
      master_(0, 1) {}

/// As the bound sees them: transfers take what they surely take.
std::vector<double> CutMixture::durations(const Cuts& cuts) const {
  const Program& program = candidates_.program();
  const CutModel& model = candidates_.model();
  const CutCosts& costs = candidates_.costs();
  std::vector<double> found(program.durations(), 0.0);
  for (std::size_t s = 0; s < candidates_.stages(); ++s) {
    for (std::size_t w = 0; w < kWorks; ++w) {
      const std::vector<double>& sums = model.time(costs.kind(s), static_cast<Work>(w));
      found[program.work(static_cast<Work>(w), s)] =
          sums[static_cast<std::size_t>(cuts[s + 1])] - sums[static_cast<std::size_t>(cuts[s])];
    }
    found[program.work(Work::Forward, s)] += costs.action_overhead(s);
    found[program.work(Work::BackwardInput, s)] += costs.action_overhead(s);
    found[program.work(Work::Optimizer, s)] += costs.step_overhead(s);
    if (s == 0) continue;
    const CutCosts::Latency sure = cut_bound_.sure_at(s, cuts[s]);
    found[program.forward_latency(s)] = sure.forward;
    found[program.backward_latency(s)] = sure.backward;
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

bool CutMixture::known(const Cuts& cuts) const {
  return std::ranges::find(columns_, cuts, &Column::cuts) != columns_.end();
}

void CutMixture::add_cuts(const Cuts& cuts) {
  if (known(cuts)) return;
  columns_.push_back({cuts, durations(cuts)});
  std::vector<double> slopes;
  for (const Path& path : paths_)
    slopes.push_back(scaled(length(path.counts, columns_.back().durations)));
  master_.add_stage(slopes, 0, 1);
}

void CutMixture::add_path(Path path) {
  if (paths_.empty()) {
    base_ = length(path.counts, columns_.front().durations);
    unit_ = std::max(1.0, kUnit * base_);
  }
  std::vector<double> slopes;
  for (const Column& column : columns_)
    slopes.push_back(scaled(length(path.counts, column.durations)));
  work_ += 5.0 * static_cast<double>(columns_.size() * candidates_.stages());
  paths_.push_back(std::move(path));
  master_.add(slopes, 0);
  if (paths_.size() == 1) master_.enter_path(0);
}

/// The longest path at the mean times. False if the master knows that none is longer.
bool CutMixture::price_path() {
  const Program& program = candidates_.program();
  mean_.assign(program.durations(), 0.0);
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (const double share = master_.loads()[c]; share > 0)
      for (std::size_t k = 0; k < mean_.size(); ++k) mean_[k] += share * columns_[c].durations[k];
  for (std::size_t i = 1; i < candidates_.stages(); ++i) {
    if (!cut_bound_.sure_forward(i)) mean_[program.forward_latency(i)] = Program::kNever;
    if (!cut_bound_.sure_backward(i)) mean_[program.backward_latency(i)] = Program::kNever;
  }
  work_ += 5.0 * static_cast<double>(program.compute_nodes());
  program.complete(mean_.data(), 1);
  const double longest = program.makespan(mean_, ends_);
  if (!paths_.empty() && scaled(longest) <= master_.value() + kTolerance) return false;
  add_path({program.critical_path(mean_, ends_),
            record_ != nullptr ? program.critical_turns(mean_, ends_) : CertifiedPath(), 0});
  return true;
}

/// The game of what is known. False if the pivots did not suffice.
bool CutMixture::solve() {
  const auto inverse = static_cast<double>((columns_.size() + 1) * (columns_.size() + 1));
  for (std::size_t k = 0; k < kPivots; ++k) {
    work_ += inverse + 0.2 * static_cast<double>(paths_.size() * columns_.size()) + 150;
    const PathMaster::Entered side = master_.enter_box(kTolerance);
    if (side == PathMaster::Entered::Yes) continue;
    if (side == PathMaster::Entered::Stuck) return false;
    std::optional<std::size_t> path = master_.most_violated(kTolerance);
    if (!path && !price_path()) return true;
    if (!master_.enter_path(path ? *path : paths_.size() - 1)) return false;
  }
  return false;
}

/// Whole numbers between the master's weights and the best.
void CutMixture::weigh(double share_of_best) {
  const CutCosts& costs = candidates_.costs();
  tried_.assign(paths_.size(), 0.0);
  for (std::size_t p = 0; p < paths_.size(); ++p) tried_[p] = share_of_best * paths_[p].weight;
  for (const auto& [path, weight] : master_.weights()) tried_[path] += (1 - share_of_best) * weight;
  weights_ = {PathCounts<double>(candidates_.stages()), 0, 0, {}};
  for (std::size_t p = 0; p < paths_.size(); ++p) {
    const double whole = std::round(tried_[p] * target_sum_);
    if (whole <= 0) continue;
    const PathCounts<std::int32_t>& counts = paths_[p].counts;
    weights_.sum += whole;
    for (std::size_t s = 0; s < candidates_.stages(); ++s) {
      for (std::size_t w = 0; w < kWorks; ++w)
        weights_.counts.work[w][s] += whole * counts.work[w][s];
      weights_.counts.forward[s] += whole * counts.forward[s];
      weights_.counts.backward[s] += whole * counts.backward[s];
      weights_.constant +=
          whole * ((counts.work[0][s] + counts.work[1][s]) * costs.action_overhead(s) +
                   counts.work[3][s] * costs.step_overhead(s));
    }
    if (record_ != nullptr)
      weights_.certified.paths.push_back(
          {record_->path(paths_[p].turns), static_cast<std::int64_t>(whole)});
  }
}

std::optional<CutBound::Minimum> CutMixture::next() {
  if (!solve()) return std::nullopt;
  value_ = base_ + unit_ * master_.value();
  for (const double share : {0.5, 0.0}) {
    weigh(share);
    if (weights_.sum <= 0) return std::nullopt;
    auto minimum = cut_bound_.minimum(weights_.counts, weights_.constant);
    if (!minimum) return std::nullopt;
    if (known(minimum->cuts)) continue;  // better weights, if there are any, are farther away
    add_cuts(minimum->cuts);
    return minimum;
  }
  return std::nullopt;
}

void CutMixture::keep_weights() {
  tried_.resize(paths_.size(), 0.0);
  for (std::size_t p = 0; p < paths_.size(); ++p) paths_[p].weight = tried_[p];
}

}  // namespace pfeife
