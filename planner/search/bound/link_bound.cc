#include "planner/search/bound/link_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "planner/cost/layers/microbatch_layers.h"
#include "planner/schedules/families.h"
#include "planner/search/bound/row_game.h"
#include "planner/search/price/hidden_collectives.h"

namespace pfeife {
namespace {

constexpr std::size_t kMostKinds = 100;  ///< ways to deal kinds of devices to ranks, all bounded

/// The boundaries whose messages have a link as the narrowest on their way, or are in a queue.
struct Crossed {
  std::vector<std::size_t> forward, backward;
  Nanoseconds latency{0};  ///< that does not count, of all these messages of one microbatch
};

Placement placement_of(const Problem& problem, const ScheduleSpec& spec) {
  return {placement_for(spec).rank_of_stage, problem.device_of_rank};
}

void add_narrowest(const Cluster& cluster, const Path& path, std::size_t boundary,
                   std::vector<std::size_t> Crossed::*way, std::map<std::size_t, Crossed>& links) {
  const BytesPerSecond least = narrowest(cluster, path.links);
  for (const std::size_t link : path.links) {
    if (cluster.links[link].bandwidth > least) continue;
    (links[link].*way).push_back(boundary);
    links[link].latency += std::max(path.latency, Nanoseconds{1});
  }
}

std::map<std::size_t, Crossed> crossed_links(const Problem& problem, const ScheduleSpec& spec) {
  const Placement placement = placement_of(problem, spec);
  std::map<std::size_t, Crossed> links;
  for (std::size_t s = 1; s < placement.stages(); ++s) {
    const DeviceId before = placement.device(StageId{s - 1}), behind = placement.device(StageId{s});
    add_narrowest(problem.cluster, problem.cluster->path(before, behind), s, &Crossed::forward,
                  links);
    if (problem.layers->mode == Mode::Forward) continue;  // nothing comes back
    add_narrowest(problem.cluster, problem.cluster->path(behind, before), s, &Crossed::backward,
                  links);
  }
  return links;
}

/// By a number of the queue.
std::map<std::size_t, Crossed> crossed_queues(const Placement& placement, Queues kind, Mode mode) {
  std::map<std::size_t, Crossed> queues;
  const auto add = [&](RankId from, RankId to, std::size_t boundary,
                       std::vector<std::size_t> Crossed::*way) {
    const std::size_t ranks = placement.ranks();
    const auto [low, high] = std::minmax({from.index(), to.index()});
    if (kind == Queues::Edge) (queues[from.index() * ranks + to.index()].*way).push_back(boundary);
    if (kind == Queues::Pair) (queues[low * ranks + high].*way).push_back(boundary);
    if (kind == Queues::Rank)
      for (const std::size_t rank : {low, high}) (queues[rank].*way).push_back(boundary);
  };
  for (std::size_t s = 1; s < placement.stages(); ++s) {
    const RankId before = placement.rank(StageId{s - 1}), behind = placement.rank(StageId{s});
    if (before == behind) continue;
    add(before, behind, s, &Crossed::forward);
    if (mode == Mode::Train) add(behind, before, s, &Crossed::backward);
  }
  return queues;
}

/// Forward through stages [0, end), backward through [begin, S), each once, with the messages
/// between them and, forward, the one to `end`; if stage `begin` > 0 waits for them all.
void add_way(std::size_t end, std::size_t begin, PathCounts<std::int32_t>& counts) {
  const std::size_t stages = counts.forward.size();
  for (std::size_t s = 0; s < end; ++s) ++counts.work[0][s];
  for (std::size_t s = 1; s < end; ++s) ++counts.forward[s];
  for (std::size_t s = begin; s < stages; ++s) ++counts.work[1][s];
  for (std::size_t s = begin + 1; s < stages; ++s) ++counts.backward[s];
}

/// What the first message over the link waits for, and what waits for the last one.
void add_ends(const Crossed& link, PathCounts<std::int32_t>& counts) {
  const std::size_t stages = counts.forward.size();
  if (!link.forward.empty())
    add_way(link.forward.front(), stages, counts);
  else
    add_way(stages, link.backward.back(), counts);
  const std::size_t last = link.backward.empty() ? stages : link.backward.front();
  if (link.backward.empty()) {
    for (std::size_t s = link.forward.back(); s < stages; ++s) ++counts.work[0][s];
    for (std::size_t s = link.forward.back() + 1; s < stages; ++s) ++counts.forward[s];
  }
  for (std::size_t s = 0; s < last; ++s) ++counts.work[1][s];
  for (std::size_t s = 1; s < last; ++s) ++counts.backward[s];
  ++counts.work[2][0], ++counts.work[3][0];
}

/// Adds a row of all that is sent in a step.
void add_row(const Crossed& crossed, std::int32_t microbatches, AnyOrderRows& rows,
             std::size_t stages) {
  PathCounts<std::int32_t> counts(stages);
  if (rows.is_chain()) add_ends(crossed, counts);
  for (const std::size_t s : crossed.forward) counts.forward[s] += microbatches;
  for (const std::size_t s : crossed.backward) counts.backward[s] += microbatches;
  rows.add(std::move(counts), -static_cast<double>(microbatches * crossed.latency.count()));
}

/// Adds a row for each link and each queue that neighbouring stages send over.
void add_rows(const Problem& problem, const ScheduleSpec& spec, const Semantics& semantics,
              AnyOrderRows& rows) {
  const auto n = static_cast<std::int32_t>(spec.microbatches);
  if (semantics.links == Links::Shared)
    for (const auto& [number, link] : crossed_links(problem, spec))
      add_row(link, n, rows, spec.stages());
  for (const auto& [number, queue] :
       crossed_queues(placement_of(problem, spec), semantics.queues, problem.layers->mode))
    add_row(queue, n, rows, spec.stages());
}

/// [device of the problem] number of its part: the parts that paths part of which every tree of
/// them has one as slow. Paths are compared by the largest message.
std::vector<std::size_t> parts_of_devices(const Problem& problem) {
  const std::vector<DeviceId>& devices = problem.device_of_rank;
  Bytes largest{0};
  for (const LayerValue& value : problem.layers->values) largest = std::max(largest, value.bytes);
  std::vector<std::tuple<Nanoseconds, std::size_t, std::size_t>> pairs;  // the fastest first
  for (std::size_t a = 0; a < devices.size(); ++a)
    for (std::size_t b = a + 1; b < devices.size(); ++b)
      pairs.emplace_back(transfer_time(problem.cluster->path(devices[a], devices[b]), largest) +
                             transfer_time(problem.cluster->path(devices[b], devices[a]), largest),
                         a, b);
  std::ranges::sort(pairs);
  std::vector<std::size_t> part(devices.size()), before;
  std::iota(part.begin(), part.end(), std::size_t{0});
  Nanoseconds joined_last{-1};
  for (const auto& [time, a, b] : pairs) {
    if (part[a] == part[b]) continue;
    if (time > joined_last) before = part;  // what faster paths join
    joined_last = time;
    std::ranges::replace(part, std::size_t{part[a]}, std::size_t{part[b]});
  }
  return before;
}

/// As good as the best from one part to another.
Path fastest_between(const Problem& problem, const std::vector<std::size_t>& part) {
  Path fastest{.links = {}, .latency = Nanoseconds::max(), .bandwidth = {}};
  BytesPerSecond rate{0};
  for (std::size_t a = 0; a < part.size(); ++a)
    for (std::size_t b = 0; b < part.size(); ++b) {
      if (part[a] == part[b]) continue;
      const Path& path =
          problem.cluster->path(problem.device_of_rank[a], problem.device_of_rank[b]);
      fastest.latency = std::min(fastest.latency, path.latency);
      for (const BandwidthCurve::Point& point : path.bandwidth.points)
        rate = std::max(rate, point.rate);
    }
  fastest.bandwidth.points = {{Bytes{1}, rate}};
  return fastest;
}

/// Every device as fast as the fastest.
Layers at_best(Layers layers) {
  for (Layer& layer : layers.layers) {
    LayerTimes best = layer.times.front();
    for (const LayerTimes& times : layer.times) {
      best.forward = std::min(best.forward, times.forward);
      best.backward_input = std::min(best.backward_input, times.backward_input);
      best.backward_weight = std::min(best.backward_weight, times.backward_weight);
      best.optimizer = std::min(best.optimizer, times.optimizer);
    }
    std::ranges::fill(layer.times, best);
  }
  for (LayerParameter& parameter : layers.parameters)
    if (!parameter.optimizer.empty())
      std::ranges::fill(parameter.optimizer, std::ranges::min(parameter.optimizer));
  return layers;
}
Cluster at_best(Cluster cluster) {
  DeviceKind best = cluster.kinds.front();
  for (const DeviceKind& kind : cluster.kinds) {
    best.stage_overhead = std::min(best.stage_overhead, kind.stage_overhead);
    best.iteration_overhead = std::min(best.iteration_overhead, kind.iteration_overhead);
  }
  for (DeviceKind& kind : cluster.kinds)
    kind.stage_overhead = best.stage_overhead, kind.iteration_overhead = best.iteration_overhead;
  return cluster;
}

/// Ranks of neighbouring stages at the end, which are more than fit into one part.
std::set<std::pair<std::size_t, std::size_t>> last_neighbours(
    const Placement& placement, const std::vector<std::size_t>& part) {
  std::size_t most = 0;
  for (const std::size_t number : part)
    most = std::max(most, static_cast<std::size_t>(std::ranges::count(part, number)));
  std::set<std::pair<std::size_t, std::size_t>> pairs;
  std::set<std::size_t> ranks{placement.rank(StageId{placement.stages() - 1}).index()};
  for (std::size_t s = placement.stages() - 1; s > 0 && ranks.size() <= most; --s) {
    const std::size_t a = placement.rank(StageId{s - 1}).index();
    const std::size_t b = placement.rank(StageId{s}).index();
    if (a != b) pairs.emplace(std::min(a, b), std::max(a, b));
    ranks.insert(a);
  }
  return pairs;
}

/// Which kinds the ranks may have, [rank] each, if these are few; else none.
std::vector<std::vector<std::size_t>> kinds_of_ranks(const Problem& problem) {
  std::vector<std::size_t> kinds;
  for (const DeviceId device : problem.device_of_rank)
    kinds.push_back(problem.cluster->kind_of_device[device.index()]);
  std::ranges::sort(kinds);
  std::vector<std::vector<std::size_t>> found;
  do {
    if (found.size() == kMostKinds) return {};
    found.push_back(kinds);
  } while (std::ranges::next_permutation(kinds).found);
  return found;
}

/// The cluster whose ranks are of these kinds.
Cluster with_kinds(Cluster cluster, const Problem& problem, const std::vector<std::size_t>& kinds) {
  for (std::size_t r = 0; r < kinds.size(); ++r)
    cluster.kind_of_device[problem.device_of_rank[r].index()] = kinds[r];
  return cluster;
}

/// With this path alone, both ways, between two ranks.
Cluster with_path(Cluster cluster, const Problem& problem, const Path& path,
                  const std::pair<std::size_t, std::size_t>& ranks) {
  const auto join = [&](std::size_t from, std::size_t to) {
    Path& joined = cluster.paths[problem.device_of_rank[from].index() * cluster.devices() +
                                 problem.device_of_rank[to].index()];
    joined = path;
    joined.links = {cluster.links.size()};
    cluster.links.push_back({"slow", path.bandwidth.points.front().rate});
  };
  join(ranks.first, ranks.second), join(ranks.second, ranks.first);
  return cluster;
}

}  // namespace

double shared_links_bound(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
                          const Semantics& semantics, bool linked) {
  AnyOrderRows rows(model, problem, spec,
                    {.least_load = std::vector<std::int64_t>(spec.stages()), .linked = linked});
  if (!rows.any_cuts()) return std::numeric_limits<double>::infinity();
  add_rows(problem, spec, semantics, rows);
  const std::vector<double> weights = whole_weights(rows);
  double sum = 0;
  for (const double weight : weights) sum += weight;
  return sum > 0 ? std::floor(rows.minimum(weights).scaled / sum) : 0;
}

Nanoseconds shared_links_bound(const Problem& problem, const Semantics& semantics, bool linked) {
  if (!problem.layers->microbatches.empty()) {
    const Layers least = least_microbatch(problem.layers);
    return shared_links_bound(with_layers(problem, least), semantics, linked);
  }
  if (hides_collectives(problem))
    return Nanoseconds{
        static_cast<std::int64_t>(longest_side_by_side(problem, [&](const Problem& sum) {
          return static_cast<double>(shared_links_bound(sum, semantics, linked).count());
        }))};
  const CutModel model(problem.layers, problem.cluster, problem.memory_rule,
                       problem.recomputes_all(), problem.norm);
  std::map<std::pair<std::vector<RankId>, std::size_t>, double> known;  // by placement
  for (const ScheduleSpec& spec : problem.schedules) {
    if (spec.stages() > static_cast<std::size_t>(model.last())) continue;  // it has no cuts
    double& bound = known[{placement_for(spec).rank_of_stage, spec.microbatches}];
    if (bound == 0) bound = shared_links_bound(model, problem, spec, semantics, linked);
  }
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [placement, bound] : known) least = std::min(least, bound);
  return Nanoseconds{std::isfinite(least) ? static_cast<std::int64_t>(least) : 0};
}

