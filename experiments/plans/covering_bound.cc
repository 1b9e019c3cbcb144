#include "experiments/plans/covering_bound.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "planner/schedules/families.h"

namespace pfeife {
namespace {

/// A class of plans and the bound on it.
struct BoundedClass {
  Bound bound;
  std::set<ScheduleSpec> any_order;  ///< whose placements are covered in every action order
};

std::optional<BoundedClass> main_class(const Answer& answer) {
  std::optional<Bound> bound = plan_bound(answer);
  if (!bound) return std::nullopt;
  BoundedClass found{*std::move(bound), answer.uncertified.any_order};
  for (const ScheduleSpec& spec : found.bound.schedules)
    if (spec.family != "file" && family(spec.family).built_for_costs) found.any_order.insert(spec);
  for (const Covered& covered : answer.covered)
    found.any_order.insert(covered.any_order.begin(), covered.any_order.end());
  return found;
}

/// What the search's bound leaves out, with its own.
std::optional<BoundedClass> left_out(const Answer& answer) {
  const auto part = std::ranges::find_if(
      answer.covered, [](const Covered& covered) { return !covered.left_out.empty(); });
  if (!answer.bound || part == answer.covered.end()) return std::nullopt;
  BoundedClass found{*answer.bound, {}};
  found.bound.time = part->left_out_bound;
  found.bound.schedules.assign(part->left_out.begin(), part->left_out.end());
  return found;
}

bool overlaps(const Schedule& schedule) {
  return std::ranges::any_of(schedule.rows, [](const std::vector<Cell>& row) {
    return std::ranges::any_of(
        row, [](const Cell& cell) { return std::holds_alternative<Overlap>(cell); });
  });
}

/// The plan's rows are an action order of whole microbatches on the stages of one of `schedules`.
bool is_an_order_of(const std::set<ScheduleSpec>& schedules, const Evaluation& plan) {
  const ScheduleSpec& own = plan.plan.spec;
  if (own.slices > 1) return false;
  if (!plan.inputs.layers->collectives.empty() && overlaps(plan.plan.schedule)) return false;
  return std::ranges::any_of(schedules, [&](const ScheduleSpec& spec) {
    return spec.slices == 1 && spec.microbatches == own.microbatches &&
           placement_for(spec).rank_of_stage == plan.plan.placement.rank_of_stage;
  });
}

/// `in_turn`: orders are covered that take microbatches in turn alone, as those built for costs do.
bool has_schedule(const BoundedClass& of, bool in_turn, const Evaluation& plan) {
  if (listed_as(plan.plan.spec, of.bound.schedules) != nullptr) return true;
  return in_turn ? of.any_order.contains(plan.plan.spec) : is_an_order_of(of.any_order, plan);
}

bool has_recomputation(const Bound& bound, bool except_last, const Evaluation& plan) {
  const Activations& activations = plan.plan.activations;
  const bool all = std::ranges::all_of(activations.stages, std::identity{});
  const bool any_stage = std::ranges::any_of(activations.stages, std::identity{});
  if (activations.recomputes() && activations.except_last != except_last) return false;
  switch (bound.recompute) {
    case Recompute::None:
      return !activations.recomputes();
    case Recompute::Full:
      return all && any_stage;
    case Recompute::Blocks:  // which blocks, and whether stages, the search knows
      return plan.origin == Origin::Search || !activations.recomputes();
    default:
      return activations.blocks.empty();
  }
}

/// ns of F and B of a microbatch: layers [begin, end) on the device of a rank.
double load(const Evaluation& plan, RankId rank, std::size_t begin, std::size_t end,
            Recompute recompute) {
  const Cluster& cluster = *plan.inputs.cluster;
  const std::size_t kind = cluster.kind_of_device[plan.plan.placement.device(rank).index()];
  double sum = 0;
  for (std::size_t l = begin; l < end; ++l) {
    const LayerTimes& times = plan.inputs.layers->layers[l].times[kind];
    sum +=
        static_cast<double>((times.forward + times.backward_input + times.backward_weight).count());
    if (recompute == Recompute::Full) sum += static_cast<double>(times.forward.count());
  }
  return sum;
}

bool is_linked(const Evaluation& plan, StageId from, StageId to) {
  const Placement& placement = plan.plan.placement;
  if (placement.rank(from) == placement.rank(to)) return true;
  const StagePair* const pair = find_pair(plan.costs, from, to);
  return pair != nullptr && (pair->has_gradient || plan.inputs.layers->mode == Mode::Forward);
}

bool has_cuts(const Bound& bound, const Partition& given, const Evaluation& plan) {
  const Partition& cuts = plan.plan.partition;
  if (bound.given_cuts && cuts != given) return false;
  const std::size_t stages = cuts.stages(), layers = plan.inputs.layers->size();
  for (std::size_t s = 0; s < stages; ++s) {
    const RankId rank = plan.plan.placement.rank_of_stage[s];
    const auto load_of = [&](std::size_t begin, std::size_t end) {
      return load(plan, rank, begin, end, bound.recompute);
    };
    if (bound.least_share > 0 &&
        load_of(cuts.begin(s), cuts.end(s, layers)) <
            std::floor(bound.least_share * load_of(0, layers) / static_cast<double>(stages)))
      return false;
    if (bound.linked && s > 0 && !is_linked(plan, StageId{s - 1}, StageId{s})) return false;
  }
  return true;
}

/// All that a class has besides schedules.
bool has_the_rest(const EvaluatedCase& evaluated, const Bound& bound, const Evaluation& plan) {
  const std::vector<Covered>& covered = evaluated.answer().covered;
  const auto is_said = [&](bool Covered::*what) {
    return std::ranges::any_of(covered, [&](const Covered& part) { return part.*what; });
  };
  if (plan.plan.activations.offloads() && !is_said(&Covered::offload)) return false;
  return has_recomputation(bound, is_said(&Covered::except_last), plan) &&
         plan.plan.peak_memory.size() == bound.memory_limit.size() &&
         fits(plan.plan.peak_memory, bound.memory_limit) &&
         has_cuts(bound, evaluated.planned.front().plan.partition, plan);
}

struct ClassOfPlan : BoundedClass {
  bool left_out = false;  ///< by the search's own bound
};

std::optional<ClassOfPlan> class_of(const EvaluatedCase& evaluated, const Evaluation& plan) {
  if (!plan.possible()) return std::nullopt;
  const Answer& answer = evaluated.answer();
  const auto has = [&](const std::optional<BoundedClass>& of, bool in_turn) {
    return of && has_schedule(*of, in_turn, plan) && has_the_rest(evaluated, of->bound, plan);
  };
  if (auto own = main_class(answer); has(own, answer.uncertified.in_turn))
    return ClassOfPlan{*std::move(own), false};
  if (auto others = left_out(answer); has(others, /*in_turn=*/true))
    return ClassOfPlan{*std::move(others), true};
  return std::nullopt;
}

}  // namespace

const ScheduleSpec* listed_as(const ScheduleSpec& spec, std::span<const ScheduleSpec> listed) {
  for (const ScheduleSpec& known : listed)
    if (known == spec ||
        (known.family == spec.family && known.stages_per_rank == spec.stages_per_rank &&
         spec.family != "file" && !family(spec.family).built_for_costs &&
         generate(known) == generate(spec)))
      return &known;
  return nullptr;
}

std::string class_name(const Bound& bound, bool any_order) {
  const std::set<ScheduleSpec> schedules(bound.schedules.begin(), bound.schedules.end());
  const std::string families = class_name(schedules);
  const bool counted = families.ends_with(" families");
  return families + (any_order && !counted ? " in any order" : "") +
         (bound.given_cuts ? " with the given cuts" : "");
}

std::optional<Bound> bound_for(const EvaluatedCase& evaluated, const Evaluation& plan) {
  std::optional<ClassOfPlan> found = class_of(evaluated, plan);
  return found ? std::optional(std::move(found->bound)) : std::nullopt;
}

std::optional<CoveringBound> covering_bound(const EvaluatedCase& evaluated,
                                            const Evaluation& plan) {
  std::optional<ClassOfPlan> found = class_of(evaluated, plan);
  if (!found) return std::nullopt;
  const bool any_order = !found->any_order.empty() && !evaluated.answer().uncertified.in_turn;
  found->bound.schedules.insert(found->bound.schedules.end(), found->any_order.begin(),
                                found->any_order.end());
  return CoveringBound{found->bound.time, class_name(found->bound, any_order)};
}

std::string covered_text(const EvaluatedCase& evaluated, const Evaluation& plan) {
  const std::optional<ClassOfPlan> found = class_of(evaluated, plan);
  if (!found) return "";
  return found->left_out ? left_out_text(evaluated.answer()) : covered_text(evaluated.answer());
}

}  // namespace pfeife
