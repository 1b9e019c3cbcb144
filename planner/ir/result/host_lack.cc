#include "planner/ir/result/host_lack.h"

namespace pfeife {

std::optional<HostLack> host_lack(const std::vector<Bytes>& host_memory,
                                  const std::optional<Bytes>& limit) {
  std::optional<HostLack> most;
  if (!limit) return most;
  for (std::size_t host = 0; host < host_memory.size(); ++host)
    if (host_memory[host] > *limit && (!most || host_memory[host] > most->needed))
      most = HostLack{host, host_memory[host], *limit};
  return most;
}

std::string to_string(const HostLack& lack) {
  return "host " + std::to_string(lack.host) + " needs " + to_string(lack.needed) +
         " for what its devices offload and has " + to_string(lack.available) +
         " (host_memory of the cluster), so it lacks " + to_string(lack.lacking()) +
         ": raise host_memory in the cluster file if hosts have more, use more hosts "
         "(devices_per_node), or offload less";
}

}  // namespace pfeife
