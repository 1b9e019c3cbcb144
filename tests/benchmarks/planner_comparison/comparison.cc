#include "tests/benchmarks/planner_comparison/comparison.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "planner/cost/estimate/evaluate.h"
#include "planner/schedules/families.h"
#include "planner/search/cuts/min_max.h"
#include "planner/search/reference/reference.h"

namespace pfeife {

namespace {

/// Judges a schedule with its cuts by our estimate and memory rule.
JudgedPlan judge(const InstanceReader::Instance& instance, const ScheduleSpec& spec,
                 const Partition& cuts) {
  const Placement placement = placement_for(spec, instance.device_of_rank);
  const Prices plan =
      evaluate(*instance.layers, *instance.cluster, generate(spec), placement, cuts);
  JudgedPlan planned{true, plan.estimate, schedule_name(spec)};
  for (std::size_t r = 0; r < plan.peak_memory.size(); ++r)
    planned.fits = planned.fits && plan.peak_memory[r] <= instance.memory_limit[r];
  return planned;
}
/// Seconds since the last call.
class Stopwatch {
 public:
  double lap() {
    const auto before = std::exchange(begin_, std::chrono::steady_clock::now());
    return std::chrono::duration<double>(begin_ - before).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

JudgedPlan none(const std::string& reason) { return {false, {}, reason}; }

JudgedPlan reference(const InstanceReader::Instance& instance, std::size_t microbatches,
                     const std::vector<std::size_t>& stages_per_rank, bool own_memory) {
  Problem problem = instance.problem(
      reference_set(instance.device_of_rank.size(), microbatches, stages_per_rank));
  if (own_memory) {
    problem.memory_rule = MemoryRule::Reference;
    for (Bytes& limit : problem.memory_limit) limit = Bytes{limit.value / 20 * 17};
  }
  const Answer outcome = reference_search(problem);
  if (outcome.plans.empty()) return none("no plan");
  return judge(instance, outcome.plans[0].spec, outcome.plans[0].partition);
}

JudgedPlan one_f_one_b(const InstanceReader::Instance& instance, std::size_t microbatches,
                       const std::optional<Partition>& cuts) {
  if (!cuts) return none("too few legal cuts");
  return judge(instance, {"1f1b", instance.device_of_rank.size(), microbatches, 1, {}, {0}}, *cuts);
}

}  // namespace

PlannerComparison compare(const InstanceReader::Instance& instance, std::size_t microbatches,
                          const std::vector<std::size_t>& stages_per_rank, std::size_t effort) {
  const std::size_t ranks = instance.device_of_rank.size();
  const Layers& layers = *instance.layers;
  PlannerComparison result;
  std::vector<std::string> names;
  for (const Family& family : families()) names.push_back(family.name);
  Stopwatch watch;
  const Answer outcome =
      search(instance.problem(search_set(ranks, microbatches, stages_per_rank, names)),
             {.iterations = effort});
  result.search_s = watch.lap();
  if (outcome.plans.empty()) {
    result.proven_infeasible = outcome.infeasible && outcome.infeasible->proven;
    result.ours = none(result.proven_infeasible ? "nothing fits (proven)" : "none found");
  } else {
    const Priced& best = outcome.plans[0];
    result.ours = {true, best.estimate, schedule_name(best.spec)};
  }
  result.bound = outcome.bound;
  const auto kind = [&](std::size_t l) -> const LayerTimes& { return layers.layers[l].times[0]; };
  const auto time = [&](std::size_t l) {
    const LayerTimes& t = kind(l);
    return static_cast<double>((t.forward + t.backward_input + t.backward_weight).count());
  };
  Placement placement = round_robin(ranks, ranks);
  placement.device_of_rank = instance.device_of_rank;
  watch.lap();
  JudgedPlan reference_plan = reference(instance, microbatches, stages_per_rank, false);
  result.reference_s = watch.lap();
  result.others = {
      std::move(reference_plan), reference(instance, microbatches, stages_per_rank, true),
      one_f_one_b(instance, microbatches, equal_time_cuts(layers, placement, *instance.cluster)),
      one_f_one_b(instance, microbatches, cuts_by_share(layers, ranks, time)),
      one_f_one_b(instance, microbatches,
                  cuts_by_share(layers, ranks, [](std::size_t) { return 1.0; }))};
  return result;
}

}  // namespace pfeife
