// How long collectives take on a network of any number of levels.
//
// Within a domain of the innermost level, measured tables of two group sizes say what a ring of k
// devices takes: a base and a time for each step, both by the bytes that a step sends (a k-th of
// the message); steps grow with k - 1. A gather or a scatter without tables of its own takes half
// of an all-reduce. Without any, the level's latency and bandwidth do. All-reduces, gathers and
// scatters of larger groups are done level by level; the chunks of a message are pipelined through
// the levels, so that the slowest decides, and latencies add up. Among the domains of a level, ring
// or tree, whichever is faster. What leaves a domain passes the level that joins it to others, also
// if it goes on to an outer level.
// Not modelled: contention with other groups beyond each device's share of a level.
#pragma once

#include <algorithm>
#include <vector>

#include "planner/ir/machine/mesh.h"
#include "planner/ir/machine/network.h"

namespace pfeife {

enum class CollectiveKind { AllReduce, ReduceScatter, AllGather, AllToAll };

/// A group of devices, alike on each domain that it has a part in.
struct GroupShape {
  /// [level of the network] Of its ranks in one domain. Levels that are left out add none.
  std::vector<std::int64_t> within = {1};
  std::int64_t ranks() const { return within.back(); }
  /// The innermost level with a domain that has all ranks.
  std::size_t level() const {
    return static_cast<std::size_t>(std::ranges::find(within, ranks()) - within.begin());
  }
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

/// The shape of the groups along `axes`; `domains`: [level] devices of the mesh in a domain, of
/// used_domains(). ConfigError without a place if groups lie on domains in different ways: a
/// representative cannot stand for all of them.
GroupShape group_shape(const Mesh& mesh, const std::vector<Axis>& axes,
                       const std::vector<std::int64_t>& domains);

/// `bytes`: of the whole message, as each rank has it before an all-reduce or reduce-scatter, or
/// an all-to-all, and after an all-gather. Takes no time in a group of one.
Nanoseconds collective_time(CollectiveKind kind, Bytes bytes, const GroupShape& group,
                            const Network& network);

/// How many experts there are, and how many of them a token goes to.
struct ExpertRouting {
  std::int64_t experts = 1;
  std::int64_t top_k = 1;  ///< of a token
};

/// Dispatch or combine where a token crosses once to each domain that has experts of it, and from
/// there once to each device (DeepEP): all levels at once, the slowest decides. `copies`: bytes of
/// a device if each token is copied for each of its experts, an all-to-all's message.
Nanoseconds expert_exchange_time(Bytes copies, const ExpertRouting& routing,
                                 const GroupShape& group, const Network& network);

}  // namespace pfeife
