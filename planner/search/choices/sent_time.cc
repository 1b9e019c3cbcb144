#include "planner/search/choices/sent_time.h"

#include <algorithm>
#include <vector>

namespace pfeife {
namespace {

/// Microbatches that send the same.
struct Alike {
  const std::vector<StagePair>* pairs;
  std::size_t count;
};

std::vector<Alike> alike(const StageCosts& costs, std::size_t microbatches) {
  if (costs.kinds.empty()) return {{&costs.pairs, microbatches}};
  std::vector<Alike> groups;
  for (const StageCosts::Slice& kind : costs.kinds) groups.push_back({&kind.pairs, 0});
  for (const std::uint32_t kind : costs.kind_of) ++groups[kind].count;
  return groups;
}

}  // namespace

Nanoseconds busiest_link(const StageCosts& costs, const Placement& placement,
                         const Cluster& cluster, std::size_t microbatches) {
  std::vector<double> all(cluster.links.size());  // ns
  std::vector<double> busy;                       // a microbatch
  const auto add = [&](StageId from, StageId to, Bytes bytes, Nanoseconds time) {
    const Path& path = cluster.path(placement.device(from), placement.device(to));
    if (path.links.empty() || bytes.value <= 0) return;
    const double least = narrowest(cluster, path.links).value;
    for (const std::size_t link : path.links)
      busy[link] += static_cast<double>((time - std::min(time, path.latency)).count()) * least /
                    cluster.links[link].bandwidth.value;
  };
  for (const Alike& group : alike(costs, microbatches)) {
    busy.assign(all.size(), 0);
    for (const StagePair& pair : *group.pairs) {
      add(pair.from, pair.to, pair.bytes, pair.forward_time);
      add(pair.to, pair.from, pair.gradient_bytes, pair.backward_time);
    }
    for (std::size_t l = 0; l < all.size(); ++l)
      all[l] += busy[l] * static_cast<double>(group.count);
  }
  return Nanoseconds{all.empty() ? 0 : static_cast<std::int64_t>(std::ranges::max(all))};
}

Nanoseconds fullest_queue(const StageCosts& costs, const Placement& placement, Queues queues,
                          std::size_t microbatches) {
  if (queues == Queues::None) return Nanoseconds{0};
  const std::size_t ranks = placement.ranks();
  std::vector<Nanoseconds> full(ranks * ranks);  // [owner * ranks + peer]
  const auto add = [&](StageId from, StageId to, Nanoseconds time) {
    const std::size_t a = placement.rank(from).index(), b = placement.rank(to).index();
    if (queues == Queues::Edge) full[a * ranks + b] += time;
    if (queues == Queues::Pair) full[std::min(a, b) * ranks + std::max(a, b)] += time;
    if (queues == Queues::Rank && a != b) full[a * ranks] += time, full[b * ranks] += time;
  };
  for (const Alike& group : alike(costs, microbatches)) {
    const auto count = static_cast<std::int64_t>(group.count);
    for (const StagePair& pair : *group.pairs) {
      add(pair.from, pair.to, count * pair.forward_time);
      add(pair.to, pair.from, count * pair.backward_time);
    }
  }
  return std::ranges::max(full);
}

}  // namespace pfeife
