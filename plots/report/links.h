// The part of the report about links: what each pair of devices has between it.
#pragma once

#include <string>

#include "planner/ir/machine/cluster.h"

namespace pfeife::plots {

/// Bandwidth (of large messages) and latency from each device to each other one. Consecutive
/// devices that no path tells apart share a row and a column. Of more than 32 such rows the first
/// are shown.
/// "" for a single device.
std::string links_table(const Cluster& cluster);

}  // namespace pfeife::plots
