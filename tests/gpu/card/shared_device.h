// A pipeline whose ranks share one device: while k of them compute, each gets a k-th of it.
//
// What ranks as threads of one card are compared with. An idealisation: kernels that fill the card
// alone gain nothing from running beside others, small ones gain. Transfers take their time and
// none of the device's.
#pragma once

#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/trace/trace.h"

namespace pfeife::card {

struct TaskTimes {
  Nanoseconds start{0}, end{0};
};

/// [task] When each task of the graph runs. `durations` by slot: of a rank that has the device to
/// itself. The graph must be free of deadlock. Cost: tasks times ranks and edges.
std::vector<TaskTimes> times_on_shared_device(const DependencyGraph& graph,
                                              const std::vector<Nanoseconds>& durations);

}  // namespace pfeife::card
