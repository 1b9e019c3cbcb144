#include "experiments/show/search_times.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace pfeife {
namespace {

std::string in_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

}  // namespace

void SearchTimes::add(const SearchStepDone& step) {
  const std::lock_guard lock(mutex_);
  seconds_[std::string(step.name)] += step.seconds;
}

std::string SearchTimes::text() const {
  constexpr double kLeast = 0.05;  // s
  const std::lock_guard lock(mutex_);
  if (seconds_.empty()) return "";
  double all = 0;
  std::vector<std::pair<double, std::string>> steps;
  for (const auto& [name, seconds] : seconds_) {
    all += seconds;
    if (seconds >= kLeast) steps.emplace_back(-seconds, name);
  }
  std::ranges::sort(steps);
  std::string text = in_seconds(all);
  for (std::size_t i = 0; i < steps.size(); ++i)
    text += (i == 0 ? ": " : ", ") + steps[i].second + " " + in_seconds(-steps[i].first);
  return text;
}

}  // namespace pfeife
