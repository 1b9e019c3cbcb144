// Bandwidths of links from the messages of a run, into a cluster file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/result/plan.h"
#include "planner/ir/trace/observed_run.h"

namespace pfeife {

/// A message whose time is its own: its receiver waited for it alone, and no other message was on
/// its links.
struct ObservedMessage {
  std::size_t step = 0;
  DeviceId from, to;
  std::string link;  ///< the narrowest on its way, as the cluster file names it
  Bytes bytes;
  Nanoseconds time{0};
};

/// Those of all steps. `costs` and `placement` are of the plan, as `graph` is.
std::vector<ObservedMessage> observed_messages(const DependencyGraph& graph, const ObservedRun& run,
                                               const StageCosts& costs, const Placement& placement,
                                               const Cluster& cluster);

/// What the messages over a link say. Even steps make the curve, odd ones judge it.
struct CalibratedLink {
  BandwidthCurve curve;
  std::size_t messages = 0, held_out = 0;
  double before = 0, after = 0;  ///< median of predicted / measured - 1 of the messages held out
};

/// By link, what its messages reach beyond the latency of their way, which stays: a point, the
/// median, for every half octave of bytes. Both directions make one curve: how two clocks differ is
/// known only if messages are as fast either way. Links without a message in an even and one in an
/// odd step are left out; `after` is not filled.
std::map<std::string, CalibratedLink> calibrated_links(const std::vector<ObservedMessage>& messages,
                                                       const Cluster& cluster);

/// Median of predicted / measured - 1 over the messages of odd steps over the link.
double error_held_out(const std::vector<ObservedMessage>& messages, const std::string& link,
                      const Cluster& cluster);

}  // namespace pfeife
