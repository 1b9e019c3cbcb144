// The pictures of a case and of its plans, as documents.
#pragma once

#include <string>
#include <vector>

#include "experiments/plans/evaluated_case.h"

namespace pfeife {

/// Documents of plans_svg(), rank_times_svg(), memory_bars_svg(), partition_svg(), link_loads_svg()
/// and timeline_svg(); "" or absent = none.
struct CaseDrawings {
  std::string plans, rank_times, memory, partition, links;
  std::vector<std::string> timelines;  ///< [plan of the record]
};

/// The traces of all engines that there are of the plan, the estimate first.
std::vector<Trace> traces_of(const Evaluation& plan);

/// The pictures of a case and of its plans, in the order of its record. None of what is not
/// possible.
CaseDrawings drawings_of(const EvaluatedCase& evaluated);

/// What a report shows of the traces of a case (ReportInput::traces): of each possible plan the one
/// that is predicted, and the measured one.
std::string packed_traces(const EvaluatedCase& evaluated);

}  // namespace pfeife
