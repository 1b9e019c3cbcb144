// step_below: with how few devices a step takes less than a given time.
#pragma once

#include <string>
#include <vector>

#include "planner/io/results/results.h"

namespace pfeife {

/// A line for cases that differ in the number of devices alone: the fewest with which the planned
/// step is shorter than `limit` by the best engine that all planned ones that fit have, and why the
/// next fewer do not do (a bound above the limit proves it). "" without cases.
std::string fewest_devices(const std::vector<CaseRecord>& cases, Nanoseconds limit,
                           std::size_t width = 80);

}  // namespace pfeife
