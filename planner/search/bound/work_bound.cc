#include "planner/search/bound/work_bound.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "planner/cost/layers/microbatch_layers.h"
#include "planner/cost/stages/word_shares.h"
#include "planner/schedules/families.h"
#include "planner/search/bound/any_order.h"
#include "planner/search/bound/segment_bound.h"
#include "planner/search/bound/slice_bound.h"
#include "planner/search/cuts/min_max.h"
#include "planner/search/price/hidden_collectives.h"

namespace pfeife {

double shared_work_bound(const Problem& problem, std::size_t microbatches) {
  const Layers& layers = problem.layers;
  // Shares of attention are of the first kind of device.
  const bool alike = std::ranges::all_of(problem.device_of_rank, [&](DeviceId device) {
    return problem.cluster->kind_of_device[device.index()] == 0;
  });
  const auto work = [&](const Layer& layer, std::size_t kind) {
    const LayerTimes& t = layer.times[kind];
    const Nanoseconds once = t.forward + t.backward_input + t.backward_weight;
    if (layers.microbatches.empty())
      return static_cast<double>(static_cast<std::int64_t>(microbatches) * once.count() +
                                 t.optimizer.count());
    const auto l = static_cast<std::size_t>(&layer - layers.layers.data());
    return least_work(layers, l, alike) * static_cast<double>(once.count()) +
           static_cast<double>(t.optimizer.count());
  };
  std::map<std::size_t, double> all;  // by kind: all work on one device
  for (const DeviceId device : problem.device_of_rank)
    all[problem.cluster->kind_of_device[device.index()]] = 0;
  for (auto& [kind, sum] : all)
    for (const Layer& layer : problem.layers->layers) sum += work(layer, kind);
  // Weights in proportion to the speeds; any others would do, too.
  double speeds = 0;
  for (const DeviceId device : problem.device_of_rank)
    speeds += 1 / std::max(1.0, all[problem.cluster->kind_of_device[device.index()]]);
  double least = 0;
  for (const Layer& layer : problem.layers->layers) {
    double cheapest = std::numeric_limits<double>::infinity();
    for (const auto& [kind, sum] : all)
      cheapest = std::min(cheapest, work(layer, kind) / std::max(1.0, sum) / speeds);
    least += cheapest;
  }
  // Times of microbatches that differ are rounded, three of each stage: a layer is the smallest.
  if (!layers.microbatches.empty())
    least = std::max(0.0, least - 1.5 * static_cast<double>(microbatches * layers.size()));
  return std::floor(least * (1 - 1e-12));
}

/// Where microbatches differ: what equal ones of the least cost need, by `bound`, and the work of
/// all.
static double unequal_bound(const Problem& problem, double (*bound)(const Problem&)) {
  const Layers layers = least_microbatch(problem.layers);
  double least = std::numeric_limits<double>::infinity();
  for (const ScheduleSpec& spec : problem.schedules)
    least = std::min(least, shared_work_bound(problem, spec.microbatches));
  return std::max(bound(with_layers(problem, layers)),
                  least < std::numeric_limits<double>::infinity() ? least : 0);
}

/// F and B (ns) of the slowest stage of each of the problem's ranks, whatever the cuts; 0 if the
/// layers cannot be cut so often.
static double slowest_stage(const Problem& problem, const ScheduleSpec& spec) {
  const Layers layers = problem.cuts ? cut_only_at(*problem.cuts, problem.layers) : *problem.layers;
  const Placement placement = placement_for(spec, problem.device_of_rank);
  const auto cuts = equal_time_cuts(layers, placement, problem.cluster);
  if (!cuts) return 0;
  const LayerSums sums(layers, problem.cluster);
  std::int64_t slowest = 0;
  for (std::size_t s = 0; s < cuts->stages(); ++s) {
    const std::size_t kind = problem.cluster->kind_of_device[placement.device(StageId{s}).index()];
    slowest = std::max(slowest, sums.time(kind, cuts->begin(s), cuts->end(s, layers.size())));
  }
  return static_cast<double>(slowest);
}

/// The bound of schedules whose ranks share the output layer: what is not divided takes as long as
/// without the shares, and every rank, that of the slowest stage as well, computes its shares
/// besides.
static double bound_of_shared_heads(const Problem& problem) {
  const Layers layers = divided_among(problem.layers, problem.device_of_rank.size());
  Problem bare = with_layers(problem, layers);
  const LayerTimes& output = layers.words->output;
  const Nanoseconds share =
      output.forward + output.backward_input + output.backward_weight + layers.words->input;
  double least = std::numeric_limits<double>::infinity();
  for (ScheduleSpec& spec : bare.schedules) {
    const auto microbatches = static_cast<double>(spec.microbatches);
    least = std::min(least, std::max(shared_work_bound(bare, spec.microbatches),
                                     microbatches * slowest_stage(bare, spec)) +
                                microbatches * static_cast<double>(share.count()));
    spec.family = "1f1b";
  }
  return std::max(least, work_bound(bare));
}

double work_bound(const Problem& problem) {
  if (std::ranges::any_of(problem.schedules, shares_head)) {
    Problem shared = problem, last = problem;
    std::erase_if(shared.schedules, std::not_fn(shares_head));
    std::erase_if(last.schedules, shares_head);
    const double least = bound_of_shared_heads(shared);
    return last.schedules.empty() ? least : std::min(least, work_bound(last));
  }
  if (!problem.layers->microbatches.empty()) return unequal_bound(problem, work_bound);
  if (hides_collectives(problem)) return longest_side_by_side(problem, work_bound);
  const CutModel model(problem.layers, problem.cluster, problem.memory_rule,
                       problem.recomputes_all(), problem.norm);
  double least = std::numeric_limits<double>::infinity();
  for (const ScheduleSpec& spec : problem.schedules) {
    if (spec.slices > 1) {
      least = std::min(least, sliced_bound(problem, spec));
      continue;
    }
    // Schedules of one placement have the same bound; one of them is asked.
    const auto same = [&](const ScheduleSpec& other) {
      return other.slices == 1 && other.microbatches == spec.microbatches &&
             placement_for(other).rank_of_stage == placement_for(spec).rank_of_stage;
    };
    if (&*std::ranges::find_if(problem.schedules, same) != &spec) continue;
    if (spec.stages() > static_cast<std::size_t>(model.last())) continue;  // it has no cuts
    least = std::min(least, std::max({AnyOrder(model, problem, spec).bound(),
                                      shared_work_bound(problem, spec.microbatches),
                                      one_microbatch_bound(problem)}));
  }
  return least < std::numeric_limits<double>::infinity() ? least : 0;
}

double any_devices_bound(const Problem& problem) {
  if (!problem.layers->microbatches.empty()) return unequal_bound(problem, any_devices_bound);
  if (hides_collectives(problem)) return longest_side_by_side(problem, any_devices_bound);
  const auto kind = [&](DeviceId device) {
    return problem.cluster->kind_of_device[device.index()];
  };
  const bool alike = std::ranges::all_of(problem.device_of_rank, [&](DeviceId device) {
    return kind(device) == kind(problem.device_of_rank.front());
  });
  if (alike) {
    Cluster cluster = problem.cluster;
    std::ranges::fill(cluster.paths, Path{});  // without links: a transfer takes no time
    return work_bound(with_cluster(problem, cluster));
  }
  double least = std::numeric_limits<double>::infinity();
  for (const ScheduleSpec& spec : problem.schedules)
    least = std::min(least, shared_work_bound(problem, spec.microbatches));
  return std::max(least, one_microbatch_bound(problem));
}

}  // namespace pfeife
