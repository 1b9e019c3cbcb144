#include "planner/search/choices/sent_time.h"

#include <algorithm>
#include <vector>

namespace pfeife {

Nanoseconds busiest_link(const StageCosts& costs, const Placement& placement,
                         const Cluster& cluster, std::size_t microbatches) {
  std::vector<double> busy(cluster.links.size());  // ns a microbatch
  const auto add = [&](StageId from, StageId to, Bytes bytes, Nanoseconds time) {
    const Path& path = cluster.path(placement.device(from), placement.device(to));
    if (path.links.empty() || bytes.value <= 0) return;
    const double least = narrowest(cluster, path.links).value;
    for (const std::size_t link : path.links)
      busy[link] += static_cast<double>((time - std::min(time, path.latency)).count()) * least /
                    cluster.links[link].bandwidth.value;
  };
  for (const StagePair& pair : costs.pairs) {
    add(pair.from, pair.to, pair.bytes, pair.forward_time);
    add(pair.to, pair.from, pair.gradient_bytes, pair.backward_time);
  }
  const double most = busy.empty() ? 0 : std::ranges::max(busy);
  return Nanoseconds{static_cast<std::int64_t>(most * static_cast<double>(microbatches))};
}

Nanoseconds fullest_queue(const StageCosts& costs, const Placement& placement, Queues queues,
                          std::size_t microbatches) {
  if (queues == Queues::None) return Nanoseconds{0};
  const std::size_t ranks = placement.ranks();
  std::vector<Nanoseconds> full(ranks * ranks);  // a microbatch; [owner * ranks + peer]
  const auto add = [&](StageId from, StageId to, Nanoseconds time) {
    const std::size_t a = placement.rank(from).index(), b = placement.rank(to).index();
    if (queues == Queues::Edge) full[a * ranks + b] += time;
    if (queues == Queues::Pair) full[std::min(a, b) * ranks + std::max(a, b)] += time;
    if (queues == Queues::Rank && a != b) full[a * ranks] += time, full[b * ranks] += time;
  };
  for (const StagePair& pair : costs.pairs) {
    add(pair.from, pair.to, pair.forward_time);
    add(pair.to, pair.from, pair.backward_time);
  }
  return std::ranges::max(full) * static_cast<std::int64_t>(microbatches);
}

}  // namespace pfeife
