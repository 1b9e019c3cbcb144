// What a step does to the links of a cluster, and what they do to it: where transfers that run at
// the same time share capacity.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/basics/units.h"

namespace pfeife {

/// Load from `time` on.
struct LoadSample {
  Nanoseconds time{0};
  double share = 0;  ///< of the capacity that is taken, in [0, 1]
  friend bool operator==(const LoadSample&, const LoadSample&) = default;
};

/// One link over a step.
struct LinkLoad {
  std::string link;  ///< its name in the cluster
  BytesPerSecond capacity;
  Bytes bytes{0};                   ///< that go over it
  std::vector<LoadSample> samples;  ///< in increasing time; the last one's share is 0
  /// By how much its transfers last longer than alone because this link is shared, added up.
  Nanoseconds slowed{0};
  friend bool operator==(const LinkLoad&, const LinkLoad&) = default;
};

/// A link's step in figures.
struct LinkUse {
  std::string link;
  double capacity = 0;  ///< bytes a second
  Bytes bytes{0};
  double mean_load = 0;   ///< share of the capacity, over the step
  Nanoseconds slowed{0};  ///< as in LinkLoad
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

/// The messages of all microbatches from one stage to another, where they last longer than alone.
struct SlowedMessages {
  std::size_t from = 0, to = 0;  ///< stages
  std::size_t count = 0;
  Nanoseconds alone{0};             ///< each, as estimated
  Nanoseconds mean{0}, longest{0};  ///< as simulated
  friend bool operator==(const SlowedMessages&, const SlowedMessages&) = default;
};

/// How long a step of the same plan takes on other networks.
struct FasterLinks {
  Nanoseconds now{0};
  Nanoseconds unshared{0};  ///< every transfer as if it were alone
  Nanoseconds twice{0};     ///< every link and path twice as fast, latencies as they are
  Nanoseconds instant{0};   ///< latencies alone
  friend bool operator==(const FasterLinks&, const FasterLinks&) = default;
};

/// The links of a simulated plan.
struct LinksRecord {
  std::vector<LinkUse> links;          ///< that something goes over, the fullest first
  std::vector<SlowedMessages> slowed;  ///< the most time lost first
  FasterLinks faster;
  friend bool operator==(const LinksRecord&, const LinksRecord&) = default;
};

}  // namespace pfeife
