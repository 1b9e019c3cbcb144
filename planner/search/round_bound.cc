#include "planner/search/round_bound.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "planner/search/stage_bound.h"

namespace pfeife {
namespace {
constexpr double kCoarse = 1.0 / 48, kFine = 1.0 / 300;  ///< of the time: steps of delays
constexpr std::int32_t kNarrow = 16;                     ///< positions: not split further
constexpr double kWider = 1.4;                           ///< steps that matter little
constexpr std::size_t kHalvings = 5;
constexpr double kPrice = 5;  ///< ns, to look at the rows of a pair of ends

/// The largest of low .. high that `may` be, which is none behind the first that may not; low - 1
/// if none may.
template <class May>
std::int32_t furthest(std::int32_t low, std::int32_t high, const May& may) {
  --low;
  while (low < high) {
    const std::int32_t middle = low + (high - low + 1) / 2;
    if (may(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

}  // namespace

std::unique_ptr<RoundBound> RoundBound::make(const Candidates& candidates) {
  auto rows = round_rows(candidates);
  if (!rows) return nullptr;
  return std::unique_ptr<RoundBound>(new RoundBound(candidates, std::move(*rows)));
}

RoundBound::RoundBound(const Candidates& candidates, std::vector<RoundRows> rows)
    : candidates_(&candidates), rows_(std::move(rows)), least_second_(least_second(candidates)) {
  for (const Bytes limit : candidates.memory_limit())
    limit_.push_back(static_cast<double>(limit.value));
}

double RoundBound::raise(double least, double enough, double budget) {
  least = std::floor(least), enough = std::floor(enough);
  const auto below = [&](double time) {
    most_work_ = work_ + budget / (kHalvings + 1);
    return possible(time - 1);
  };
  if (least >= enough || !below(enough)) return std::max(least, enough);
  for (std::size_t k = 0; k < kHalvings; ++k) {
    const double middle = std::floor((least + enough) / 2);
    if (middle <= least) break;
    (below(middle) ? enough : least) = middle;
  }
  return least;
}

/// There may be cuts with no path above `time`: where nothing else shows it, in narrower regions
/// and with finer steps. True as well where the budget does not suffice.
bool RoundBound::possible(double time) {
  const CutModel& model = candidates_->model();
  time_ = time;
  reach_ = stage_reaches(model, candidates_->costs(), candidates_->schedule(), time);
  work_ += 30.0 * static_cast<double>(reach_.size() * least_second_.size());
  const auto ranks = static_cast<std::int32_t>(rows_.size());
  if (found_ && possible(Region{found_->first, found_->last, kFine * time})) return true;
  std::vector<Region> open{{ranks, model.last() - ranks, kCoarse * time}};
  while (!open.empty()) {
    const Region region = open.back();
    open.pop_back();
    if (!has_room()) return true;
    if (!possible(region)) continue;
    const std::int32_t middle = region.first + (region.last - region.first) / 2;
    if (region.last - region.first >= kNarrow) {
      open.push_back({region.first, middle, region.step});
      open.push_back({middle + 1, region.last, region.step});
    } else if (region.step > kFine * time) {
      open.push_back({region.first, region.last, std::max(region.step / 2, kFine * time)});
    } else {
      found_ = region;
      return true;
    }
  }
  return false;
}

/// Even ones up to `room`, more than which is of use only where the longest second round is behind.
void RoundBound::set_levels(double room) {
  floor_ = {0.0};
  double step = region_.step;
  while (floor_.back() <= time_) {
    floor_.push_back(floor_.back() + step);
    if (floor_.back() > room) step *= kWider;
  }
  levels_ = floor_.size() - 1;
}

/// Where a rank's second round must begin at least, so that the ranks from there on come to the end
/// with a delay and an `after` that together are of a level.
void RoundBound::set_needs() {
  const auto ranks = static_cast<std::int32_t>(rows_.size());
  const std::int32_t last = candidates_->model().last();
  need_.assign(rows_.size() + 1, std::vector<std::int32_t>(floor_.size(), last));
  for (std::size_t k = 0; k < floor_.size(); ++k)
    for (std::size_t r = rows_.size(); r-- > 0;) {
      const Taking t{.rank = r, .from = {}, .delay = floor_[k]};
      const std::int32_t to =
          std::min(need_[r + 1][k], last - (ranks - 1 - static_cast<std::int32_t>(r)));
      work_ += 20 * kPrice;
      // The first begin from which the stage comes so far: none behind it comes less far.
      need_[r][k] = 1 + furthest(0, to - 1, [&](std::int32_t y) {
                      Taking at = t;
                      at.from.y = y;
                      return reach_[rows_.size() + r][static_cast<std::size_t>(y)] < to ||
                             !fits_second(at, 0, to);
                    });
    }
}

bool RoundBound::possible(const Region& region) {
  region_ = region;
  const double room = time_ - least_second_[static_cast<std::size_t>(region.last)];
  if (room < 0) return false;
  set_levels(room);
  set_needs();
  now_.assign(levels_ * levels_, {});
  now_[0].push_back({0, region.last, 0, 0});
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    next_.assign(levels_ * levels_, {});
    for (std::size_t i = 0; i < levels_; ++i)
      for (std::size_t j = 0; j < levels_; ++j)
        for (const State& from : now_[i * levels_ + j]) extend(r, i, j, from);
    keep_best();
    if (!has_room()) return true;
  }
  return std::ranges::any_of(now_, [&](const States& some) {
    return std::ranges::any_of(some, [&](const State& state) {
      return state.x >= region_.first && state.y >= candidates_->model().last();
    });
  });
}

/// The stages that the rank may have, for all levels of its delay. They may end before they begin:
/// then they begin earlier, having fallen behind.
void RoundBound::extend(std::size_t rank, std::size_t delay, std::size_t after, const State& from) {
  const auto number = static_cast<std::int32_t>(rank);
  const auto behind = static_cast<std::int32_t>(rows_.size()) - 1 - number;
  const auto reach = [&](std::size_t stage, std::int32_t begin, std::int32_t most) {
    return std::min(reach_[stage][static_cast<std::size_t>(begin)], most - behind);
  };
  // Every stage has a segment, so that both rounds have come so far at least.
  Taking t{.rank = rank,
           .from = from,
           .q_from = number + 1,
           .z_from = region_.first + number + 1,
           .z = reach(rows_.size() + rank, from.y, candidates_->model().last())};
  const std::int32_t most = reach(rank, from.x, region_.last);
  for (std::size_t i = delay; i < levels_ && t.q_from <= most; ++i) {
    work_ += 10 * kPrice;
    t.q =
        furthest(t.q_from, most, [&](std::int32_t q) { return this->delay(t, q) < floor_[i + 1]; });
    if (t.q < t.q_from) continue;
    t.delay = std::max(from.delay, i == delay ? 0 : this->delay(t, t.q_from));
    extend(t, i, after);
    t.q_from = t.q + 1;
  }
}

/// The same for all levels of what it does after the second round, which begins at `after`.
void RoundBound::extend(Taking t, std::size_t delay, std::size_t after) {
  const double second = least_second_[static_cast<std::size_t>(t.from.y)];
  const std::int32_t most = t.q, most_z = t.z;
  for (std::size_t j = after; j < levels_ && t.q_from <= most; ++j) {
    t.after = std::max(t.from.after, floor_[j]), t.after_below = floor_[j + 1];
    if (t.delay + t.after + second > time_) break;
    if (t.from.y < need_[t.rank][level(t.delay + t.after)]) break;
    work_ += 40 * kPrice;
    t.z = furthest(t.z_from, most_z, [&](std::int32_t z) { return fits_second(t, 0, z); });
    if (t.z < t.z_from) break;
    if (j > after) {  // stages that reach this level, if any do
      t.q_from = furthest(t.q_from, most,
                          [&](std::int32_t q) { return this->after(t, q, t.z) < floor_[j]; }) +
                 1;
      if (t.q_from > most) break;
      t.after = std::max(t.after, this->after(t, t.q_from, t.z_from));
      if (t.after >= t.after_below) continue;
    }
    t.q = furthest(t.q_from, most,
                   [&](std::int32_t q) { return this->after(t, q, t.z_from) < t.after_below; });
    take(t, next_[delay * levels_ + j]);
    if (t.q == most && this->after(t, most, t.z) < t.after_below) break;  // none is longer
  }
}

std::size_t RoundBound::level(double time) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(floor_, time) - floor_.begin()) - 1;
}

double RoundBound::delay(const Taking& t, std::int32_t q) const {
  return rows_[t.rank].delay(std::min(t.from.x, q), q, t.from.y, t.from.y);
}

/// (Of stages that fall behind in the second round this leaves out by how much.)
double RoundBound::after(const Taking& t, std::int32_t q, std::int32_t z) const {
  const std::int32_t x = std::min(t.from.x, q), y = t.from.y, end = std::max(y, z);
  return std::max(rows_[t.rank].after(x, q, y, end), rows_[t.rank].leaving(x, q, y, end));
}

bool RoundBound::fits_second(const Taking& t, std::int32_t q, std::int32_t z) const {
  const RoundRows& rows = rows_[t.rank];
  const double left = time_ - t.delay - t.after;
  const std::int32_t x = std::min(t.from.x, q), y = std::min(t.from.y, z);
  return rows.second(x, q, y, z) <= left && rows.turned(x, q, y, z) <= left;
}

bool RoundBound::fits(const Taking& t, std::int32_t q, std::int32_t z) const {
  const RoundRows& rows = rows_[t.rank];
  const std::int32_t x = std::min(t.from.x, q), y = std::min(t.from.y, z);
  return after(t, q, z) < t.after_below && fits_second(t, q, z) && rows.all(x, q, y, z) <= time_ &&
         std::ranges::all_of(rows.held, [&, most = limit_[t.rank]](const RoundRow& held) {
           return held(x, q, y, z) <= most;
         });
}

/// The ends that both stages may have together, of which none is behind another in both rounds.
void RoundBound::take(const Taking& t, States& into) const {
  const std::int32_t need = need_[t.rank + 1][level(t.delay + t.after)];
  std::int32_t q = t.q_from, z = t.z;
  while (q <= t.q && z >= t.z_from) {
    work_ += 20 * kPrice;
    z = furthest(t.z_from, z, [&](std::int32_t end) { return fits(t, q, end); });
    if (z < t.z_from || z < need) break;
    q = furthest(q, t.q, [&](std::int32_t end) { return fits(t, end, z); });
    into.push_back({q, z, t.delay, t.after});
    ++q;
  }
}

/// Of every level, the states that none of it, or of lower levels, has come farther than: the
/// latter stand for the others, with the smaller delays.
void RoundBound::keep_best() {
  struct Known {
    std::int32_t x, y;
    State* state;
    bool own;
  };
  std::vector<std::vector<Known>> best(levels_ * levels_);  // of the level and all lower ones
  std::vector<Known> all;
  for (std::size_t i = 0; i < levels_; ++i)
    for (std::size_t j = 0; j < levels_; ++j) {
      const std::size_t at = i * levels_ + j;
      all.clear();
      if (i > 0) all.insert(all.end(), best[at - levels_].begin(), best[at - levels_].end());
      if (j > 0) all.insert(all.end(), best[at - 1].begin(), best[at - 1].end());
      for (Known& known : all) known.own = false;
      for (State& state : next_[at]) all.push_back({state.x, state.y, &state, true});
      work_ += 20.0 * static_cast<double>(all.size());
      std::ranges::sort(all, [](const Known& a, const Known& b) {
        return std::tuple(-a.x, -a.y, a.own, a.state->delay, a.state->after) <
               std::tuple(-b.x, -b.y, b.own, b.state->delay, b.state->after);
      });
      std::vector<Known>& kept = best[at];
      for (const Known& known : all) {
        if (kept.empty() || kept.back().y < known.y) {
          kept.push_back(known);
          continue;
        }
        if (!known.own) continue;  // stood for when its own level was looked at
        const auto farther =
            std::ranges::partition_point(kept, [&](const Known& k) { return k.y < known.y; });
        farther->state->delay = std::min(farther->state->delay, known.state->delay);
        farther->state->after = std::min(farther->state->after, known.state->after);
        known.state->x = -1;
      }
    }
  for (States& states : next_) std::erase_if(states, [](const State& s) { return s.x < 0; });
  std::swap(now_, next_);
}

}  // namespace pfeife
