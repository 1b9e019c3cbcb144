// What calibrated.cc takes from traces: efficiency curves of products, bandwidths and latencies of
// links.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/io/traces/products.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/result/plan.h"
#include "planner/ir/trace/observed_run.h"

namespace pfeife {

/// The median of at least one value.
inline double middle(std::vector<double> values) {
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// Efficiency curves from products that a profiler saw, as a cluster file has them.

/// What the products of a precision say. Even steps make the curve, odd ones judge it.
struct CalibratedCurve {
  EfficiencyCurve curve;
  std::size_t products = 0, steps = 0;  ///< that made it
  std::size_t held_out = 0;             ///< steps
  double before = 0, after = 0;         ///< predicted / measured - 1 of all products held out
};

/// A point for every half octave of work: what products of about that size reach together, less
/// `kind`'s kernel_overhead each. `precision` is a key of kind.peak. None without a product in an
/// even and one in an odd step.
std::optional<CalibratedCurve> calibrated_curve(std::span<const ObservedProduct> products,
                                                const std::string& precision,
                                                const DeviceKind& kind);

// Bandwidths and latencies of links from the messages of a run, into a cluster file.

/// A message whose time is its own: its receiver waited for it alone, and no other message was on
/// its links.
struct ObservedMessage {
  std::size_t step = 0;
  DeviceId from, to;
  std::string link;  ///< the narrowest on its way, as the cluster file names it
  Bytes bytes;
  Nanoseconds time{0};
};

/// The messages of all steps. `costs` and `placement` are of the plan, as `graph` is.
std::vector<ObservedMessage> observed_messages(const DependencyGraph& graph, const ObservedRun& run,
                                               const StageCosts& costs, const Placement& placement,
                                               const Cluster& cluster);

/// What the messages over a link say. Even steps make the curve, odd ones judge it.
struct CalibratedLink {
  BandwidthCurve curve;
  std::optional<Nanoseconds> latency;  ///< of the way, if it could be told from the bandwidth
  std::string latency_stays;           ///< why it could not
  std::size_t messages = 0, held_out = 0;
  double before = 0, after = 0;  ///< median of predicted / measured - 1 of the messages held out
};

/// By link. The latency is that of a line of time over bytes: the median slope of all pairs of
/// sizes (Theil 1950, Sen 1968), each half octave of bytes one, by its medians, and the median of
/// what the line leaves of the times. It takes two sizes of which one is kApart times the other,
/// with kFew messages each, ways of one latency, and a file that has it as one figure. The curve is
/// what messages reach beyond the latency: a point, the median, for every half octave. Both
/// directions make one: how two clocks differ is known only if messages are as fast either way.
/// Links without a message in an even and one in an odd step are left out; `after` is not filled.
/// `overhead` is the part of the cluster's latencies that is no link's (a profile's
/// message_overhead): the messages have it in their times, and so has what is found.
constexpr double kApart = 4;
constexpr std::size_t kFew = 3;
std::map<std::string, CalibratedLink> calibrated_links(
    const std::vector<ObservedMessage>& messages, const Cluster& cluster, Nanoseconds overhead,
    const std::function<bool(const std::string& link)>& has_own_latency);

/// Median of predicted / measured - 1 over the messages of odd steps over the link.
double error_held_out(const std::vector<ObservedMessage>& messages, const std::string& link,
                      const Cluster& cluster);

}  // namespace pfeife