Nanoseconds any_devices_links_bound(const Problem& problem, const Semantics& semantics,
                                    bool linked) {
  if (!problem.layers->microbatches.empty()) {
    const Layers least = least_microbatch(problem.layers);
    return any_devices_links_bound(with_layers(problem, least), semantics, linked);
  }
  if (problem.device_of_rank.size() < 2) return shared_links_bound(problem, semantics, linked);
  const std::vector<std::size_t> part = parts_of_devices(problem);
  const Path slow = fastest_between(problem, part);
  Cluster without_links = problem.cluster;
  std::ranges::fill(without_links.paths, Path{});  // a transfer takes no time
  std::vector<Cluster> clusters;
  for (const auto& kinds : kinds_of_ranks(problem))
    clusters.push_back(with_kinds(without_links, problem, kinds));
  const bool all_kinds = !clusters.empty();
  if (!all_kinds) clusters.push_back(at_best(without_links));
  const Layers layers = all_kinds ? *problem.layers : at_best(problem.layers);
  Problem of_placement = with_layers(problem, layers);
  std::ranges::fill(of_placement.memory_limit, std::ranges::max(problem.memory_limit));
  std::set<std::pair<std::vector<RankId>, std::size_t>> known;  // placements
  Nanoseconds least = Nanoseconds::max();
  for (const ScheduleSpec& spec : problem.schedules) {
    const Placement placement = placement_of(problem, spec);
    if (!known.emplace(placement.rank_of_stage, spec.microbatches).second) continue;
    of_placement.schedules = {spec};
    for (const auto& ranks : last_neighbours(placement, part))
      for (const Cluster& kinds : clusters) {
        const Cluster cluster = with_path(kinds, problem, slow, ranks);
        const Nanoseconds bound =
            shared_links_bound(with_cluster(of_placement, cluster), semantics, linked);
        if (bound > Nanoseconds{0}) least = std::min(least, bound);  // else it has no cuts
      }
  }
  return least == Nanoseconds::max() ? Nanoseconds{0} : least;
}

}  // namespace pfeife
