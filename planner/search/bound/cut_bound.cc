// The part of CutBound that prices cuts and finds the smallest sum.
#include "planner/search/bound/cut_bound.h"

#include <algorithm>
#include <cmath>

#include "planner/cost/estimate/clones.h"
#include "planner/search/price/numbers.h"

namespace pfeife {

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
  for (auto& of_stage : temporaries_) of_stage.clear();
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

void CutBound::count_missing_as_nothing() {
  for (auto& boundaries : latency_)
    for (std::vector<double>& latencies : boundaries)
      for (double& latency : latencies) latency = std::max(0.0, latency);
}

CutCosts::Latency CutBound::most_latency(std::size_t i) const {
  CutCosts::Latency most{0, 0};
  for (std::int32_t q = region_.first[i]; q <= region_.last[i]; ++q) {
    most.forward = std::max(most.forward, latency_[0][i][at(q)]);
    most.backward = std::max(most.backward, latency_[1][i][at(q)]);
  }
  return most;
}

}  // namespace pfeife
