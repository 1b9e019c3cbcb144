// Ranks, devices, links and routes as SimGrid knows them, so that sharing is exactly max-min.
//
// Three rules make it so (each is held by a test):
//  - physical links have no latency; every ordered pair of devices has its own first link of 1 ns,
//  so that all flows
//    have equal weights;
//  - the true latency and a flow's own top speed come from callbacks at the start of the flow;
//  - no link is of the kind that never shares (FATPIPE): a second flow on one would escape its
//  other links.
// Only what the job uses is built.
#pragma once

#include <simgrid/s4u.hpp>
#include <vector>

#include "sim/workload.h"

namespace pfeife {

/// What the network model is told about the flow that starts now.
struct StartingFlow {
  double latency_ns = 1;
  double speed = 1;   // share of the narrowest link's capacity that the flow reaches alone
  int questions = 0;  // callbacks answered
};

class Platform {
 public:
  explicit Platform(const Workload& work);

  simgrid::s4u::Host* rank(std::uint32_t r) const { return ranks_[r]; }
  simgrid::s4u::Host* timer(std::uint32_t r) const { return timers_[r]; }

  /// Starts a flow over a route that takes `latency` and then, if nothing gets in the way, `busy`.
  simgrid::s4u::CommPtr start_flow(std::uint32_t route, Bytes bytes, Nanoseconds latency,
                                   Nanoseconds busy, void* tag);

 private:
  struct Route {
    simgrid::s4u::Host* from = nullptr;
    simgrid::s4u::Host* to = nullptr;
    BytesPerSecond capacity;  // FlowRoute
  };
  void answer_callbacks(simgrid::s4u::NetZone* zone);

  std::vector<simgrid::s4u::Host*> ranks_, timers_;
  std::vector<Route> routes_;
  StartingFlow starting_;
};

/// SimGrid's settings; after the engine and before the first zone.
void configure_simgrid();

}  // namespace pfeife
