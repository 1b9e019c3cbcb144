#include "experiments/plans/head_choice.h"

#include <algorithm>

#include "planner/ir/result/head_place.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

const char* place_of(const ScheduleSpec& spec) {
  return spec.family != "file" && shares_head(spec) ? kHeadOnAllRanks : kHeadOnLastRank;
}

/// Why the first schedule of a place without a plan has none.
Reason why_none(const char* place, const Answer& answer, const std::string& undivided) {
  if (place == kHeadOnAllRanks && !undivided.empty())
    return {.why = Why::Impossible, .words = undivided};
  for (const Rejected& rejected : answer.rejected)
    if (place_of(rejected.spec) == place) return rejected.reason;
  return {.why = Why::Impossible, .words = "no such schedule is among plan.families"};
}

}  // namespace

std::string undivided_because(const Request& config, const Layers& layers) {
  if (!layers.words)
    return layers.undivided_because.empty()
               ? "only meshes and layer tables with the column words say what a share costs; "
                 "set plan.head: last"
               : layers.undivided_because;
  if (layers.words->ranks != 0 && layers.words->ranks != config.devices)
    return "its words are divided among " + std::to_string(layers.words->ranks) + " ranks, not " +
           std::to_string(config.devices);
  return "";
}

std::vector<Alternative> head_alternatives(const Request& config, const Layers& layers,
                                           const Answer& answer) {
  if (config.plan.head != PlanSettings::Head::Auto || answer.plans.empty()) return {};
  const std::string undivided = undivided_because(config, layers);
  const Nanoseconds least = answer.plans.front().estimate;
  std::vector<Alternative> found;
  for (const char* place : {kHeadOnLastRank, kHeadOnAllRanks}) {
    Alternative& alternative = found.emplace_back(Alternative{.choice = place});
    const auto best = std::ranges::find_if(
        answer.all, [&](const Priced& plan) { return place_of(plan.spec) == place; });
    if (best == answer.all.end()) {
      alternative.reason = why_none(place, answer, undivided);
      continue;
    }
    alternative.schedule = name_of(*best);
    alternative.estimate = best->estimate;
    alternative.peak_memory = std::ranges::max(best->peak_memory);
    if (place != place_of(answer.plans.front().spec))
      alternative.reason = {.why = Why::Slower, .slower = best->estimate - least};
  }
  if (found.front().reason.why != Why::Chosen) std::swap(found.front(), found.back());
  return found;
}

void choose_head(const EvaluatedCase& evaluated, std::vector<Alternative>& alternatives) {
  const std::string place = place_of(evaluated.planned[evaluated.chosen].plan.spec);
  if (alternatives.size() != 2 || alternatives.back().choice != place) return;
  std::swap(alternatives.front(), alternatives.back());
  alternatives.front().reason = {};
  alternatives.back().reason = {.why = Why::Slower, .by = chosen_by(*evaluated.config)};
}

}  // namespace pfeife
