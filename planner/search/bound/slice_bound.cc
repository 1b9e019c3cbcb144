#include "planner/search/bound/slice_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/cost/stages/sliced_stage_costs.h"
#include "planner/schedules/families.h"
#include "planner/search/bound/work_bound.h"
#include "planner/search/price/hidden_collectives.h"

namespace pfeife {
namespace {

/// Times of the layers before one (ns).
struct Sums {
  double work = 0;   ///< of all microbatches
  double paced = 0;  ///< of it, what other ranks wait for: without W where it is split off
  double there = 0, back = 0;  ///< of a first slice
  double optimizer = 0;
};

double forward(const LayerTimes& t) { return static_cast<double>(t.forward.count()); }
double backward(const LayerTimes& t) {
  return static_cast<double>((t.backward_input + t.backward_weight).count());
}
/// Before the gradient goes on: I of a backward that is split, else B.
double way_back(const LayerTimes& t, bool split) {
  return split ? static_cast<double>(t.backward_input.count()) : backward(t);
}

/// [layer] Attention's share of a stage is the mean of its layers', weighted by their whole times.
/// So what a stage's forward has outside attention is at least that of its layers if each had the
/// smallest share of forward in the whole that there is; likewise backward, or I where it is split.
std::vector<Sums> sums_before(const Problem& problem, const ScheduleSpec& spec) {
  const Layers& layers = problem.layers;
  const std::size_t kind = problem.cluster->kind_of_device[problem.device_of_rank[0].index()];
  const double end = slice_ends_of(layers, spec.slices, spec.slice_lengths).front();
  const double square = end * end;
  const bool split = family(spec.family).built_for_costs;
  double least_forward = std::numeric_limits<double>::infinity(), least_backward = least_forward;
  const auto whole = [](const Layer& layer) {
    return forward(layer.times.front()) + backward(layer.times.front());
  };
  for (const Layer& layer : layers.layers) {
    if (whole(layer) <= 0) continue;
    least_forward = std::min(least_forward, forward(layer.times[kind]) / whole(layer));
    least_backward = std::min(least_backward, way_back(layer.times[kind], split) / whole(layer));
  }
  std::vector<Sums> before(1);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const Layer& layer = layers.layers[l];
    const LayerTimes& times = layer.times[kind];
    const double all = whole(layer);
    const double linear = all > 0 ? (end - square) * all * (1 - layers.sequence->attention[l]) : 0;
    Sums next = before.back();
    const auto microbatches = static_cast<double>(spec.microbatches);
    next.work += microbatches * (forward(times) + backward(times));
    next.paced += microbatches * (forward(times) + way_back(times, split));
    next.there += square * forward(times) + (linear > 0 ? linear * least_forward : 0);
    next.back += square * way_back(times, split) + (linear > 0 ? linear * least_backward : 0);
    next.optimizer += static_cast<double>(times.optimizer.count());
    before.push_back(next);
  }
  return before;
}

/// Whether stages with at most that time each reach the last layer: each as long as it can be, as
/// no stage takes longer for beginning later.
bool reaches(const std::vector<Sums>& before, std::size_t stages, double time) {
  std::size_t begin = 0;
  for (std::size_t s = 0; s < stages && begin + 1 < before.size(); ++s) {
    const Sums& from = before[begin];
    const auto lasts = [&](const Sums& to) {
      return from.there + std::max(to.paced - from.paced + from.back,
                                   to.work - from.work + to.optimizer - from.optimizer);
    };
    std::size_t end = begin;
    while (end + 1 < before.size() && lasts(before[end + 1]) <= time) ++end;
    begin = end;
  }
  return begin + 1 == before.size();
}

}  // namespace

double sliced_bound(const Problem& problem, const ScheduleSpec& spec) {
  const double work = shared_work_bound(problem, spec.microbatches);
  const auto kind = [&](DeviceId device) {
    return problem.cluster->kind_of_device[device.index()];
  };
  const bool alike = std::ranges::all_of(problem.device_of_rank, [&](DeviceId device) {
    return kind(device) == kind(problem.device_of_rank.front());
  });
  if (spec.stages_per_rank > 1 || !alike || hides_collectives(problem)) return work;
  const std::vector<Sums> before = sums_before(problem, spec);
  const Sums& all = before.back();
  double low = 0, high = all.work + all.there + all.back + all.optimizer;
  while (high - low > 1) {
    const double middle = (low + high) / 2;
    (reaches(before, spec.stages(), middle) ? high : low) = middle;
  }
  // Times of slices are rounded, two a stage.
  return std::max(work, std::floor(low * (1 - 1e-12)) - 4 * static_cast<double>(spec.stages()));
}

}  // namespace pfeife
