// Random clusters whose devices share links, for tests that simulate what the search finds.
#pragma once

#include "tests/search/random_problem.h"

namespace pfeife {

/// Hosts of two devices, whose ways out are shared, of random speeds; some links carry both
/// directions.
inline Cluster random_hosts(std::mt19937& random, std::size_t devices) {
  Cluster cluster = random_cluster(random, devices, false);
  cluster.kinds.resize(1);
  const auto rate = [&] { return BytesPerSecond{static_cast<double>(1 + random() % 30) * 2e8}; };
  const bool half_duplex = random() % 3 == 0;
  cluster.links.clear();
  const auto add = [&](const std::string& name) {  // ways out and in
    const std::size_t out = cluster.links.size();
    cluster.links.push_back({name + ".up", rate()});
    if (!half_duplex) cluster.links.push_back({name + ".down", rate()});
    return std::pair{out, cluster.links.size() - 1};
  };
  std::vector<std::pair<std::size_t, std::size_t>> slots, hosts;
  for (std::size_t d = 0; d < devices; ++d) slots.push_back(add("slot" + std::to_string(d)));
  for (std::size_t h = 0; 2 * h < devices; ++h) hosts.push_back(add("host" + std::to_string(h)));
  const Nanoseconds latency{random() % 100};
  for (std::size_t a = 0; a < devices; ++a)
    for (std::size_t b = 0; b < devices; ++b) {
      if (a == b) continue;
      Path path{.links = {slots[a].first}, .latency = latency, .bandwidth = {}};
      if (a / 2 != b / 2)
        path.links.insert(path.links.end(), {hosts[a / 2].first, hosts[b / 2].second});
      path.links.push_back(slots[b].second);
      double narrowest = 1e15;
      for (const std::size_t link : path.links)
        narrowest = std::min(narrowest, cluster.links[link].bandwidth.value);
      path.bandwidth.points = {{Bytes{1}, {narrowest}}};
      cluster.paths[a * devices + b] = path;
    }
  return cluster;
}

}  // namespace pfeife
