// Plans that send to the host what does not fit on devices, or would have to be computed again.
//
// The problem is searched as if devices had room for everything; for the best plans then found,
// each stage keeps what it saves, computes some or all of it again, and offloads nothing, half or
// all of what is then kept, as is fastest together where memory is limited (fastest_fitting). No
// such plan is faster than the bound of devices with room for everything, where nothing is computed
// again.
#pragma once

#include "planner/search/pool/pool.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Adds plans that offload to the pool: those that fit the memory of devices and of hosts. If there
/// is one, the pool's lower bound on the step becomes one that holds for all its plans, whether
/// they offload or not. If there is none, the pool notes (Answer::host_lack) which plan would fit
/// the devices with the smallest shortage of a host's memory. Errors: ConfigError where no device
/// has a host_link.
void add_offloading_plans(const Problem& problem, const SearchOptions& options,
                          const SearchFunction& search, Pool& pool);

}  // namespace pfeife
