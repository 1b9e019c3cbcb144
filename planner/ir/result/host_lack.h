// A host whose memory is too small for what its devices offload to it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/basics/units.h"

namespace pfeife {

struct HostLack {
  std::size_t host = 0;
  Bytes needed{0}, available{0};

  Bytes lacking() const { return needed - available; }
  friend bool operator==(const HostLack&, const HostLack&) = default;
};

/// The host that lacks most; nothing if all have enough. `host_memory`: [host] what its devices
/// have away at once; `limit`: Cluster::host_memory.
std::optional<HostLack> host_lack(const std::vector<Bytes>& host_memory,
                                  const std::optional<Bytes>& limit);

/// "host 0 needs 3 GiB for what its devices offload and has 2 GiB (host_memory of the cluster), so
/// it lacks 1 GiB: ..." and what to do.
std::string to_string(const HostLack& lack);

}  // namespace pfeife
