#include <algorithm>

#include "planner/io/cluster/cluster_file.h"

namespace pfeife {

std::vector<DeviceId> device_list(const YamlNode& node) {
  std::vector<DeviceId> devices;
  for (const YamlNode& item : node.items()) {
    const DeviceId device{item.as_int(0, 1'000'000)};
    if (std::ranges::find(devices, device) != devices.end())
      item.fail("device " + to_string(device) + " runs another rank already; name one for each");
    devices.push_back(device);
  }
  return devices;
}

}  // namespace pfeife
