// How long collectives take on a network of any number of levels.
//
// Within a domain of the innermost level, measured tables of two group sizes give the time of a
// ring of k devices: base(b) + (k - 1) step(b), where b = message / k is what one step sends. A
// gather or a scatter without tables of its own takes half of an all-reduce. Without any table, the
// level's latency and bandwidth give the time. All-reduces, gathers and scatters of larger groups
// are done level by level; the chunks of a message are pipelined through the levels, so that the
// slowest level decides, and latencies add up. Each level takes the faster of ring and tree over
// its domains. A message to an outer level also uses the bandwidth of every level that it crosses.
// Not modelled: contention with other groups beyond each device's share of a level.
#pragma once

#include <algorithm>
#include <vector>

#include "planner/ir/machine/mesh.h"
#include "planner/ir/machine/network.h"

namespace pfeife {

enum class CollectiveKind { AllReduce, ReduceScatter, AllGather, AllToAll };

/// A group with equally many ranks in each domain that it reaches.
struct GroupShape {
  /// [level of the network] Ranks of the group in one domain. Outer levels that are left out add no
  /// ranks.
  std::vector<std::int64_t> within = {1};
  std::int64_t ranks() const { return within.back(); }
  /// The innermost level with a domain that has all ranks.
  std::size_t level() const {
    return static_cast<std::size_t>(std::ranges::find(within, ranks()) - within.begin());
  }
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

/// The shape of the groups along `axes`; `domains`: [level] devices of the mesh in one domain, as
/// used_domains() returns them. ConfigError without file and line if the groups have different
/// shapes: none of them could stand for all.
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

/// Dispatch or combine where a token is sent once to each domain with any of its experts, and from
/// there once to each device (DeepEP); all levels work at once, the slowest decides. `copies`:
/// bytes that a device would send with one copy of each token for each of its experts (an
/// all-to-all).
Nanoseconds expert_exchange_time(Bytes copies, const ExpertRouting& routing,
                                 const GroupShape& group, const Network& network);

}  // namespace pfeife
