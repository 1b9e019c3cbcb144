#include "planner/search/bound/any_order_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "planner/schedules/families.h"
#include "planner/search/price/numbers.h"

namespace pfeife {
CertifiedPath AnyOrderRow::certified(std::size_t stages) const {
  const bool returns = back != kNot;
  return {rank, std::string(from, 's') + std::string(returns ? 0 : come - from, 'f') +
                    std::string(returns ? stages - back : 0, 'b') + std::string(leave, 'd') +
                    std::string(low, 'l') + std::string(high < stages ? stages - high : 0, 'h')};
}

AnyOrderRows::AnyOrderRows(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
                           const CutClass& cuts)
    : model_(model),
      microbatches_(static_cast<std::int32_t>(spec.microbatches)),
      placement_{placement_for(spec).rank_of_stage, problem.device_of_rank},
      costs_(model, placement_),
      live_(Schedule{.rows = std::vector<std::vector<Cell>>(spec.ranks)}, placement_),
      cut_bound_(model, costs_, live_, problem.memory_limit, placement_.stages()) {
  const std::size_t stages = placement_.stages();
  if (cuts.linked) cut_bound_.linked_only();
  region_ = cut_bound_.everything();
  for (std::size_t s = 0; s < cuts.least_load.size(); ++s)
    region_.low[s] = static_cast<double>(cuts.least_load[s]);
  any_cuts_ = cut_bound_.enter(region_) && cut_bound_.minimum(PathCounts<double>(stages), 0);
  if (!any_cuts_) return;
  cut_bound_.refresh_latencies();
  waits_ = cut_bound_.common_waits();
  for (std::uint32_t rank = 0; rank < spec.ranks; ++rank) {
    std::vector<std::size_t> stages_of_rank;
    for (std::size_t s = 0; s < stages; ++s)
      if (placement_.rank_of_stage[s].index() == rank) stages_of_rank.push_back(s);
    std::vector<std::size_t> leaves{0};
    for (const std::size_t s : stages_of_rank)
      if (s > 0) leaves.push_back(s);
    for (const std::size_t leave : leaves) {
      for (const std::size_t s : stages_of_rank) {
        add({.rank = rank, .come = s, .leave = leave});
        if (leave <= s) add({.rank = rank, .come = stages, .back = s, .leave = leave});
      }
      if (stages_of_rank[0] > 0 && !all_forward()) add({.rank = rank, .come = 0, .leave = leave});
    }
  }
}

bool AnyOrderRows::all_forward() const {
  return std::ranges::all_of(waits_, &CutCosts::Waits::forward);
}

bool AnyOrderRows::is_chain() const {
  return all_forward() && std::ranges::all_of(waits_, &CutCosts::Waits::backward);
}

void AnyOrderRows::add(PathCounts<std::int32_t> counts, double constant) {
  cut_bound_.count_missing_as_nothing();
  longest_messages_ = 0;
  for (std::size_t s = 1; s < placement_.stages(); ++s) {
    const CutCosts::Latency most = cut_bound_.most_latency(s);
    longest_messages_ += most.forward + most.backward;
  }
  counts_.push_back(std::move(counts));
  constants_.push_back(constant);
}

std::vector<double> AnyOrderRows::lengths(const Cuts& cuts) const {
  const std::size_t stages = placement_.stages();
  std::array<std::vector<double>, kWorks> time;
  std::vector<double> forward(stages, 0.0), backward(stages, 0.0);
  for (std::size_t s = 0; s < stages; ++s) {
    for (std::size_t w = 0; w < kWorks; ++w) {
      const auto& sums = model_.time(costs_.kind(s), static_cast<Work>(w));
      time[w].push_back(of_stage(sums, cuts, s) + overhead(w, s));
    }
    if (s == 0) continue;
    const CutCosts::Latency latency = cut_bound_.latency_at(s, cuts[s]);
    forward[s] = std::max(0.0, latency.forward), backward[s] = std::max(0.0, latency.backward);
  }
  std::vector<double> found;
  for (std::size_t p = 0; p < counts_.size(); ++p) {
    const PathCounts<std::int32_t>& counts = counts_[p];
    double length = constants_[p];
    for (std::size_t s = 0; s < stages; ++s) {
      for (std::size_t w = 0; w < kWorks; ++w) length += counts.work[w][s] * time[w][s];
      length += counts.forward[s] * forward[s] + counts.backward[s] * backward[s];
    }
    found.push_back(length);
  }
  return found;
}

CutBound::Minimum AnyOrderRows::minimum(const std::vector<double>& weights) {
  PathCounts<double> sum(placement_.stages());
  double constant = 0;
  for (std::size_t p = 0; p < weights.size(); ++p) {
    if (weights[p] == 0) continue;
    constant += weights[p] * constants_[p];
    for (std::size_t s = 0; s < placement_.stages(); ++s) {
      for (std::size_t w = 0; w < kWorks; ++w) {
        sum.work[w][s] += weights[p] * counts_[p].work[w][s];
        constant += weights[p] * counts_[p].work[w][s] * overhead(w, s);
      }
      sum.forward[s] += weights[p] * counts_[p].forward[s];
      sum.backward[s] += weights[p] * counts_[p].backward[s];
    }
  }
  const auto found = cut_bound_.minimum(sum, constant);
  return found ? *found : CutBound::Minimum{std::numeric_limits<double>::infinity(), {}};
}

std::vector<std::size_t> AnyOrderRows::rows_around(std::size_t s) const {
  std::vector<std::size_t> found;
  for (std::size_t p = 0; p < rows_.size(); ++p)
    if (const AnyOrderRow& row = rows_[p]; row.come == s && (row.leave == 0 || row.leave == s) &&
                                           placement_.rank_of_stage[s].index() == row.rank)
      found.push_back(p);
  return found;
}

double AnyOrderRows::around_segment(std::int32_t segment) {
  double shortest = std::numeric_limits<double>::infinity();
  for (std::size_t s = 0; s < placement_.stages(); ++s) {
    CutRegion region = region_;
    region.last[s] = std::min(region.last[s], segment);
    region.first[s + 1] = std::max(region.first[s + 1], segment + 1);
    if (region.last[s] < region.first[s] || region.last[s + 1] < region.first[s + 1] ||
        !cut_bound_.enter(region))
      continue;
    double longest = 0;
    std::vector<double> weights(counts_.size(), 0);
    for (const std::size_t p : rows_around(s)) {
      weights[p] = 1;
      longest = std::max(longest, minimum(weights).scaled);
      weights[p] = 0;
    }
    shortest = std::min(shortest, longest);
  }
  cut_bound_.enter(region_);
  return shortest;
}

double AnyOrderRows::most_weight() const {
  double longest = 0;
  for (std::size_t s = 0; s < placement_.stages(); ++s) {
    double sum = longest_messages_;
    for (std::size_t w = 0; w < kWorks; ++w)
      sum += model_.time(costs_.kind(s), static_cast<Work>(w)).back() + overhead(w, s);
    longest = std::max(longest, sum);
  }
  return std::clamp(std::floor(kExact / (16 * longest * (microbatches_ + 1))), 1.0, 16777216.0);
}

double AnyOrderRows::overhead(std::size_t work, std::size_t s) const {
  if (model_.forward_only() && static_cast<Work>(work) != Work::Forward) return 0;
  if (static_cast<Work>(work) == Work::Optimizer) return costs_.step_overhead(s);
  return static_cast<Work>(work) == Work::BackwardWeight ? 0 : costs_.action_overhead(s);
}

/// Leaves of the rank's work what surely waits for the stage that the first microbatch comes to (or
/// comes back to), and what the way back surely waits for. False: the way itself may be broken.
bool AnyOrderRows::limit(AnyOrderRow& row) const {
  const std::size_t stages = placement_.stages();
  const bool returns = row.back != AnyOrderRow::kNot;
  const std::size_t stage = returns ? row.back : row.come;
  for (std::size_t s = stage + 1; returns && s < stages; ++s)
    if (!waits_[s].backward) return false;
  for (std::size_t s = 1; s <= row.leave; ++s)
    if (!waits_[s].backward) return false;
  const bool begins = !returns && row.from == row.come;  // it takes no time to come there
  row.high = returns ? stages : stage + 1;
  while (row.high < stages && (waits_[row.high].forward || (begins && row.high > row.leave)) &&
         (row.leave == 0 || row.high <= row.leave || waits_[row.high].backward))
    ++row.high;
  if (row.leave > 0) {
    for (std::size_t s = row.leave + 1; s <= stage; ++s)
      if (!waits_[s].backward) return false;
    return row.leave < row.high;
  }
  row.low = begins ? 0 : stage;
  while (row.low > 0 && waits_[row.low].backward) --row.low;
  return true;
}

/// Takes the row, without the way of the first microbatch before a stage that may not wait for its
/// neighbour.
void AnyOrderRows::add(AnyOrderRow row) {
  const std::size_t stages = placement_.stages();
  row.from = std::min(row.come, stages - 1);
  while (row.from > 0 && waits_[row.from].forward) --row.from;
  if (!limit(row)) return;
  PathCounts<std::int32_t> counts(stages);
  auto& [forward, input, weight, optimizer] = counts.work;
  for (std::size_t s = 0; s < stages; ++s) {
    const bool comes_back = row.back != AnyOrderRow::kNot && s > row.back;
    const bool mine = placement_.rank_of_stage[s].index() == row.rank && s < row.high;
    const bool works = mine && !comes_back && s >= std::max(row.low, row.leave);
    forward[s] = s < row.come ? s >= row.from : mine ? microbatches_ : 0;
    input[s] = works ? microbatches_ : comes_back || s < row.leave;
    if (works && row.leave == 0) weight[s] = microbatches_, optimizer[s] = 1;
    counts.forward[s] = s > row.from && s <= row.come;
    counts.backward[s] = comes_back || (0 < s && s <= row.leave);
  }
  if (row.leave > 0) weight[0] = optimizer[0] = 1;
  rows_.push_back(row);
  counts_.push_back(std::move(counts));
  constants_.push_back(0);
}

}  // namespace pfeife
