#include "planner/search/price/cut_times.h"

#include <algorithm>
#include <limits>

#include "planner/search/price/numbers.h"

namespace pfeife {

CutTimes::CutTimes(const CutModel& model, const Schedule& compute_only, const Placement& placement,
                   bool last_apart)
    : program_(compute_only, placement, last_apart),
      costs_(model, placement),
      durations_(program_.durations()) {}

CutCosts::Priced CutTimes::price(const Cuts& cuts, const std::vector<bool>* recompute,
                                 const std::vector<double>* again) {
  ++counts_.priced;
  const CutCosts::Priced priced =
      costs_.price(cuts, program_, durations_.data(), 1, recompute, again);
  program_.complete(durations_.data(), 1);
  return priced;
}

double CutTimes::time(const Cuts& cuts, const std::vector<bool>* recompute,
                      const std::vector<double>* again) {
  const CutCosts::Priced priced = price(cuts, recompute, again);
  if (priced.exact) return program_.makespan(durations_, ends_, priced.tail);
  ++counts_.with_skips;
  return program_.makespan(durations_, ends_, priced.tail, costs_.skips(cuts));
}

void CutTimes::times(std::span<const Cuts> cuts, std::vector<double>& out, double enough) {
  lane_times(cuts, out, exact_, false);
  for (std::size_t k = 0; k < cuts.size(); ++k)
    if (!exact_[k] && out[k] < enough) out[k] = time(cuts[k]);
}

void CutTimes::search_times(std::span<const Cuts> cuts, std::vector<double>& out,
                            std::vector<char>& exact) {
  lane_times(cuts, out, exact, is_large());
}

double CutTimes::search_time(const Cuts& cuts) {
  if (!is_large()) return time(cuts);
  const CutCosts::Priced priced = price(cuts);
  if (!priced.exact && !costs_.link_all(cuts, program_, durations_.data(), 1)) return kInfinite;
  return program_.makespan(durations_, ends_, priced.tail);
}

template <class Number>
void CutTimes::price_lanes(std::span<const Cuts> cuts, Program::Lanes<Number>& lanes, char* exact,
                           char* hopeless, bool link) {
  lanes.resize(program_.lane_rows());
  Number* const durations = lanes.data()->lane.data();
  for (std::size_t k = 0; k < cuts.size(); ++k) {
    const CutCosts::Priced priced = costs_.price(cuts[k], program_, durations + k, Program::kLanes);
    exact[k] = (priced.exact || link) && priced.tail == nullptr;
    hopeless[k] = !priced.exact && link &&
                  !costs_.link_all(cuts[k], program_, durations + k, Program::kLanes);
  }
  program_.complete(durations, Program::kLanes);
}

void CutTimes::lane_times(std::span<const Cuts> cuts, std::vector<double>& out,
                          std::vector<char>& exact, bool link) {
  constexpr std::size_t kLanes = Program::kLanes;
  out.resize(cuts.size()), exact.resize(cuts.size());
  double times[kLanes];
  char hopeless[kLanes];
  for (std::size_t first = 0; first < cuts.size(); first += kLanes) {
    const auto batch = cuts.subspan(first, std::min(kLanes, cuts.size() - first));
    bool done = costs_.is_narrow();
    if (done) {
      price_lanes(batch, narrow_lanes_, &exact[first], hopeless, link);
      done = program_.makespans(narrow_lanes_, times);
    }
    if (!done) {
      price_lanes(batch, lanes_, &exact[first], hopeless, link);
      program_.makespans(lanes_, times);
    }
    for (std::size_t k = 0; k < batch.size(); ++k)
      out[first + k] = hopeless[k] ? kInfinite : times[k];
  }
  counts_.priced += cuts.size();
}

PathCounts<std::int32_t> CutTimes::critical_path(const Cuts& cuts) {
  price(cuts);
  program_.makespan(durations_, ends_);
  return program_.critical_path(durations_, ends_);
}

}  // namespace pfeife
