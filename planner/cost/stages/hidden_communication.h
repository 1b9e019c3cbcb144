// What a plan's compute hides of the collectives within stages, by kind; from the steps of layers.
#pragma once

#include <array>
#include <string>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/plan.h"

namespace pfeife {

/// Sums over a step, of a rank on average.
struct CommunicationTimes {
  std::array<Nanoseconds, kWorkKinds> all{};      ///< [WorkKind] of which compute is 0
  std::array<Nanoseconds, kWorkKinds> exposed{};  ///< of that, while nothing computes
};

/// Collectives of actions by themselves are exposed; of a forward beside a backward, those that
/// run_streams() finds exposed. Layers that have steps. Linear in the rows.
CommunicationTimes communication_times(const Layers& layers, const Plan& plan,
                                       const Cluster& cluster);

/// A sentence of that; "" = the plan communicates nothing.
std::string to_string(const CommunicationTimes& times);

}  // namespace pfeife
