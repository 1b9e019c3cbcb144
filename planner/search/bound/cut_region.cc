// The part of CutBound that says which stages a region allows, and what they surely pay.
#include <algorithm>

#include "planner/search/bound/cut_bound.h"
#include "planner/search/price/numbers.h"

namespace pfeife {
namespace {
constexpr double kFree = 0.2;  ///< of the memory: far from full
}  // namespace

CutBound::CutBound(const CutModel& model, const CutCosts& costs, const LiveMemory& live,
                   const std::vector<Bytes>& memory_limit, std::size_t stages)
    : model_(model), costs_(costs), live_(live), stages_(stages) {
  for (const Bytes limit : memory_limit) limit_.push_back(static_cast<double>(limit.value));
  windows_.resize(stages);
  for (auto& latencies : latency_) latencies.assign(stages, std::vector<double>(count(), 0.0));
  for (auto& sent : always_sent_) sent.assign(stages, false);
  allowed_.assign(stages, std::vector<char>(count(), 1));
  cost_.assign(stages, std::vector<double>(count(), 0.0));
  best_ = rest_ = cost_;
  choice_.assign(stages, std::vector<std::int32_t>(count(), 0));
  temporaries_.resize(stages);
  moments_.resize(live.ranks());
  for (std::size_t r = 0; r < live.ranks(); ++r)
    for (const LiveMoment& moment : live.moments(r)) {
      double most = 0;
      for (std::size_t k = 0; k < live.stages(r).size(); ++k)
        most += LiveMemory::held(model, moment, k, 0, model.last());
      if (most > limit_[r]) moments_[r].emplace_back(moment);
    }
}

CutRegion CutBound::everything() const {
  CutRegion region;
  const std::int32_t last = model_.last();
  for (std::size_t s = 0; s < stages_; ++s) {
    region.low.push_back(0);
    region.high.push_back(model_.load(costs_.kind(s)).back());
  }
  const auto stages = static_cast<std::int32_t>(stages_);
  for (std::int32_t i = 0; i <= stages; ++i) {
    region.first.push_back(i == stages ? last : i);
    region.last.push_back(i == 0 ? 0 : last - (stages - i));
  }
  return region;
}

void CutBound::make_window(std::size_t s) {
  Window& window = windows_[s];
  const double low = region_.low[s], high = region_.high[s];
  const std::int32_t first = region_.first[s + 1], last = region_.last[s + 1];
  if (window.low != low || window.high != high || first < window.first || last > window.last) {
    window.low = low, window.high = high, window.first = first, window.last = last;
    window.load_from.resize(count()), window.to.resize(count()), window.from.resize(count());
    const std::vector<double>& load = model_.load(costs_.kind(s));
    const auto begins = [&](const auto& before) {  // a load never falls with the position
      return static_cast<std::int32_t>(
          std::partition_point(load.begin(), load.begin() + first, before) - load.begin());
    };
    std::int32_t from = begins([&](double p) { return load[at(first)] - p > high; });
    std::int32_t to = begins([&](double p) { return load[at(first)] - p >= low; }) - 1;
    for (std::int32_t q = first; q <= last; ++q) {
      while (from < q && load[at(q)] - load[at(from)] > high) ++from;
      while (to + 1 < q && load[at(q)] - load[at(to + 1)] >= low) ++to;
      window.load_from[at(q)] = from;
      window.to[at(q)] = to;
    }
  }
  for (std::size_t q = at(first); q <= at(last); ++q)
    window.from[q] = std::max(window.load_from[q], region_.first[s]);
}

/// Sums what stage s, number k of its rank, holds at a moment: prefix sums, temporaries apart, at
/// all positions that it may have an end at.
void CutBound::sum_held(const LiveMoment& moment, std::size_t k, std::size_t s) {
  std::vector<double>& sums = held_[k];
  sums.resize(count());
  const double saved = moment.saved[k], weight_saved = moment.weight_saved[k];
  const double* const fixed = model_.held(Hold::Fixed).data();
  const double* const of_saved = model_.held(Hold::Saved).data();
  const double* const of_weight = model_.held(Hold::WeightSaved).data();
  for (std::size_t q = at(region_.first[s]); q <= at(region_.last[s + 1]); ++q)
    sums[q] = fixed[q] + saved * of_saved[q] + weight_saved * of_weight[q];
}

/// The least that a stage of the region holds at a moment; infinite if no such stage fits.
double CutBound::least_held(const LiveMoment& moment, std::size_t k, std::size_t s) const {
  const Window& window = windows_[s];
  const std::vector<double>& sums = held_[k];
  const bool runs = moment.running == static_cast<std::int32_t>(k);
  double least = kInfinite;
  work_ += 20.0 * (region_.last[s + 1] - region_.first[s + 1] + 1);
  for (std::int32_t q = region_.first[s + 1]; q <= region_.last[s + 1]; ++q) {
    const std::int32_t begin = std::min(window.to[at(q)], region_.last[s]);
    if (begin < std::max(region_.first[s], window.from[at(q)])) continue;
    const double kept = between(sums, begin, q);
    if (kept < least)
      least = std::min(least, runs ? kept + model_.temporary(moment.op, begin, q) : kept);
  }
  return least;
}

/// Stage s begins later for every end, if it would hold more than `most` at the moment. True if it
/// does.
bool CutBound::begin_later(const LiveMoment& moment, std::size_t k, std::size_t s, double most) {
  Window& window = windows_[s];
  const std::vector<double>& sums = held_[k];
  const bool runs = moment.running == static_cast<std::int32_t>(k);
  const auto too_much = [&](std::int32_t from, std::int32_t q) {
    const double left = most - between(sums, from, q);
    if (left < 0 || !runs || left >= model_.most_temporary(moment.op)) return left < 0;
    return model_.temporary(moment.op, from, q) > left;
  };
  bool later = false;
  std::int32_t from = region_.first[s];
  for (std::int32_t q = region_.first[s + 1]; q <= region_.last[s + 1]; ++q) {
    std::int32_t& begin = window.from[at(q)];
    from = std::max(from, begin);
    while (from < q && too_much(from, q)) ++from;
    later = later || from > begin;
    begin = std::max(begin, from);
  }
  return later;
}

void CutBound::forget_idle_moments(const Cuts& cuts) {
  for (std::size_t r = 0; r < moments_.size(); ++r)
    std::erase_if(moments_[r], [&](const LiveMoment& moment) {
      return live_.held(model_, moment, cuts, r) <= (1 - kFree) * limit_[r];
    });
}

bool CutBound::limited() const {
  return std::ranges::any_of(moments_,
                             [](const auto& rank_moments) { return !rank_moments.empty(); });
}

/// The most that any of the stage's windows holds of each kind.
std::array<double, kHolds> CutBound::most_held(std::size_t s) const {
  std::array<double, kHolds> most{};
  for (std::size_t h = 0; h < kHolds; ++h) {
    const std::vector<double>& held = model_.held(static_cast<Hold>(h));
    for (std::int32_t q = region_.first[s + 1]; q <= region_.last[s + 1]; ++q) {
      const std::int32_t from = std::min(windows_[s].from[at(q)], q);
      most[h] = std::max(most[h], between(held, from, q));
    }
  }
  work_ += 5.0 * (region_.last[s + 1] - region_.first[s + 1] + 1);
  return most;
}

/// Later begins for every end of the rank's stages, by memory: what the stage itself holds, and at
/// least what the others must hold in this region, at each of the rank's moments.
bool CutBound::limit_memory(std::size_t r) {
  const auto& stages = live_.stages(r);
  std::vector<double> least(stages.size());
  std::vector<std::array<double, kHolds>> most;
  for (const std::size_t s : stages) most.push_back(most_held(s));
  held_.resize(std::max(held_.size(), stages.size()));
  for (const LiveMoment& moment : moments_[r]) {
    double sum = model_.most_temporary(moment.op);
    for (std::size_t k = 0; k < stages.size(); ++k)
      sum += most[k][0] + moment.saved[k] * most[k][1] + moment.weight_saved[k] * most[k][2];
    if (sum <= limit_[r]) continue;  // however large the stages are
    sum = 0;
    for (std::size_t k = 0; k < stages.size(); ++k) {
      sum_held(moment, k, stages[k]);
      sum += least[k] = least_held(moment, k, stages[k]);
    }
    bool excludes = sum > limit_[r];
    const auto note = [&] {
      if (excludes && record_ != nullptr)
        record_->number(CertifiedMoment{static_cast<std::uint32_t>(r), moment.action});
    };
    if (excludes) return note(), false;
    for (std::size_t k = 0; k < stages.size(); ++k)
      excludes |= begin_later(moment, k, stages[k], limit_[r] - (sum - least[k]));
    note();
  }
  return true;
}

bool CutBound::limit_memory() {
  for (std::size_t r = 0; r < moments_.size(); ++r)
    if (!limit_memory(r)) return false;
  for (std::size_t s = 0; s < stages_; ++s) {  // what remains bounds the load
    const std::vector<double>& load = model_.load(costs_.kind(s));
    double most = -1;
    for (std::int32_t q = region_.first[s + 1]; q <= region_.last[s + 1]; ++q)
      most = std::max(most, load[at(q)] - load[at(windows_[s].from[at(q)])]);
    region_.high[s] = std::min(region_.high[s], most);
  }
  return true;
}

void CutBound::tighten_loads() {
  for (std::size_t s = 0; s < stages_; ++s) {
    const std::vector<double>& load = model_.load(costs_.kind(s));
    region_.high[s] =
        std::min(region_.high[s], load[at(region_.last[s + 1])] - load[at(region_.first[s])]);
    region_.low[s] =
        std::max(region_.low[s], load[at(region_.first[s + 1])] - load[at(region_.last[s])]);
  }
}

bool CutBound::enter(const CutRegion& region) {
  region_ = region;
  for (std::size_t i = 1; i <= stages_; ++i) {
    if (i < stages_) region_.first[i] = std::max(region_.first[i], region_.first[i - 1] + 1);
    if (region_.first[i] > region_.last[i]) return false;
  }
  for (std::size_t i = stages_; i-- > 1;) {
    region_.last[i] = std::min(region_.last[i], region_.last[i + 1] - 1);
    if (region_.first[i] > region_.last[i]) return false;
  }
  tighten_loads();
  for (std::size_t s = 0; s < stages_; ++s) {
    if (region_.low[s] > region_.high[s]) return false;
    make_window(s);
  }
  return !limited() || limit_memory();
}

/// visit(q, latest begin of the stage before q, earliest end of the one after it) for all positions
/// of a boundary; begin = -1 where no stages fit.
template <class Visit>
void CutBound::each_position(std::size_t i, const Visit& visit) const {
  const Window& before = windows_[i - 1];
  const Window& after = windows_[i];
  std::int32_t end = region_.first[i + 1];
  for (std::int32_t q = region_.first[i]; q <= region_.last[i]; ++q) {
    while (end < region_.last[i + 1] && (end <= q || after.to[at(end)] < q)) ++end;
    const std::int32_t begin = std::min(before.to[at(q)], region_.last[i - 1]);
    const bool none = begin < region_.first[i - 1] || end <= q || after.to[at(end)] < q;
    visit(q, none ? -1 : begin, end);
  }
}

bool CutBound::always_linked() const {
  bool linked = true;
  for (std::size_t i = 1; i < stages_ && linked; ++i)
    each_position(i, [&](std::int32_t q, std::int32_t begin, std::int32_t end) {
      linked = linked && (begin < 0 || costs_.always_linked(i, q, begin, end));
    });
  return linked;
}

std::vector<CutCosts::Waits> CutBound::common_waits() const {
  std::vector<CutCosts::Waits> found(stages_, {true, true});
  for (std::size_t i = 1; i < stages_; ++i) {
    if (linked_only_ && costs_.crosses_ranks(i)) continue;
    each_position(i, [&](std::int32_t q, std::int32_t begin, std::int32_t end) {
      if (begin < 0) return;
      const CutCosts::Waits waits = costs_.common_waits(q, begin, end);
      found[i].forward &= waits.forward, found[i].backward &= waits.backward;
    });
  }
  return found;
}

void CutBound::refresh_latencies() {
  for (std::size_t i = 1; i < stages_; ++i) {
    always_sent_[0][i] = always_sent_[1][i] = true;
    work_ += 100.0 * (region_.last[i] - region_.first[i] + 1);
    each_position(i, [&](std::int32_t q, std::int32_t begin, std::int32_t end) {
      CutCosts::Latency latency{0, 0};
      if (begin >= 0) latency = costs_.least_latency(i, q, begin, end);
      if (linked_only_) {
        const CutCosts::Latency linked =
            costs_.linked_latency(i, q, region_.first[i - 1], region_.last[i + 1]);
        // No link at all: no such cuts count, so any latency will do.
        if (latency.forward == Program::kNever) latency.forward = std::max(0.0, linked.forward);
        if (latency.backward == Program::kNever) latency.backward = std::max(0.0, linked.backward);
      }
      latency_[0][i][at(q)] = latency.forward;
      latency_[1][i][at(q)] = latency.backward;
      if (latency.forward == Program::kNever) always_sent_[0][i] = false;
      if (latency.backward == Program::kNever) always_sent_[1][i] = false;
    });
  }
}

CutCosts::Latency CutBound::least_latency(std::size_t i) const {
  CutCosts::Latency least{kInfinite, kInfinite};
  for (std::int32_t q = region_.first[i]; q <= region_.last[i]; ++q) {
    least.forward = std::min(least.forward, latency_[0][i][at(q)]);
    least.backward = std::min(least.backward, latency_[1][i][at(q)]);
  }
  return least;
}

}  // namespace pfeife
