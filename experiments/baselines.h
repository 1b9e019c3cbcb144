// What a plan is compared with.
#pragma once

#include "experiments/candidate.h"

namespace pfeife {

/// A family on equal-time cuts, one stage a device where it allows that, otherwise as few as it
/// does; with a reason in place of a schedule where it cannot be.
Candidate baseline(const std::string& name, const CaseConfig& config, const Layers& layers,
                   const Cluster& cluster);

}  // namespace pfeife
