// The search as it is now: for every schedule, exact min-max cuts by time (then by time and memory,
// if that does not fit), each candidate evaluated in full, the best kept. Not yet here: bounds,
// local search, unequal placements.
#include "planner/search/search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "planner/ir/error.h"
#include "planner/schedules/families.h"
#include "planner/search/evaluate.h"
#include "planner/search/min_max.h"

namespace pfeife {
namespace {

/// Upper bound of what a stage holds, from prefix sums over layers; steers cuts, never decides
/// feasibility.
class MemoryGuess {
 public:
  explicit MemoryGuess(const Layers& layers)
      : fixed_(layers.size() + 1), saved_(layers.size() + 1) {
    for (std::size_t l = 0; l < layers.size(); ++l) {
      saved_[l + 1] += layers.layers[l].saved.value;
      temporary_ = std::max(temporary_, layers.layers[l].temporary.value);
    }
    for (const LayerStorage& storage : layers.storages)
      saved_[storage.savers.front().index() + 1] += storage.bytes.value;
    for (const LayerParameter& p : layers.parameters)
      if (!p.users.empty())
        fixed_[p.users.front().index() + 1] += (p.bytes + p.gradient + p.state).value;
    for (std::size_t l = 0; l < layers.size(); ++l)
      fixed_[l + 1] += fixed_[l], saved_[l + 1] += saved_[l];
  }
  std::int64_t bytes(std::size_t begin, std::size_t end, std::int64_t live) const {
    return fixed_[end] - fixed_[begin] + live * (saved_[end] - saved_[begin]) + temporary_;
  }

 private:
  std::vector<std::int64_t> fixed_, saved_;  // prefix sums
  std::int64_t temporary_ = 0;
};

/// Highest number of microbatches that each stage has in flight.
std::vector<std::int64_t> peak_live(const Schedule& schedule, std::size_t stages) {
  std::vector<std::int64_t> live(stages, 0), peak(stages, 0);
  for (const auto& row : schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& action) {
        const std::size_t s = action.stage.index();
        if (action.op == Op::Forward) peak[s] = std::max(peak[s], ++live[s]);
        if (action.op == Op::Backward || action.op == Op::BackwardInput) --live[s];
      });
  return peak;
}

/// How much the rank that lacks most lacks; <= 0 if all fit.
struct Excess {
  RankId rank;
  std::int64_t bytes = std::numeric_limits<std::int64_t>::min();
};
Excess excess(const std::vector<Bytes>& peak, const std::vector<Bytes>& limit) {
  Excess worst;
  for (std::size_t r = 0; r < peak.size(); ++r)
    if ((peak[r] - limit[r]).value > worst.bytes)
      worst = {RankId{static_cast<std::int64_t>(r)}, (peak[r] - limit[r]).value};
  return worst;
}

/// What came of one schedule.
struct Attempt {
  std::optional<PlannedSchedule> plan;
  std::optional<Infeasible> closest;
  std::optional<Rejected> rejected;
  std::size_t candidates = 0;
};

/// Tries cuts for one schedule. One object a search; const, so that threads may share it.
class Planner {
 public:
  explicit Planner(const Problem& problem)
      : problem_(problem), sums_(problem.layers, problem.cluster), guess_(problem.layers) {
    for (const ScheduleSpec& spec : problem.schedules) {
      const Placement placement = placed(spec);
      if (!problem.cuts && !equal_time_.contains(placement.rank_of_stage))
        equal_time_[placement.rank_of_stage] =
            equal_time_cuts(problem.layers, placement, problem.cluster);
    }
  }

  Attempt attempt(const ScheduleSpec& spec) const {
    Attempt result;
    const Placement placement = placed(spec);
    const Schedule schedule = generate(spec);
    if (problem_.cuts) {
      if (problem_.cuts->stages() != spec.stages())
        return rejected(spec, stream_all("the given cuts make ", problem_.cuts->stages(),
                                         " stages, it needs ", spec.stages()));
      consider(result, spec, schedule, placement, *problem_.cuts);
      return result;
    }
    const std::optional<Partition>& fastest = equal_time_.at(placement.rank_of_stage);
    if (!fastest)
      return rejected(
          spec, stream_all("the model has no ", spec.stages(), " stages: too few legal cuts"));
    consider(result, spec, schedule, placement, *fastest);
    if (!result.plan) spare_memory(result, spec, schedule, placement, *fastest);
    return result;
  }

 private:
  static Attempt rejected(const ScheduleSpec& spec, std::string reason) {
    Attempt result;
    result.rejected = Rejected{spec, std::move(reason)};
    return result;
  }

  Placement placed(const ScheduleSpec& spec) const {
    Placement placement = placement_for(spec);
    placement.device_of_rank = problem_.device_of_rank;
    return placement;
  }

