#include "planner/search/bound/link_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "planner/schedules/families.h"
#include "planner/search/bound/row_game.h"
#include "planner/search/price/hidden_collectives.h"

namespace pfeife {
namespace {

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
    add_narrowest(problem.cluster, problem.cluster.path(before, behind), s, &Crossed::forward,
                  links);
    add_narrowest(problem.cluster, problem.cluster.path(behind, before), s, &Crossed::backward,
                  links);
  }
  return links;
}

/// By a number of the queue.
std::map<std::size_t, Crossed> crossed_queues(const Placement& placement, Queues kind) {
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
    add(behind, before, s, &Crossed::backward);
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
  for (const auto& [number, queue] : crossed_queues(placement_of(problem, spec), semantics.queues))
    add_row(queue, n, rows, spec.stages());
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

}  // namespace pfeife
