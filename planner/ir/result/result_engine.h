// Which engine the figures of a plan are from that are given once, whatever engines ran.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/result/result.h"
#include "planner/ir/trace/trace.h"

namespace pfeife {

/// The engine of samples_per_s and bubble: measured before simulated before estimated.
TraceSource engine_of(const ResultRow& row);

/// That of all rows, in a word for a heading: "simulated"; "best engine" if they differ. Rows
/// without a time do not count.
std::string engine_text(const std::vector<ResultRow>& rows);

}  // namespace pfeife
