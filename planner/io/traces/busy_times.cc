#include <algorithm>

#include "planner/io/traces/profiler_events.h"

namespace pfeife {

void BusyTimes::add(Interval interval) {
  if (!intervals_.empty()) {
    Interval& last = intervals_.back();
    if (last.start <= interval.start && interval.end <= last.end) return;
    sorted_ = sorted_ && last.end < interval.start;
  }
  intervals_.push_back(interval);
}

void BusyTimes::sort() {
  if (sorted_) return;
  std::ranges::sort(intervals_, {}, &Interval::start);
  std::size_t last = 0;
  for (std::size_t i = 1; i < intervals_.size(); ++i)
    if (intervals_[i].start <= intervals_[last].end)
      intervals_[last].end = std::max(intervals_[last].end, intervals_[i].end);
    else
      intervals_[++last] = intervals_[i];
  intervals_.resize(last + 1);
  sorted_ = true;
}

std::optional<BusyTimes::Covered> BusyTimes::within(Interval range) {
  sort();
  std::optional<Covered> covered;
  for (auto at = std::ranges::upper_bound(intervals_, range.start, {}, &Interval::end);
       at != intervals_.end() && at->start < range.end; ++at) {
    const Interval part{std::max(at->start, range.start), std::min(at->end, range.end)};
    if (!covered) covered = Covered{part};
    covered->span.end = part.end;
    covered->busy += part.end - part.start;
  }
  return covered;
}

}  // namespace pfeife
