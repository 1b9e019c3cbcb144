#include "planner/ir/trace/accuracy.h"

#include <algorithm>

#include "planner/ir/basics/error.h"

namespace pfeife {

std::optional<MedianInterval> median_interval(const MeasuredRun& run) {
  std::vector<double> times;
  for (const Nanoseconds round : run.rounds) times.push_back(static_cast<double>(round.count()));
  return median_interval(std::move(times));
}

bool misses_goal(const MeasuredRun& run) {
  if (run.rounds.size() < 2 || run.interval_goal <= 0) return false;
  const auto found = median_interval(run);
  return !found || found->half_width() >= run.interval_goal;
}

double relative_error(double predicted, double measured) {
  return measured > 0 ? predicted / measured - 1 : 0;
}

std::vector<ActionError> furthest_actions(const Trace& predicted,
                                          std::span<const Nanoseconds> durations,
                                          std::size_t count) {
  PFEIFE_CHECK(predicted.events.size() == durations.size(), "durations of another plan");
  std::vector<ActionError> errors;
  for (std::size_t i = 0; i < durations.size(); ++i) {
    const Event& event = predicted.events[i];
    errors.push_back({event.rank, to_string(event.cell), event.end - event.start, durations[i]});
  }
  const auto distance = [](const ActionError& e) {
    return e.predicted > e.measured ? e.predicted - e.measured : e.measured - e.predicted;
  };
  std::ranges::stable_sort(errors, std::greater{}, distance);
  errors.resize(std::min(count, errors.size()));
  return errors;
}

}  // namespace pfeife
