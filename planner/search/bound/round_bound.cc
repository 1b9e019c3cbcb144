#include "planner/search/bound/round_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/search/bound/stage_bound.h"

namespace pfeife {
namespace {
constexpr double kCoarse = 1.0 / 48, kFine = 1.0 / 300;  ///< of the time: steps of delays
constexpr std::int32_t kNarrow = 16;                     ///< positions: not split further
constexpr double kWider = 1.4;                           ///< steps that matter little
constexpr double kStep = 1.0 / 3;                        ///< of the way to the higher bound
constexpr double kNear = 1e-3;                           ///< of the time: divided no further
constexpr double kInPassing = 0.15;                      ///< of the budget
constexpr double kDear = 5e8;            ///< ns; a region that takes more is not gone through
constexpr double kPrice = 5;             ///< ns, to look at the rows of a pair of ends
constexpr double kCompare = 10;          ///< ns, to compare two states
constexpr std::size_t kPassedSteps = 8;  ///< steps of ways to the last F
constexpr double kPassedLeast = 0.2, kPassed = 0.04;  ///< of the time: the first step, and each

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
    : candidates_(&candidates),
      rows_(std::move(rows)),
      least_second_(least_second(candidates)),
      some_(std::numeric_limits<double>::infinity()) {
  for (const Bytes limit : candidates.memory_limit())
    limit_.push_back(static_cast<double>(limit.value));
}

double RoundBound::raise(double least, double enough, double budget) {
  least = std::floor(least), enough = std::floor(enough);
  allowed_ += budget;
  if (least >= enough) return least;
  if (open_.empty() && enough < some_ && enough != tried_) {
    tried_ = enough;
    if (shows(enough, work_ + kInPassing * budget)) return enough;
    open_.clear();
  }
  while (least < enough && work_ < allowed_) {
    const double time = next_time(least, std::min(enough, some_));
    if (time <= least) break;
    if (shows(time, allowed_)) least = time;
  }
  return least;
}

/// A bound between both to be shown: what is left of another, a third of the way, since higher ones
/// cost ever more, or, where they are near, the higher one.
double RoundBound::next_time(double least, double high) const {
  if (!open_.empty() && time_ >= least && time_ < high) return time_ + 1;
  const double next = std::floor(least + std::max(1.0, kStep * (high - least)));
  if (high - next > std::max(1.0, kNear * high)) return next;
  return high == some_ ? least : high;
}

/// No cuts are below `bound`. False as well if that took too much work, with regions left open, or
/// is not to be shown: where nothing else shows it, in narrower regions and with finer steps.
bool RoundBound::shows(double bound, double most_work) {
  if (open_.empty() || time_ != bound - 1) begin(bound - 1);
  while (!open_.empty()) {
    if (work_ >= most_work) return false;
    const Region region = open_.back();
    open_.pop_back();
    const double before = work_;
    if (!possible(region)) continue;
    if (work_ - before < kDear && split(region)) continue;
    open_.clear();
    some_ = bound;
    return false;
  }
  return true;
}

/// First looks where there were cuts the last time.
void RoundBound::begin(double time) {
  const CutModel& model = candidates_->model();
  time_ = time;
  reach_ = stage_reaches(model, candidates_->costs(), candidates_->schedule(), time);
  work_ += 30.0 * static_cast<double>(reach_.size() * least_second_.size());
  const auto ranks = static_cast<std::int32_t>(rows_.size());
  open_ = {{ranks, model.last() - ranks, kCoarse * time}};
  if (found_) open_.push_back({found_->first, found_->last, kFine * time});
}

/// False if the region is as narrow, and its steps are as fine, as they get.
bool RoundBound::split(const Region& region) {
  const std::int32_t middle = region.first + (region.last - region.first) / 2;
  if (region.last - region.first >= kNarrow) {
    open_.push_back({region.first, middle, region.step});
    open_.push_back({middle + 1, region.last, region.step});
  } else if (region.step > kFine * time_) {
    open_.push_back({region.first, region.last, std::max(region.step / 2, kFine * time_)});
  } else {
    found_ = region;
    return false;
  }
  return true;
}

/// Even ones up to `room`, more than which is of use only where the longest second round is behind.
void RoundBound::set_levels(double room) {
  floor_ = {0.0};
  double step = region_.step;
  while (floor_.back() <= time_) {
    floor_.push_back(floor_.back() + step);
    if (floor_.back() > room) step *= kWider;
  }
  passed_floor_ = {0.0};
  for (std::size_t k = 0; k < kPassedSteps; ++k)
    passed_floor_.push_back(time_ * (kPassedLeast + static_cast<double>(k) * kPassed));
  passed_floor_.push_back(time_ + 1);
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

/// There may be cuts. True as well where that takes too much work.
bool RoundBound::possible(const Region& region) {
  const double before = work_;
  region_ = region;
  const double room = time_ - least_second_[static_cast<std::size_t>(region.last)];
  if (room < 0) return false;
  set_levels(room);
  set_needs();
  const RoundLevel levels{floor_.size() - 1, floor_.size() - 1, passed_floor_.size() - 1};
  now_.reset(levels);
  now_.add({}, {.x = 0, .y = region.last});
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    next_.reset(levels);
    now_.each([&](const RoundLevel& level, const RoundState& from) { extend(r, level, from); });
    work_ += kCompare * static_cast<double>(next_.keep_best());
    std::swap(now_, next_);
    if (work_ - before > kDear) return true;
  }
  bool any = false;
  now_.each([&](const RoundLevel&, const RoundState& state) {
    any = any || (state.x >= region_.first && state.y >= candidates_->model().last());
  });
  return any;
}

/// The stages that the rank may have, for all levels of its delay. They may end before they begin:
/// then they begin earlier, having fallen behind.
void RoundBound::extend(std::size_t rank, const RoundLevel& level, const RoundState& from) {
  const auto number = static_cast<std::int32_t>(rank);
  const auto behind = static_cast<std::int32_t>(rows_.size()) - 1 - number;
  const auto reach = [&](std::size_t stage, std::int32_t begin, std::int32_t most) {
    return std::min(reach_[stage][static_cast<std::size_t>(begin)], most - behind);
  };
  // Every stage has a segment, so that both rounds have come so far at least.
  Taking t{.rank = rank,
           .from = from,
           .level = level,
           .q_from = number + 1,
           .z_from = region_.first + number + 1,
           .z = reach(rows_.size() + rank, from.y, candidates_->model().last())};
  const std::int32_t most = reach(rank, from.x, region_.last);
  for (std::size_t i = level.delay; i + 1 < floor_.size() && t.q_from <= most; ++i) {
    work_ += 10 * kPrice;
    t.q =
        furthest(t.q_from, most, [&](std::int32_t q) { return this->delay(t, q) < floor_[i + 1]; });
    if (t.q < t.q_from) continue;
    t.delay = std::max(from.delay, i == level.delay ? 0 : this->delay(t, t.q_from));
    t.level.delay = i;
    extend_after(t);
    t.q_from = t.q + 1;
  }
}

/// The same for all levels of what it does after the second round.
void RoundBound::extend_after(Taking t) {
  const double second = least_second_[static_cast<std::size_t>(t.from.y)];
  const std::int32_t most = t.q, most_z = t.z;
  for (std::size_t first = t.level.after, j = first; j + 1 < floor_.size() && t.q_from <= most;
       ++j) {
    t.after = std::max(t.from.after, floor_[j]), t.after_below = floor_[j + 1];
    t.level.after = j;
    if (t.delay + t.after + second > time_) break;
    const std::size_t at = level(t.delay + t.after);
    if (t.from.y < need_[t.rank][at]) break;
    t.z_from = std::max(t.z_from, need_[t.rank + 1][at]);
    work_ += 40 * kPrice;
    t.z = furthest(t.z_from, most_z, [&](std::int32_t z) { return fits_second(t, 0, z); });
    if (t.z < t.z_from) break;
    if (j > first) {  // stages that reach this level, if any do
      t.q_from = furthest(t.q_from, most,
                          [&](std::int32_t q) { return this->after(t, q, t.z) < floor_[j]; }) +
                 1;
      if (t.q_from > most) break;
      t.after = std::max(t.after, this->after(t, t.q_from, t.z_from));
      if (t.after >= t.after_below) continue;
    }
    t.q = furthest(t.q_from, most,
                   [&](std::int32_t q) { return this->after(t, q, t.z_from) < t.after_below; });
    extend_passed(t);
    if (t.q == most && this->after(t, most, t.z) < t.after_below) break;  // none is longer
  }
}

/// The same for all levels of the way through its second round to the last F.
void RoundBound::extend_passed(Taking t) {
  const double least = passed(t, t.q_from, t.z_from), most = passed(t, t.q, t.z);
  for (std::size_t first = t.level.passed, k = first; k + 1 < passed_floor_.size(); ++k) {
    t.passed_below = passed_floor_[k + 1];
    if (least >= t.passed_below) continue;
    if (k > first && most < passed_floor_[k]) break;
    t.passed = std::max({t.from.passed, passed_floor_[k], least});
    t.level.passed = k;
    take(t);
  }
}

std::size_t RoundBound::level(double time) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(floor_, time) - floor_.begin()) - 1;
}

