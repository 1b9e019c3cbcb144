#include "planner/search/price/hidden_collectives.h"

#include <algorithm>
#include <cmath>

#include "planner/schedules/families.h"

namespace pfeife {
namespace {

/// The least share of a stage's forwards, or of its backwards, that are alone in their cells.
double alone_share(const ScheduleSpec& spec) {
  const Schedule schedule = generate(spec);
  std::vector<std::size_t> forward(spec.stages(), 0), backward = forward;
  for (const std::vector<Cell>& row : schedule.rows)
    for (const Cell& cell : row) {
      const auto* action = std::get_if<Action>(&cell);
      if (action == nullptr) continue;
      if (action->op == Op::Forward) ++forward[action->stage.index()];
      if (makes_input_gradient(action->op)) ++backward[action->stage.index()];
    }
  const std::size_t fewest =
      std::min(*std::ranges::min_element(forward), *std::ranges::min_element(backward));
  return static_cast<double>(fewest) / static_cast<double>(spec.microbatches);
}

Nanoseconds part(double share, Nanoseconds of) {
  return Nanoseconds{
      static_cast<std::int64_t>(std::floor(share * static_cast<double>(of.count())))};
}

/// Layers that take `computes` of what they compute and `waits` of their collectives.
Layers weighed(Layers layers, double computes, double waits) {
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerCollectives& hidden = layers.collectives[l];
    Nanoseconds least_less = Nanoseconds::max();  // of a backward
    for (LayerTimes& times : layers.layers[l].times) {
      const Nanoseconds before = times.backward_input + times.backward_weight;
      times.forward = part(computes, times.forward - hidden.forward) + part(waits, hidden.forward);
      times.backward_input =
          part(computes, times.backward_input - hidden.backward) + part(waits, hidden.backward);
      times.backward_weight = part(computes, times.backward_weight);
      least_less = std::min(least_less, before - times.backward_input - times.backward_weight);
    }
    if (!layers.reductions.empty()) layers.reductions[l].beside -= least_less;
  }
  layers.collectives.clear(), layers.steps.clear();
  layers.overlap_factor = 1;
  return layers;
}

}  // namespace

bool hides_collectives(const Layers& layers, const ScheduleSpec& spec) {
  return !layers.collectives.empty() && family(spec.family).side_by_side;
}

bool hides_collectives(const Problem& problem) {
  return std::ranges::any_of(problem.schedules, [&](const ScheduleSpec& spec) {
    return hides_collectives(problem.layers, spec);
  });
}

double longest_side_by_side(const Problem& problem,
                            const std::function<double(const Problem&)>& bound) {
  const Layers& own = problem.layers;
  double alone = own.steps.empty() ? 1 : 0;
  for (const ScheduleSpec& spec : problem.schedules)
    if (hides_collectives(problem.layers, spec)) alone = std::min(alone, alone_share(spec));
  double longest = 0;
  for (const double v : {1.0, 0.5, 0.0}) {
    const double computes = v + alone * (1 - v), waits = 1 - v + alone * v;
    const Layers layers = weighed(problem.layers, computes, waits);
    Cluster cluster = problem.cluster;
    for (DeviceKind& kind : cluster.kinds)
      kind.stage_overhead = part(computes, kind.stage_overhead);
    longest = std::max(longest, bound(with_cluster(with_layers(problem, layers), cluster)));
    if (problem.recomputes_all()) break;
  }
  return longest;
}

}  // namespace pfeife
