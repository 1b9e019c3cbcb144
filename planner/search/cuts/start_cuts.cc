#include "planner/search/cuts/start_cuts.h"

#include <algorithm>

#include "planner/search/cuts/local_search.h"

namespace pfeife {

std::vector<Cuts> simple_cuts(const CutModel& model, const Placement& placement) {
  const Layers& layers = model.layers();
  const std::size_t stages = placement.stages();
  std::vector<Cuts> found;
  const auto equal_time = equal_time_cuts(layers, placement, model.cluster());
  if (!equal_time) return found;
  const LayerSums sums(layers, model.cluster());
  const auto time = [&](std::size_t l) { return static_cast<double>(sums.time(0, l, l + 1)); };
  const auto equal_share = [](std::size_t) { return 1.0; };
  for (const auto& cuts : {equal_time, cuts_by_share(layers, stages, time),
                           cuts_by_share(layers, stages, equal_share)})
    if (cuts) found.push_back(*model.cuts(*cuts));
  return found;
}

/// What one stage of a rank has at its moments, as moments of it alone: those of which none holds
/// at most as much as another.
static std::vector<LiveMoment> moments_of_stage(const std::vector<LiveMoment>& moments,
                                                std::size_t local) {
  const auto covers = [](const LiveMoment& a, const LiveMoment& b) {
    return a.saved[0] >= b.saved[0] && a.weight_saved[0] >= b.weight_saved[0] &&
           (b.running < 0 || (a.running == b.running && a.op == b.op));
  };
  std::vector<LiveMoment> found;
  for (const LiveMoment& moment : moments) {
    LiveMoment alone{{moment.saved[local]}, {moment.weight_saved[local]}};
    if (moment.running == static_cast<std::int32_t>(local)) alone.running = 0, alone.op = moment.op;
    if (std::ranges::any_of(found, [&](const LiveMoment& f) { return covers(f, alone); })) continue;
    std::erase_if(found, [&](const LiveMoment& f) { return covers(alone, f); });
    found.push_back(std::move(alone));
  }
  return found;
}

Cuts roomy_cuts(Candidates& candidates, const Cuts& fastest) {
  const CutModel& model = candidates.model();
  const std::size_t stages = candidates.stages();
  std::vector<std::int32_t> position(model.layers().size() + 1, 0);  // by layer
  for (std::size_t l = 0; l < model.layers().size(); ++l) position[l] = model.segment(LayerId{l});
  position.back() = model.last();

  std::vector<double> limit(stages);
  std::vector<std::vector<LiveMoment>> moments(stages);
  for (std::size_t r = 0; r < candidates.live().ranks(); ++r)
    for (std::size_t k = 0; k < candidates.live().stages(r).size(); ++k) {
      const std::size_t s = candidates.live().stages(r)[k];
      moments[s] = moments_of_stage(candidates.live().moments(r), k);
      limit[s] = std::max(1.0, static_cast<double>(candidates.memory_limit()[r].value));
    }
  const auto time = [&](std::size_t s, std::int32_t from, std::int32_t to) {
    return between(model.load(candidates.costs().kind(s)), from, to);
  };
  double slowest = 1;
  for (std::size_t s = 0; s < stages; ++s)
    slowest = std::max(slowest, time(s, fastest[s], fastest[s + 1]));

  Scored best = score(candidates, fastest);
  for (const double weight : {0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 32.0, 1000.0}) {
    const auto partition = min_max_partition(
        model.layers(), stages,
        [&](std::size_t s, std::size_t begin, std::size_t end) -> std::optional<double> {
          const std::int32_t from = position[begin], to = position[end];
          double held = 0;
          for (const LiveMoment& moment : moments[s])
            held = std::max(held, LiveMemory::held(model, moment, 0, from, to));
          return time(s, from, to) / slowest + weight * held / limit[s];
        });
    if (!partition) break;
    const Scored tried = score(candidates, *model.cuts(*partition));
    if (tried.score < best.score) best = tried;
  }
  return best.cuts;
}

}  // namespace pfeife
