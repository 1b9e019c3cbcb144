// The closing table: what each plan does in each case, for a terminal.
#pragma once

#include <string>
#include <vector>

#include "planner/io/results/results.h"

namespace pfeife {

/// A line of text for each plan under a heading for each case, columns aligned, units in the
/// header. Columns that nothing fills (p95 without jitter, the bound where nothing is proven) are
/// left out. Under a plan: its bound and what that covers, why other families lost (of a few cases
/// only), what else could be chosen. ASCII.
std::string results_table(const std::vector<CaseRecord>& cases);

/// "devices=4,microbatches=8" to "devices 4, microbatches 8".
std::string heading(const CaseRecord& record);

/// Five digits at least, so that plans which differ little can be told apart; "-" for nothing.
std::string milliseconds_text(const std::optional<Nanoseconds>& time);

}  // namespace pfeife
