#include "planner/search/candidate.h"

#include <algorithm>
#include <limits>

#include "planner/ir/error.h"
#include "planner/schedules/families.h"
#include "planner/search/evaluate.h"

namespace pfeife {
namespace {

Placement placed(const Problem& problem, const ScheduleSpec& spec) {
  Placement placement = placement_for(spec);
  placement.device_of_rank = problem.device_of_rank;
  return placement;
}

}  // namespace

Candidates::Candidates(const CutModel& model, const Problem& problem, const ScheduleSpec& spec)
    : Candidates(model, problem, spec, generate(spec)) {}

Candidates::Candidates(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
                       Schedule compute_only)
    : model_(model),
      problem_(problem),
      spec_(spec),
      placement_(placed(problem, spec)),
      schedule_(std::move(compute_only)),
      program_(schedule_, placement_),
      costs_(model, placement_),
      live_(schedule_, placement_),
      durations_(program_.durations()),
      above_bound_(placement_.ranks(), 0.0),
      best_time_(std::numeric_limits<double>::infinity()) {}

CutCosts::Priced Candidates::price(const Cuts& cuts) {
  ++evaluated_;
  const CutCosts::Priced priced = costs_.price(cuts, program_, durations_.data(), 1);
  program_.complete(durations_.data(), 1);
  return priced;
}

double Candidates::full_time(const Cuts& cuts) {
  const EvaluatedPlan plan = evaluate(model_.layers(), model_.cluster(), schedule_, placement_,
                                      model_.partition(cuts), problem_.memory_rule);
  return static_cast<double>(plan.estimate.count());
}

double Candidates::time(const Cuts& cuts) {
  const CutCosts::Priced priced = price(cuts);
  return priced.exact ? program_.makespan(durations_, ends_, priced.tail) : full_time(cuts);
}

void Candidates::times(std::span<const Cuts> cuts, std::vector<double>& out, double enough) {
  constexpr std::size_t kLanes = Program::kLanes;
  out.resize(cuts.size());
  lanes_.resize(program_.durations() * kLanes);
  double lane_times[kLanes];
  for (std::size_t first = 0; first < cuts.size(); first += kLanes) {
    const std::size_t used = std::min(kLanes, cuts.size() - first);
    std::array<bool, kLanes> alone{};
    for (std::size_t k = 0; k < used; ++k) {
      const CutCosts::Priced priced =
          costs_.price(cuts[first + k], program_, lanes_.data() + k, kLanes);
      alone[k] = !priced.exact || priced.tail != nullptr;
    }
    evaluated_ += used;
    program_.complete(lanes_.data(), kLanes);
    program_.makespans(lanes_.data(), scratch_, lane_times);
    for (std::size_t k = 0; k < used; ++k)
      out[first + k] = alone[k] && lane_times[k] < enough ? time(cuts[first + k]) : lane_times[k];
  }
}

PathCounts<std::int32_t> Candidates::critical_path(const Cuts& cuts) {
  price(cuts);
  program_.makespan(durations_, ends_);
  return program_.critical_path(durations_, ends_);
}

double Candidates::excess(const Cuts& cuts) const {
  double worst = -std::numeric_limits<double>::infinity();
  for (std::size_t r = 0; r < live_.ranks(); ++r)
    worst = std::max(worst, live_.peak(model_, cuts, r) + above_bound_[r] -
                                static_cast<double>(problem_.memory_limit[r].value));
  return worst;
}

bool Candidates::surely_too_full(const Cuts& cuts) const {
  for (std::size_t r = 0; r < live_.ranks(); ++r)
    if (live_.peak(model_, cuts, r) > static_cast<double>(problem_.memory_limit[r].value))
      return true;
  return false;
}

bool Candidates::offer(const Cuts& cuts, double time) {
  if (time > best_time_ || (time == best_time_ && cuts >= best_cuts_)) return false;
  if (refused_.contains(cuts)) return false;
  EvaluatedPlan plan = evaluate(model_.layers(), model_.cluster(), schedule_, placement_,
                                model_.partition(cuts), problem_.memory_rule);
  PFEIFE_CHECK(static_cast<double>(plan.estimate.count()) == time, "the search priced cuts at ",
               time, " ns, the estimator at ", plan.estimate.count());
  bool fits = true;
  for (std::size_t r = 0; r < plan.peak_memory.size(); ++r) {
    const Bytes lack = plan.peak_memory[r] - problem_.memory_limit[r];
    if (lack <= Bytes{0}) continue;
    above_bound_[r] = static_cast<double>(plan.peak_memory[r].value) - live_.peak(model_, cuts, r);
    fits = false;
  }
  if (fits) {
    best_ =
        PlannedSchedule{spec_, model_.partition(cuts), plan.estimate, std::move(plan.peak_memory)};
    best_cuts_ = cuts, best_time_ = time;
    return true;
  }
  refused_.insert(cuts);
  std::size_t worst = 0;
  for (std::size_t r = 1; r < plan.peak_memory.size(); ++r)
    if (plan.peak_memory[r] - problem_.memory_limit[r] >
        plan.peak_memory[worst] - problem_.memory_limit[worst])
      worst = r;
  const Bytes lack = plan.peak_memory[worst] - problem_.memory_limit[worst];
  if (!closest_ || lack < closest_->needed - closest_->available)
    closest_ = Infeasible{RankId{static_cast<std::int64_t>(worst)}, plan.peak_memory[worst],
                          problem_.memory_limit[worst], spec_, model_.partition(cuts)};
  return false;
}

}  // namespace pfeife