  void consider(Attempt& result, const ScheduleSpec& spec, const Schedule& schedule,
                const Placement& placement, const Partition& partition) const {
    const EvaluatedPlan plan = evaluate(problem_.layers, problem_.cluster, schedule, placement,
                                        partition, problem_.memory_rule);
    ++result.candidates;
    const Excess lack = excess(plan.peak_memory, problem_.memory_limit);
    if (lack.bytes <= 0) {
      if (!result.plan || plan.estimate < result.plan->estimate)
        result.plan = PlannedSchedule{spec, partition, plan.estimate, plan.peak_memory};
      return;
    }
    if (result.closest && (result.closest->needed - result.closest->available).value <= lack.bytes)
      return;
    const std::size_t r = lack.rank.index();
    result.closest =
        Infeasible{lack.rank, plan.peak_memory[r], problem_.memory_limit[r], spec, partition};
  }

  /// Trades time for memory: the load of a stage is its share of the time plus `weight` times its
  /// share of the memory.
  void spare_memory(Attempt& result, const ScheduleSpec& spec, const Schedule& schedule,
                    const Placement& placement, const Partition& fastest) const {
    const std::vector<std::int64_t> live = peak_live(schedule, spec.stages());
    const auto kind = [&](std::size_t s) {
      return problem_.cluster
          .kind_of_device[placement.device(StageId{static_cast<std::int64_t>(s)}).index()];
    };
    std::int64_t slowest = 1;
    for (std::size_t s = 0; s < spec.stages(); ++s)
      slowest = std::max(
          slowest, sums_.time(kind(s), fastest.begin(s), fastest.end(s, problem_.layers.size())));
    for (const double weight : {0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 32.0, 1000.0}) {
      const auto partition = min_max_partition(
          problem_.layers, spec.stages(),
          [&](std::size_t s, std::size_t begin, std::size_t end) -> std::optional<double> {
            const RankId rank = placement.rank_of_stage[s];
            const auto limit = static_cast<double>(
                std::max<std::int64_t>(1, problem_.memory_limit[rank.index()].value));
            return static_cast<double>(sums_.time(kind(s), begin, end)) /
                       static_cast<double>(slowest) +
                   weight * static_cast<double>(guess_.bytes(begin, end, live[s])) / limit;
          });
      if (partition) consider(result, spec, schedule, placement, *partition);
    }
  }

  const Problem& problem_;
  LayerSums sums_;
  MemoryGuess guess_;
  std::map<std::vector<RankId>, std::optional<Partition>> equal_time_;
};

/// Runs `work(i)` for i < count on `threads` threads.
template <class Work>
void parallel_for(std::size_t count, std::size_t threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::mutex failure_mutex;
  std::exception_ptr failure;
  const auto loop = [&] {
    for (std::size_t i; (i = next++) < count;) try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(failure_mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t t = 1; t < std::min(threads, count); ++t) helpers.emplace_back(loop);
    loop();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

SearchOutcome search(const Problem& problem, const SearchOptions& options) {
  const Planner planner(problem);
  std::vector<Attempt> attempts(problem.schedules.size());
  parallel_for(attempts.size(), options.threads, [&](std::size_t i) {
    attempts[i] = planner.attempt(problem.schedules[i]);
    if (options.progress && options.threads <= 1)
      options.progress(static_cast<double>(i + 1) / static_cast<double>(attempts.size()));
  });

  SearchOutcome outcome;
  std::optional<Infeasible> closest;
  for (Attempt& attempt : attempts) {
    outcome.candidates += attempt.candidates;
    if (attempt.rejected) outcome.rejected.push_back(std::move(*attempt.rejected));
    if (attempt.plan) outcome.plans.push_back(std::move(*attempt.plan));
    if (attempt.closest) {
      const Bytes lack = attempt.closest->needed - attempt.closest->available;
      if (!attempt.plan)
        outcome.rejected.push_back(
            {attempt.closest->spec,
             "rank " + to_string(attempt.closest->rank) + " lacks " + to_string(lack)});
      if (!closest || lack < closest->needed - closest->available)
        closest = std::move(attempt.closest);
    }
  }
  std::ranges::stable_sort(outcome.plans, {}, [](const PlannedSchedule& p) {
    return std::pair{p.estimate, p.spec};
  });
  for (std::size_t i = options.keep; i < outcome.plans.size(); ++i) {
    const Nanoseconds slower = outcome.plans[i].estimate - outcome.plans.front().estimate;
    outcome.rejected.push_back({outcome.plans[i].spec, to_string(slower) + " slower"});
  }
  if (outcome.plans.size() > options.keep) outcome.plans.resize(options.keep);
  if (outcome.plans.empty()) outcome.infeasible = std::move(closest);
  return outcome;
}

}  // namespace pfeife