double RoundBound::delay(const Taking& t, std::int32_t q) const {
  return rows_[t.rank].delay(t.from.x, q, t.from.y, t.from.y);
}

/// (Of stages that fall behind in the second round this leaves out by how much.)
double RoundBound::after(const Taking& t, std::int32_t q, std::int32_t z) const {
  const std::int32_t x = t.from.x, y = t.from.y, end = std::max(y, z);
  return std::max(rows_[t.rank].after(x, q, y, end), rows_[t.rank].leaving(x, q, y, end));
}

double RoundBound::passed(const Taking& t, std::int32_t q, std::int32_t z) const {
  return t.delay + rows_[t.rank].passing(t.from.x, q, t.from.y, z);
}

bool RoundBound::fits_second(const Taking& t, std::int32_t q, std::int32_t z) const {
  const RoundRows& rows = rows_[t.rank];
  const double left = time_ - t.delay - t.after;
  const std::int32_t x = t.from.x, y = t.from.y;
  return rows.second(x, q, y, z) <= left && rows.turned(x, q, y, z) <= left &&
         rows.rest(x, q, y, z) <= time_ - t.from.passed &&
         rows.again(x, q, y, z) <= time_ - t.from.passed - t.after;
}

bool RoundBound::fits(const Taking& t, std::int32_t q, std::int32_t z) const {
  const RoundRows& rows = rows_[t.rank];
  const std::int32_t x = t.from.x, y = t.from.y;
  return after(t, q, z) < t.after_below && passed(t, q, z) < t.passed_below &&
         fits_second(t, q, z) && rows.all(x, q, y, z) <= time_ &&
         std::ranges::all_of(rows.held, [&, most = limit_[t.rank]](const RoundRow& held) {
           return held(x, q, y, z) <= most;
         });
}

/// The ends that both stages may have together, of which none is behind another in both rounds.
void RoundBound::take(const Taking& t) {
  const std::int32_t need = need_[t.rank + 1][level(t.delay + t.after)];
  std::int32_t q = t.q_from, z = t.z;
  while (q <= t.q && z >= t.z_from) {
    work_ += 20 * kPrice;
    z = furthest(t.z_from, z, [&](std::int32_t end) { return fits(t, q, end); });
    if (z < t.z_from || z < need) break;
    q = furthest(q, t.q, [&](std::int32_t end) { return fits(t, end, z); });
    next_.add(t.level, {q, z, t.delay, t.after, t.passed});
    ++q;
  }
}

}  // namespace pfeife
