#include "planner/search/price/known_stages.h"

#include <algorithm>

#include "planner/search/price/numbers.h"

namespace pfeife {
KnownStages::KnownStages(const CutModel& model, const Placement& placement) {
  if (placement.stages() == placement.ranks()) return;
  for (const LayerParameter& parameter : model.layers().parameters)
    for (const LayerId user : parameter.users)
      if (model.segment(user) != model.segment(parameter.users.front())) shares_parameters_ = true;
}

void KnownStages::learn(const Cuts& cuts, const StageCosts& costs) {
  std::vector<Memory*> fresh(costs.stages.size(), nullptr);
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    const auto [at, added] = stages_.try_emplace({cuts[s], cuts[s + 1]});
    if (!added) continue;
    const StageCost& cost = costs.stages[s];
    const PassBytes& more = cost.temporary;
    at->second = {.fixed = number(cost.fixed()),
                  .saved = number(cost.saved),
                  .weight_saved = number(cost.weight_saved),
                  .temporary = {number(more.forward), number(more.backward), number(more.input),
                                number(more.weight)}};
    fresh[s] = &at->second;
  }
  for (const StageValue& value : costs.values) {
    if (Memory* const from = fresh[value.from.index()]) {
      if (!value.saved_by_sender) from->leaving += number(value.bytes);
      from->gradients += number(value.gradient_bytes);
    }
    for (std::size_t i = 0; i < value.to.size(); ++i)
      if (Memory* const to = fresh[value.to[i].index()])
        (value.saved_by_receiver[i] ? to->saved_from_others : to->entering) += number(value.bytes);
  }
}

double KnownStages::held(const Memory& stage, const LiveMoment& moment, std::size_t at) const {
  // Several stages of one rank may hold the same value, which counts once: there, only what a stage
  // has made itself is sure.
  const bool alone = moment.saved.size() == 1;
  double bytes = stage.fixed + moment.weight_saved[at] * stage.weight_saved +
                 moment.saved[at] * (stage.saved - (alone ? 0 : stage.saved_from_others));
  if (moment.running != static_cast<std::int32_t>(at)) return bytes;
  bytes += stage.temporary[static_cast<std::size_t>(moment.op)];
  if (moment.op == Op::Forward) bytes += stage.leaving + (alone ? stage.entering : 0);
  if (makes_input_gradient(moment.op)) bytes += stage.gradients;
  return bytes;
}

std::optional<double> KnownStages::peak(const LiveMemory& live, const Cuts& cuts,
                                        std::size_t rank) const {
  if (shares_parameters_) return std::nullopt;
  std::vector<const Memory*> known;
  for (const std::size_t s : live.stages(rank)) {
    const auto found = stages_.find({cuts[s], cuts[s + 1]});
    if (found == stages_.end()) return std::nullopt;
    known.push_back(&found->second);
  }
  double highest = 0;
  for (const LiveMoment& moment : live.moments(rank)) {
    double bytes = 0;
    for (std::size_t at = 0; at < known.size(); ++at) bytes += held(*known[at], moment, at);
    highest = std::max(highest, bytes);
  }
  return highest;
}

}  // namespace pfeife
