// What each stage of given cuts and rows does with what it saves: keep it, compute some or all of
// it again, send some of what is then kept to the host.
#pragma once

#include <optional>

#include "planner/search/problem.h"

namespace pfeife {

/// Whether stages may send what they save to their host, and whether hosts have limited memory.
struct HostUse {
  bool offload = false;
  bool limited = true;
};

/// The choice with the use of every stage by which it is fastest within the problem's memory
/// (fastest_fitting), of those that Problem::recompute and `host` allow: of its blocks a stage
/// computes the first quarter, half, three quarters or all again, of what it keeps it offloads
/// nothing, half or all. Whole microbatches or slices. nullopt if none was found that fits.
std::optional<Choice> with_stage_uses(const Problem& problem, const Choice& choice,
                                      const HostUse& host);

}  // namespace pfeife
