// How long collectives take on a network of two levels: within a host, and between hosts.
//
// Within a host, measured tables of two group sizes say what a ring of k devices takes: a base and
// a time for each step, both by the bytes that a step sends (a k-th of the message); steps grow
// with k - 1. A gather or a scatter without tables of its own takes half of an all-reduce. Without
// any, the port's latency and bandwidth do. Between hosts, all-reduces, gathers and scatters are
// done within each host and among hosts; the chunks of a message are pipelined through the two
// levels, so that the slower one decides, and latencies add up. Among hosts, ring or tree,
// whichever is faster.
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
/// an all-to-all, and after an all-gather. Takes no time in a group of one.
Nanoseconds collective_time(CollectiveKind kind, Bytes bytes, const GroupShape& group,
                            const Network& network);

/// How many experts there are, and how many of them a token goes to.
struct ExpertRouting {
  std::int64_t experts = 1;
  std::int64_t top_k = 1;  ///< of a token
};

/// Dispatch or combine where a token crosses once to each host that has experts of it, and from
/// there once to each device (DeepEP): both levels at once, the slower one decides. `copies`:
/// bytes of a device if each token is copied for each of its experts, an all-to-all's message.
Nanoseconds expert_exchange_time(Bytes copies, const ExpertRouting& routing,
                                 const GroupShape& group, const Network& network);

}  // namespace pfeife
