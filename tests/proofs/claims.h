// Whether what a plan.yaml claims is true, by brute force over all plans of its class.
#pragma once

#include <map>

#include "planner/cost/estimate/evaluate.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/schedules/families.h"
#include "planner/search/orders/built_orders.h"
#include "tests/proofs/all_orders.h"
#include "tests/proofs/case_folder.h"
#include "tests/search/random_problem.h"

namespace pfeife {

/// The claims about plans of a case: those are brought before it that the judge says are proven.
class Claims {
 public:
  explicit Claims(const CaseFolder& of) : of_(of) {}

  /// What is wrong with a plan that may differ from the case's own; "" = nothing. May say anything:
  /// how it was found, how files are named (as long as they are the same), and, of a model with
  /// times of its own, precision and samples a microbatch, which decide nothing.
  std::string wrong(Plan plan) {
    const Plan& own = of_.plan;
    const Bound bound = plan.bound.value();
    plan.model = own.model, plan.cluster = own.cluster, plan.found = own.found;
    plan.files = own.files, plan.bound = own.bound;
    plan.training.precision = own.training.precision;
    plan.training.microbatch_size = own.training.microbatch_size;
    if (plan != own) return "the plan is another";
    const std::int64_t best = best_of(bound);
    return best >= bound.time.count()
               ? ""
               : stream_all("a plan takes ", best, " ns, and the bound is ", bound.time.count());
  }

 private:
  using Class =
      std::tuple<bool, double, bool, Recompute, std::vector<ScheduleSpec>, std::vector<Bytes>>;

  std::int64_t best_of(const Bound& bound) {
    const auto [at, added] =
        known_.try_emplace({bound.given_cuts, bound.least_share, bound.linked, bound.recompute,
                            bound.schedules, bound.memory_limit},
                           AllOrders::kNone);
    for (std::size_t k = 0; added && k < bound.schedules.size(); ++k) {
      const ScheduleSpec& spec = bound.schedules[k];
      if (refusal(spec) || spec.stages() > of_.layers.size()) continue;
      const auto visit = [&](const Partition& cuts) {
        if (in_class(bound, spec, cuts)) at->second = std::min(at->second, best(bound, spec, cuts));
      };
      if (!bound.given_cuts)
        for_each_partition(of_.layers, spec.stages(), visit);
      else if (spec.stages() == of_.plan.partition.stages())
        visit(of_.plan.partition);
    }
    return at->second;
  }
  static Placement placed(const ScheduleSpec& spec) {
    Placement placement = placement_for(spec);
    placement.device_of_rank = {DeviceId{0}, DeviceId{1}};
    return placement;
  }
  std::int64_t best(const Bound& bound, const ScheduleSpec& spec, const Partition& cuts) const {
    const Placement placement = placed(spec);
    std::int64_t found = AllOrders::kNone;
    for (const std::vector<bool>& recomputed : choices(bound.recompute, spec.stages())) {
      if (is_built(spec)) {
        const StageCosts costs =
            stage_costs(of_.layers, cuts, placement, of_.cluster, {recomputed});
        found = std::min(found, AllOrders(costs, placement, spec.microbatches).best_below(found));
        continue;
      }
      const Prices plan = evaluate(of_.layers, of_.cluster, generate(spec), placement, cuts,
                                   MemoryRule::Lifetimes, {recomputed});
      if (fits(least_peak_memory(plan, placement), bound.memory_limit))
        found = std::min(found, plan.estimate.count());
    }
    return found;
  }
  /// The least loads and links that the bound names.
  bool in_class(const Bound& bound, const ScheduleSpec& spec, const Partition& cuts) const {
    const auto load = [&](std::size_t begin, std::size_t end) {
      double sum = 0;
      for (std::size_t l = begin; l < end; ++l) {
        const LayerTimes& t = of_.layers.layers[l].times[0];
        sum += static_cast<double>((t.forward + t.backward_input + t.backward_weight).count());
        if (bound.recompute == Recompute::Full) sum += static_cast<double>(t.forward.count());
      }
      return sum;
    };
    const Placement placement = placed(spec);
    const StageCosts costs = stage_costs(of_.layers, cuts, placement, of_.cluster);
    const double mean = load(0, of_.layers.size()) / static_cast<double>(spec.stages());
    for (std::size_t s = 0; s < spec.stages(); ++s) {
      if (load(cuts.begin(s), cuts.end(s, of_.layers.size())) <
          std::floor(bound.least_share * mean))
        return false;
      if (!bound.linked || s == 0 || placement.rank_of_stage[s - 1] == placement.rank_of_stage[s])
        continue;
      const StagePair* const pair = find_pair(costs, StageId{s - 1}, StageId{s});
      if (pair == nullptr || !pair->has_gradient) return false;
    }
    return true;
  }

  const CaseFolder& of_;
  std::map<Class, std::int64_t> known_;
};

}  // namespace pfeife
