// What the events of an observed trace waited for, told from the graph that they are the tasks of.
#pragma once

#include "planner/ir/trace/trace.h"

namespace pfeife {

/// Fills Event::posted and Event::waited_for of a trace whose event i is task i of `graph`: what an
/// engine knows while it runs, found afterwards for one that was only timed. Linear.
void explain_waits(const DependencyGraph& graph, Trace& trace);

}  // namespace pfeife
