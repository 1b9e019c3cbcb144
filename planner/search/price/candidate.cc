#include "planner/search/price/candidate.h"

#include "planner/schedules/families.h"

namespace pfeife {

static CandidateParts parts_of(const CutModel& model, const Problem& problem,
                               const ScheduleSpec& spec, const Placement& placement,
                               Schedule compute_only) {
  CutTimes times(model, compute_only, placement, problem.recompute_except_last);
  CutMemory memory(model, problem, compute_only, placement);
  return {model,
          problem,
          PlanJudge(model, problem, spec, placement, std::move(compute_only)),
          std::move(times),
          std::move(memory),
          FoundPlans(problem.memory_limit)};
}

Candidates::Candidates(const CutModel& model, const Problem& problem, const ScheduleSpec& spec)
    : Candidates(model, problem, spec, generate(spec)) {
  if (is_large()) parts_.judge.forget_schedule();
}

Candidates::Candidates(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
                       Schedule compute_only)
    : Candidates(model, problem, spec, placement_for(spec, problem.device_of_rank),
                 std::move(compute_only)) {}

Candidates::Candidates(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
                       const Placement& placement, Schedule compute_only)
    : policy_(recompute_policy(model, problem, compute_only, placement)),
      parts_(parts_of(model, problem, spec, placement, std::move(compute_only))) {}

bool Candidates::is_slow() const {
  const auto* fixed = std::get_if<FixedRecomputation>(&policy_);
  return is_large() || fixed == nullptr || fixed->adds_time();
}

double Candidates::judging() const {
  const auto* blocks = std::get_if<ChosenBlocks>(&policy_);
  return 1500.0 * static_cast<double>(program().compute_nodes()) +
         (blocks ? 1000.0 * static_cast<double>(model().layers().size()) : 0);
}

double Candidates::work_on_reserved() const {
  return 2 * static_cast<double>(parts_.judge.counts().reserve_too_much) * judging();
}

double Candidates::work() const {
  const auto nodes = static_cast<double>(program().compute_nodes());
  const auto* blocks = std::get_if<ChosenBlocks>(&policy_);
  const double choosing = blocks ? static_cast<double>(blocks->chosen()) : 0;
  return static_cast<double>(evaluated()) * (0.4 * nodes + 40.0 * static_cast<double>(stages())) +
         static_cast<double>(judged()) * judging() +
         choosing * 3000.0 * static_cast<double>(live().ranks()) +
         static_cast<double>(parts_.memory.weighed()) *
             (20.0 * static_cast<double>(stages()) + 1.5 * static_cast<double>(live().numbers()));
}

double Candidates::weigh(const Cuts& cuts, double time) {
  if (const double much = excess(cuts); much > 0) return kTooFull + much;
  return std::visit([&](auto& policy) { return policy.weigh(parts_, cuts, time); }, policy_);
}

bool Candidates::offer(const Cuts& cuts, double time) {
  if (!parts_.found.would_be_best(cuts, time) || parts_.found.is_set_aside(cuts)) return false;
  return std::visit([&](auto& policy) { return policy.offer(parts_, cuts, time); }, policy_);
}

/// What a policy has learnt of memory goes to another of the same problem.
static void learn(RecomputePolicy& policy, const RecomputePolicy& other) {
  std::visit([&](auto& mine) { mine.learn(std::get<std::remove_cvref_t<decltype(mine)>>(other)); },
             policy);
}

void Candidates::join(Candidates& copy) {
  const bool judged = copy.judged() > 0;
  if (judged) learn(policy_, copy.policy_);
  parts_.memory.join(copy.parts_.memory, judged);
  parts_.times.add(copy.parts_.times.take_counts());
  parts_.judge.add(copy.parts_.judge.take_counts());
  if (auto* blocks = std::get_if<ChosenBlocks>(&policy_))
    blocks->add_chosen(std::get<ChosenBlocks>(copy.policy_).take_chosen());
  parts_.found.join(copy.parts_.found);
}

void Candidates::follow(const Candidates& original) {
  parts_.times.take_counts();
  parts_.judge.take_counts();
  if (auto* blocks = std::get_if<ChosenBlocks>(&policy_)) blocks->take_chosen();
  learn(policy_, original.policy_);
  parts_.memory.follow(original.parts_.memory);
  parts_.found = original.parts_.found;
}

}  // namespace pfeife
