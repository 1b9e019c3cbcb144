#include "planner/cost/stages/hidden_communication.h"

#include <map>

#include "planner/cost/stages/recomputed_layers.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/cost/stages/stage_steps.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

class CommunicationSums {
 public:
  CommunicationSums(const Layers& layers, const Plan& plan, const Cluster& cluster)
      : costs_(stage_costs(layers, plan, cluster)),
        stages_(stage_steps(recomputed_layers(layers, plan.partition, plan.activations.blocks),
                            plan.partition, plan.placement, cluster, costs_.stages)) {}

  CommunicationTimes of_rows(const Schedule& schedule) {
    for (const std::vector<Cell>& row : schedule.rows)
      for (const Cell& cell : row) {
        const bool is_pair = std::holds_alternative<Overlap>(cell);
        for_each_action(cell, [&](const Action& action) { add(action, !is_pair); });
        if (is_pair) add_exposed(std::get<Overlap>(cell));
      }
    const auto ranks = static_cast<std::int64_t>(schedule.rows.size());
    for (std::size_t kind = 0; kind < kWorkKinds; ++kind)
      sums_.all[kind] /= ranks, sums_.exposed[kind] /= ranks;
    return sums_;
  }

 private:
  void add(const Action& action, bool exposed) {
    const bool onward = action.op == Op::Forward;
    if (!onward && !makes_input_gradient(action.op)) return;
    for (const PassStep& step : stages_[action.stage.index()].steps) {
      if (!communicates(step.kind)) continue;
      const auto kind = static_cast<std::size_t>(step.kind);
      const Nanoseconds time = onward ? step.forward : step.backward;
      sums_.all[kind] += time;
      if (exposed) sums_.exposed[kind] += time;
    }
  }
  void add_exposed(const Overlap& pair) {
    const Action *onward = nullptr, *back = nullptr;
    for (const Action& action : pair.parts) {
      if (action.op == Op::Forward) onward = &action;
      if (makes_input_gradient(action.op)) back = &action;
    }
    if (onward == nullptr || back == nullptr) return;
    const BackwardPart part = back->op == Op::Backward ? BackwardPart::Whole : BackwardPart::Input;
    const auto [found, is_new] = known_.try_emplace({onward->stage, back->stage, part});
    if (is_new)
      found->second = run_streams(side_by_side_program(stages_[onward->stage.index()],
                                                       stages_[back->stage.index()], part,
                                                       costs_.overlap_factor))
                          .exposed;
    for (std::size_t kind = 0; kind < kWorkKinds; ++kind)
      sums_.exposed[kind] += found->second[kind];
  }

  const StageCosts costs_;
  const std::vector<StageSteps> stages_;
  std::map<std::tuple<StageId, StageId, BackwardPart>, std::array<Nanoseconds, kWorkKinds>> known_;
  CommunicationTimes sums_;
};

std::string ms(Nanoseconds time) { return fixed(milliseconds(time), 1) + " ms"; }

}  // namespace

CommunicationTimes communication_times(const Layers& layers, const Plan& plan,
                                       const Cluster& cluster) {
  return CommunicationSums(layers, plan, cluster).of_rows(plan.schedule);
}

std::string to_string(const CommunicationTimes& times) {
  Nanoseconds all{0}, exposed{0};
  std::string parts;
  for (std::size_t kind = 0; kind < kWorkKinds; ++kind) {
    all += times.all[kind], exposed += times.exposed[kind];
    if (times.exposed[kind] > Nanoseconds{0})
      parts += (parts.empty() ? ": " : ", ") + to_string(static_cast<WorkKind>(kind)) + " " +
               ms(times.exposed[kind]);
  }
  if (all == Nanoseconds{0}) return "";
  return "collectives within stages, estimated, a rank's mean: " + ms(all) +
         " a step, of which compute hides " + ms(all - exposed) + "; nothing hides " + ms(exposed) +
         parts;
}

}  // namespace pfeife
