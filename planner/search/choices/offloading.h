// Plans that send to the host what does not fit on devices, or would have to be computed again.
//
// The problem is searched as if devices had room for everything; for the best plans then found,
// each stage keeps what it saves, computes some or all of it again, and offloads nothing, half or
// all of what is then kept, as is fastest together where memory is limited (fastest_fitting). No
// such plan is faster than the bound of devices with room for everything, where nothing is computed
// again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/ir/result/need.h"
#include "planner/search/pool/pool.h"
#include "planner/search/problem.h"

namespace pfeife {

struct Offloading {
  Claim claim;                ///< what no plan that offloads is below, nor any other
  std::vector<Priced> plans;  ///< that fit devices and hosts, the fastest first
  /// Where there are none: what a host lacks for the plan that fits the devices and lacks least,
  /// and the plan's name.
  std::optional<Shortage> lack;
  std::string lacking_plan;
};

/// Errors: ConfigError where no device has a host_link.
Offloading offloading_plans(const Problem& problem, const SearchOptions& options,
                            const SearchFunction& search);

/// Adds the plans, if there are any, to a pool, which then claims what they do.
void add_offloading_plans(Offloading offloading, Pool& pool);

}  // namespace pfeife
