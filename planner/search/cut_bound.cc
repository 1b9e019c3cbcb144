#include "planner/search/cut_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/cost/clones.h"

namespace pfeife {
namespace {
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kFree = 0.2;  ///< of the memory: far from full
std::size_t at(std::int32_t q) { return static_cast<std::size_t>(q); }
}  // namespace

CutBound::CutBound(const CutModel& model, const CutCosts& costs, const LiveMemory& live,
                   const std::vector<Bytes>& memory_limit, std::size_t stages)
    : model_(model), costs_(costs), live_(live), stages_(stages) {
  for (const Bytes limit : memory_limit) limit_.push_back(static_cast<double>(limit.value));
  windows_.resize(stages);
  for (auto& latencies : latency_) latencies.assign(stages, std::vector<double>(count(), 0.0));
  for (auto& sure : sure_) sure.assign(stages, false);
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
  if (window.low != low || window.high != high || window.from.empty()) {
    window.low = low, window.high = high;
    window.load_from.resize(count()), window.to.resize(count()), window.from.resize(count());
    const std::vector<double>& load = model_.load(costs_.kind(s));
    std::int32_t from = 0, to = -1;
    for (std::int32_t q = 0; q <= model_.last(); ++q) {
      while (from < q && load[at(q)] - load[at(from)] > high) ++from;
      while (to + 1 < q && load[at(q)] - load[at(to + 1)] >= low) ++to;
      window.load_from[at(q)] = from;
      window.to[at(q)] = to;
    }
  }
  const std::size_t first = at(region_.first[s + 1]), last = at(region_.last[s + 1]);
  std::copy(window.load_from.begin() + static_cast<std::ptrdiff_t>(first),
            window.load_from.begin() + static_cast<std::ptrdiff_t>(last) + 1,
            window.from.begin() + static_cast<std::ptrdiff_t>(first));
}

/// The least that a stage of the region holds at a moment; infinite if no such stage fits.
double CutBound::least_held(const LiveMoment& moment, std::size_t k, std::size_t s) const {
  const Window& window = windows_[s];
  double least = kInfinite;
  work_ += 20.0 * (region_.last[s + 1] - region_.first[s + 1] + 1);
  for (std::int32_t q = region_.first[s + 1]; q <= region_.last[s + 1]; ++q) {
    const std::int32_t begin = std::min(window.to[at(q)], region_.last[s]);
    if (begin >= std::max(region_.first[s], window.from[at(q)]))
      least = std::min(least, LiveMemory::held(model_, moment, k, begin, q));
  }
  return least;
}

void CutBound::forget_idle_moments(const Cuts& cuts) {
  for (std::size_t r = 0; r < moments_.size(); ++r)
    std::erase_if(moments_[r], [&](const LiveMoment& moment) {
      return live_.held(model_, moment, cuts, r) <= (1 - kFree) * limit_[r];
    });
}

bool CutBound::limited() const {
  return std::ranges::any_of(moments_, [](const auto& some) { return !some.empty(); });
}

/// Later begins for every end of the rank's stages, by memory: what the stage itself holds, and at
/// least what the others must hold in this region, at each of the rank's moments.
bool CutBound::limit_memory(std::size_t r) {
  const auto& stages = live_.stages(r);
  std::vector<double> least(stages.size());
  for (const LiveMoment& moment : moments_[r]) {
    double sum = 0;
    for (std::size_t k = 0; k < stages.size(); ++k)
      sum += LiveMemory::held(model_, moment, k, region_.first[stages[k]],
                              region_.last[stages[k] + 1]);
    if (sum <= limit_[r]) continue;  // however large the stages are
    sum = 0;
    for (std::size_t k = 0; k < stages.size(); ++k)
      sum += least[k] = least_held(moment, k, stages[k]);
    bool excludes = sum > limit_[r];
    const auto note = [&] {
      if (excludes && record_ != nullptr)
        record_->moment({static_cast<std::uint32_t>(r), moment.action});
    };
    if (excludes) return note(), false;
    for (std::size_t k = 0; k < stages.size(); ++k) {
      Window& window = windows_[stages[k]];
      const double most = limit_[r] - (sum - least[k]);
      std::int32_t from = region_.first[stages[k]];
      for (std::int32_t q = region_.first[stages[k] + 1]; q <= region_.last[stages[k] + 1]; ++q) {
        while (from < q && LiveMemory::held(model_, moment, k, from, q) > most) ++from;
        excludes = excludes || from > window.from[at(q)];
        window.from[at(q)] = std::max(window.from[at(q)], from);
      }
    }
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

bool CutBound::all_links_sure() const {
  bool sure = true;
  for (std::size_t i = 1; i < stages_ && sure; ++i)
    each_position(i, [&](std::int32_t q, std::int32_t begin, std::int32_t end) {
      sure = sure && (begin < 0 || costs_.surely_linked(i, q, begin, end));
    });
  return sure;
}

void CutBound::refresh_latencies() {
  for (std::size_t i = 1; i < stages_; ++i) {
    sure_[0][i] = sure_[1][i] = true;
    work_ += 100.0 * (region_.last[i] - region_.first[i] + 1);
    each_position(i, [&](std::int32_t q, std::int32_t begin, std::int32_t end) {
      CutCosts::Latency latency{0, 0};
      if (begin >= 0) latency = costs_.sure_latency(i, q, begin, end);
      if (linked_only_) {
        const CutCosts::Latency linked =
            costs_.linked_latency(i, q, region_.first[i - 1], region_.last[i + 1]);
        // No link at all: no such cuts count, so any latency will do.
        if (latency.forward == Program::kNever) latency.forward = std::max(0.0, linked.forward);
        if (latency.backward == Program::kNever) latency.backward = std::max(0.0, linked.backward);
      }
      latency_[0][i][at(q)] = latency.forward;
      latency_[1][i][at(q)] = latency.backward;
      if (latency.forward == Program::kNever) sure_[0][i] = false;
      if (latency.backward == Program::kNever) sure_[1][i] = false;
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

PFEIFE_CLONES static void add_scaled(double* out, const double* in, double factor,
                                     std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) out[k] += factor * in[k];
}

/// g_i: layers before the cut cost what stage i - 1 pays for them, and no longer what stage i does.
void CutBound::price_boundary(std::size_t i, const PathCounts<double>& weights) {
  const std::size_t first = at(region_.first[i]);
  const std::size_t width = at(region_.last[i]) - first + 1;
  double* const cost = cost_[i].data() + first;
  std::fill_n(cost, width, 0.0);
  for (std::size_t w = 0; w < kWorks; ++w) {
    const double before = weights.work[w][i - 1], after = weights.work[w][i];
    const auto& sums = model_.time(costs_.kind(i - 1), static_cast<Work>(w));
    if (costs_.kind(i - 1) == costs_.kind(i)) {
      if (before != after) add_scaled(cost, sums.data() + first, before - after, width);
      continue;
    }
    const auto& others = model_.time(costs_.kind(i), static_cast<Work>(w));
    if (before != 0) add_scaled(cost, sums.data() + first, before, width);
    if (after != 0) add_scaled(cost, others.data() + first, -after, width);
  }
  for (std::size_t h = 0; h < kHolds; ++h)
    if (const double factor = weights.held[h][i - 1] - weights.held[h][i]; factor != 0)
      add_scaled(cost, model_.held(static_cast<Hold>(h)).data() + first, factor, width);
  if (weights.forward[i] != 0)
    add_scaled(cost, latency_[0][i].data() + first, weights.forward[i], width);
  if (weights.backward[i] != 0)
    add_scaled(cost, latency_[1][i].data() + first, weights.backward[i], width);
}

void CutBound::price_temporaries(const PathCounts<double>& weights) {
  for (auto& of : temporaries_) of.clear();
  for (std::size_t s = 0; s < weights.temporary.size(); ++s)
    for (std::size_t pass = 0; pass < kPasses; ++pass)
      if (const double weight = weights.temporary[s][pass]; weight != 0)
        temporaries_[s].push_back({static_cast<Op>(pass), weight});
}

double CutBound::temporary(std::size_t s, std::int32_t from, std::int32_t to) const {
  double sum = 0;
  for (const Temporary& t : temporaries_[s]) sum += t.weight * model_.temporary(t.op, from, to);
  return sum;
}

double CutBound::settled(std::size_t s, std::int32_t to) const {
  double sum = 0;
  for (const Temporary& t : temporaries_[s]) sum += t.weight * model_.settled(t.op)[at(to)];
  return sum;
}

std::optional<CutBound::Minimum> CutBound::minimum(const PathCounts<double>& weights,
                                                   double constant) {
  thread_local std::vector<std::int32_t> queue;
  queue.resize(count() + 1);
  for (std::size_t i = 1; i < stages_; ++i) price_boundary(i, weights);
  price_temporaries(weights);
  const std::size_t stages = stages_;
  for (std::size_t w = 0; w < kWorks; ++w)
    constant += weights.work[w][stages - 1] *
                model_.time(costs_.kind(stages - 1), static_cast<Work>(w)).back();
  for (std::size_t h = 0; h < kHolds; ++h)
    constant += weights.held[h][stages - 1] * model_.held(static_cast<Hold>(h)).back();
  constant_ = constant;
  if (stages == 1) {
    const Window& whole = windows_[0];
    const std::size_t end = at(model_.last());
    if (whole.from[end] > 0 || whole.to[end] < 0) return std::nullopt;
    return Minimum{constant + temporary(0, 0, model_.last()), {0, model_.last()}};
  }
  const auto origin = [&](std::size_t i, std::int32_t q) {  // smallest over begins of stage i - 1
    return i == 1 ? 0.0 : best_[i - 1][at(q)];
  };
  // The monotone queue holds the begins that may still be the smallest, from the smallest on. The
  // later ones among them have smaller temporaries.
  struct Least {
    double value;
    std::int32_t begin;
  };
  const auto least = [&](std::size_t i, std::int32_t q, std::size_t head, std::size_t tail) {
    Least found{origin(i, queue[head]), queue[head]};
    if (temporaries_[i - 1].empty()) return found;
    found.value += temporary(i - 1, queue[head], q);
    for (std::size_t k = head + 1; k < tail && origin(i, queue[k]) < found.value; ++k)
      if (const double value = origin(i, queue[k]) + temporary(i - 1, queue[k], q);
          value < found.value)
        found = {value, queue[k]};
    return found;
  };
  Minimum found;
  found.scaled = kInfinite;
  for (std::size_t i = 1; i <= stages; ++i) {
    const Window& window = windows_[i - 1];
    const std::int32_t first = region_.first[i - 1], last = region_.last[i - 1];
    std::size_t head = 0, tail = 0;
    std::int32_t next = first;
    work_ += 10.0 * (region_.last[i] - region_.first[i] + 1);
    for (std::int32_t q = region_.first[i]; q <= region_.last[i]; ++q) {
      const std::int32_t to = std::min(window.to[at(q)], last);
      for (; next <= to; ++next) {
        const double value = origin(i, next);
        if (value == kInfinite) continue;
        while (tail > head && origin(i, queue[tail - 1]) > value) --tail;
        queue[tail++] = next;
      }
      while (head < tail && queue[head] < window.from[at(q)]) ++head;
      if (i == stages) {
        if (head == tail) return std::nullopt;
        const auto [value, begin] = least(i, q, head, tail);
        found.scaled = value + constant;
        found.cuts.assign(stages + 1, model_.last());
        found.cuts[stages - 1] = begin;
      } else if (head == tail || !allowed_[i][at(q)]) {
        best_[i][at(q)] = kInfinite;
      } else {
        const auto [value, begin] = least(i, q, head, tail);
        best_[i][at(q)] = value + cost_[i][at(q)];
        choice_[i][at(q)] = begin;
      }
    }
  }
  for (std::size_t i = stages - 1; i > 0; --i) found.cuts[i - 1] = choice_[i][at(found.cuts[i])];
  return found;
}

/// rest_[i][q]: the smallest cost of what comes after boundary i if it lies at q. As in minimum();
/// the queue holds ends, whose temporaries, together with settled(), are smaller the earlier.
void CutBound::backward_pass() {
  thread_local std::vector<std::int32_t> queue;
  queue.resize(count() + 1);
  for (std::size_t i = stages_; i-- > 1;) {
    const Window& window = windows_[i];
    std::size_t head = 0, tail = 0;
    const auto value = [&](std::int32_t q) {
      const double behind = i + 1 == stages_ ? 0.0
                            : best_[i + 1][at(q)] == kInfinite
                                ? kInfinite
                                : rest_[i + 1][at(q)] + cost_[i + 1][at(q)];
      return behind - settled(i, q);
    };
    const auto above = [&](std::int32_t p, std::int32_t q) {
      return temporary(i, p, q) + settled(i, q);
    };
    const auto least = [&](std::int32_t p) {
      double found = value(queue[head]);
      if (temporaries_[i].empty()) return found;
      const double rise = above(p, queue[tail - 1]);
      found += above(p, queue[head]);
      for (std::size_t k = head + 1; k < tail && value(queue[k]) + rise < found; ++k)
        found = std::min(found, value(queue[k]) + above(p, queue[k]));
      return found;
    };
    std::int32_t next = region_.last[i + 1];
    for (std::int32_t p = region_.last[i]; p >= region_.first[i]; --p) {
      // Ends q that p is not too late for: to[q] >= p; then drop those it is too early for.
      for (; next >= region_.first[i + 1] && window.to[at(next)] >= p; --next) {
        const double worth = value(next);
        if (worth == kInfinite) continue;
        while (tail > head && value(queue[tail - 1]) > worth) --tail;
        queue[tail++] = next;
      }
      while (head < tail && window.from[at(queue[head])] > p) ++head;
      rest_[i][at(p)] = head == tail ? kInfinite : least(p);
    }
  }
}

bool CutBound::filter(double scaled) {
  const std::size_t stages = stages_;
  if (stages == 1) return true;
  backward_pass();
  for (std::size_t i = 1; i < stages; ++i) {
    std::int32_t first = -1, last = -1;
    for (std::int32_t q = region_.first[i]; q <= region_.last[i]; ++q) {
      const double least =
          best_[i][at(q)] == kInfinite ? kInfinite : best_[i][at(q)] + rest_[i][at(q)] + constant_;
      if (least <= scaled) {
        if (first < 0) first = q;
        last = q;
      } else if (keep_) {
        allowed_[i][at(q)] = 0;
      }
    }
    if (first < 0) return false;
    region_.first[i] = first, region_.last[i] = last;
  }
  return enter(CutRegion(region_));
}

std::vector<std::int32_t> CutBound::positions(std::size_t i) const {
  std::vector<std::int32_t> found;
  for (std::int32_t q = region_.first[i]; q <= region_.last[i]; ++q)
    if (allowed_[i][at(q)]) found.push_back(q);
  return found;
}

}  // namespace pfeife
