// How long collectives take on a network of two levels: within a host, and between hosts.
//
// Within a host, a measured table of two group sizes (of each kind; of a gather or a scatter
// without its own, half of an all-reduce) says what a ring of another size takes: a base and 2 (k -
// 1) steps, both of the bytes that a step sends (a k-th of the message). Without a table, the
// port's latency and bandwidth do. Between hosts, a group reduces within each host, among hosts,
// and spreads the result within each host; the parts of a message flow one after the other, so that
// the slower level decides, and latencies add up. Among hosts, ring or tree, whichever is faster.
// Not modelled: contention with other groups beyond each device's share of the NIC.
#pragma once

#include "planner/ir/machine/mesh.h"
#include "planner/ir/machine/network.h"

namespace pfeife {

enum class CollectiveKind { AllReduce, ReduceScatter, AllGather, AllToAll };

/// A group of devices, alike on each of its hosts.
struct GroupShape {
  std::int64_t ranks = 1;
  std::int64_t per_host = 1;  ///< of its ranks in one host
  std::int64_t hosts() const { return ranks / per_host; }
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

/// The shape of the groups along `axes`. ConfigError without a place if groups lie on hosts in
/// different ways: a representative cannot stand for all of them.
GroupShape group_shape(const Mesh& mesh, const std::vector<Axis>& axes,
                       std::int64_t devices_per_host);

/// `bytes`: of the whole message, as each rank has it before an all-reduce or reduce-scatter, or
/// an all-to-all, and after an all-gather. 0 for a group of one.
Nanoseconds collective_time(CollectiveKind kind, Bytes bytes, const GroupShape& group,
                            const Network& network);

/// Which experts a token may be sent to.
struct ExpertRouting {
  std::int64_t experts = 1;
  std::int64_t top_k = 1;  ///< of a token
};

/// Dispatch or combine where a token crosses once to each host that has experts of it, and from
/// there once to each device (DeepEP): both levels at once, the slower one decides. `copies`: what
/// a device has with a copy for each expert of its tokens, the message of an all-to-all.
Nanoseconds expert_exchange_time(Bytes copies, const ExpertRouting& routing,
                                 const GroupShape& group, const Network& network);

}  // namespace pfeife
