#include "experiments/plans/reasons.h"

#include <algorithm>

#include "experiments/plans/head_choice.h"
#include "planner/ir/basics/decimals.h"
#include "planner/search/price/lack.h"

namespace pfeife {
namespace {

/// What the search, which looks at estimates, says of a schedule or an alternative, said of the
/// chosen plan. `time`: the plan's; no step, simulated or not, is below a bound on estimates.
Reason beside_chosen(Reason reason, const std::optional<Nanoseconds>& bound, Nanoseconds time,
                     const EvaluatedCase& evaluated) {
  if (evaluated.chosen == 0) return reason;
  if (bound && *bound >= time) return {.why = Why::RuledOut};
  reason.beside_least = reason.why == Why::RuledOut || reason.why == Why::Slower;
  return reason;
}

/// "its bubble of 24.1 %".
std::string bubble_text(double bubble) { return "its bubble of " + fixed(100 * bubble, 1) + " %"; }

/// The search's other good plans, and the schedules that it rejected, beside the chosen plan.
std::vector<LostSchedule> lost_schedules(const EvaluatedCase& evaluated) {
  std::vector<LostSchedule> lost;
  const SelectBy by = compared_by(evaluated.planned, chosen_by(*evaluated.config));
  const Evaluation& plan = evaluated.planned[evaluated.chosen];
  const Nanoseconds chosen = time_by(plan, by);
  const PlanRule rule = evaluated.config->plan.rule();
  // Several plans of a schedule may have been tried.
  std::vector<ScheduleSpec> named{plan.plan.spec};
  const auto is_new = [&](const ScheduleSpec& spec) {
    const bool found = std::ranges::find(named, spec) == named.end();
    if (found) named.push_back(spec);
    return found;
  };
  for (const Evaluation& other : evaluated.planned)
    if (is_new(other.plan.spec)) {
      Reason reason = slower_by(time_by(other, by) - chosen);
      if (*reason.slower <= Nanoseconds{0} && other.fits()) {  // counts as fast, and is fuller
        reason.why = Why::Fuller;
        reason.lacking =
            std::ranges::max(other.plan.peak_memory) - std::ranges::max(plan.plan.peak_memory);
      }
      reason.by = by;
      if (const double idle = merits_by(other, by).bubble; !rule.allows(idle))
        reason = impossible(bubble_text(idle) + " is above plan.max_bubble");
      lost.push_back({name_of(other.plan), other.plan.spec.family, reason, std::nullopt});
    }
  for (const Rejected& rejected : evaluated.answer().rejected)
    if (is_new(rejected.spec))
      lost.push_back({schedule_name(rejected.spec), rejected.spec.family,
                      beside_chosen(rejected.reason, rejected.bound, chosen, evaluated),
                      rejected.bound});
  return lost;
}

/// The plan that would be taken if any bubble were allowed, and how much faster it is.
std::optional<Alternative> without_bubble_limit(const EvaluatedCase& evaluated) {
  PlanRule rule = evaluated.config->plan.rule();
  rule.max_bubble.reset();
  const SelectBy by = compared_by(evaluated.planned, chosen_by(*evaluated.config));
  const std::size_t number = select(evaluated.planned, by, rule);
  if (number == evaluated.chosen) return std::nullopt;
  const Evaluation &plan = evaluated.planned[number], &chosen = evaluated.planned[evaluated.chosen];
  const PlanMerits figures = merits_by(plan, by);
  const Nanoseconds costs = time_by(chosen, by) - figures.time;
  return Alternative{
      .choice = "any bubble",
      .schedule = name_of(plan.plan),
      .estimate = step_time(plan.estimated),
      .peak_memory = std::ranges::max(plan.plan.peak_memory),
      .reason = impossible(to_string(costs) + " (" +
                           fixed(100 * seconds(costs) / seconds(figures.time), 1) + " %) faster" +
                           (by == SelectBy::Estimate ? "" : " (" + to_string(by) + ")") + ", but " +
                           bubble_text(figures.bubble) + " is above plan.max_bubble")};
}

/// What the case left open, beside the chosen plan.
std::vector<Alternative> judged_alternatives(const EvaluatedCase& evaluated) {
  std::vector<Alternative> judged = evaluated.answer().alternatives;
  const Evaluation& plan = evaluated.planned[evaluated.chosen];
  if (!plan.possible()) return judged;
  choose_head(evaluated, judged);
  if (evaluated.config->plan.max_bubble)
    if (auto faster = without_bubble_limit(evaluated)) {
      if (judged.empty())
        judged.push_back({.choice = "a bubble of at most " +
                                    fixed(100 * *evaluated.config->plan.max_bubble, 1) + " %"});
      judged.push_back(std::move(*faster));
    }
  for (Alternative& alternative : judged) {
    if (alternative.reason.why == Why::Chosen) {
      alternative.schedule = name_of(plan.plan);
      alternative.estimate = step_time(plan.estimated);
      alternative.peak_memory = std::ranges::max(plan.plan.peak_memory);
    } else {
      // What is open is settled by estimates.
      alternative.reason = beside_chosen(alternative.reason, alternative.bound,
                                         step_time(plan.estimated), evaluated);
    }
  }
  return judged;
}

}  // namespace

std::vector<PlanChoice> choices_of(const EvaluatedCase& evaluated) {
  if (!evaluated.planned.front().possible()) return {};
  std::vector<SelectBy> ways{SelectBy::Estimate};
  if (evaluated.planned.front().simulated) ways.push_back(SelectBy::Simulate);
  if (p95(evaluated.planned.front())) ways.push_back(SelectBy::P95);
  std::vector<PlanChoice> choices;
  for (const SelectBy way : ways) {
    PlanChoice choice{.by = way,
                      .number = select(evaluated.planned, way, evaluated.config->plan.rule())};
    const Evaluation& plan = evaluated.planned[choice.number];
    choice.schedule = name_of(plan.plan);
    choice.estimate = step_time(plan.estimated);
    if (plan.simulated) choice.simulate = step_time(*plan.simulated);
    choice.p95 = p95(plan);
    choice.used = way == chosen_by(*evaluated.config);
    choices.push_back(std::move(choice));
  }
  return choices;
}

RecordedAnswer recorded_answer(const EvaluatedCase& evaluated) {
  RecordedAnswer answer = evaluated.answer();
  answer.lost = lost_schedules(evaluated);
  answer.alternatives = judged_alternatives(evaluated);
  const Evaluation& chosen = evaluated.planned[evaluated.chosen];
  for (const auto& [name, plan] : evaluated.handed)
    if (answer.handed_from.empty() && chosen.choice && *chosen.choice == plan)
      answer.handed_from = name;
  return answer;
}

}  // namespace pfeife
