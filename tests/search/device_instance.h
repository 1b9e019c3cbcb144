// Small planning problems whose devices differ: by speed, by memory and by their links.
#pragma once

#include <algorithm>

#include "tests/search/random_problem.h"

namespace pfeife {

using DeviceOrder = std::vector<DeviceId>;

/// Two speeds of devices, two of links, two sizes of memory.
struct DeviceInstance {
  Layers layers;
  Cluster cluster;
  std::vector<ScheduleSpec> schedules;
  std::vector<Bytes> memory_limit;

  DeviceOrder devices() const {
    DeviceOrder all;
    for (std::size_t d = 0; d < cluster.devices(); ++d)
      all.emplace_back(static_cast<std::int64_t>(d));
    return all;
  }
  Problem problem() const {
    return {layers, cluster, schedules, devices(), memory_limit, std::nullopt};
  }
};
inline DeviceInstance random_device_instance(std::mt19937& random, std::size_t ranks) {
  DeviceInstance instance;
  RandomShape shape;
  shape.layers = 5 + random() % 4;
  shape.illegal_cuts = false;
  instance.layers = random_layers(random, shape);
  instance.cluster = random_cluster(random, ranks, true);
  Cluster& cluster = instance.cluster;
  const std::size_t bridge = random() % ranks;  // joins two devices faster than the others are
  for (std::size_t a = 0; a < ranks; ++a)
    for (std::size_t b = 0; b < ranks; ++b)
      if (a != b && a / 2 != bridge && a / 2 == b / 2) {
        cluster.paths[a * ranks + b].latency = Nanoseconds{0};
        cluster.paths[a * ranks + b].bandwidth.points.front().rate = {1e12};
      }
  const std::size_t microbatches = 1 + random() % 4;
  for (int k = 0; k < 2; ++k)
    instance.schedules.push_back(random_spec(random, ranks, microbatches, {1}));
  const auto small_memory = static_cast<std::int64_t>(1500 + random() % 3000);
  const bool tight = random() % 2 == 0;
  for (std::size_t d = 0; d < ranks; ++d)
    instance.memory_limit.emplace_back(
        tight ? small_memory * (cluster.kind_of_device[d] == 0 ? 1 : 2) : std::int64_t{1} << 30);
  if (random() % 2 == 0)  // one way faster than the other
    cluster.paths[(random() % ranks) * ranks + random() % ranks].latency = Nanoseconds{0};
  return instance;
}

template <class Visit>
void for_each_order(DeviceOrder order, const Visit& visit) {
  std::ranges::sort(order);
  do visit(order);
  while (std::ranges::next_permutation(order).found);
}

}  // namespace pfeife
