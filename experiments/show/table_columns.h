// The figures of a plan that tables show, on the screen and in files: columns and units.
#pragma once

#include <string>
#include <vector>

#include "planner/io/results/results.h"

namespace pfeife {

struct FigureColumn {
  std::string top, bottom;  ///< two lines of header: whose figure, and its unit
  std::string (*text)(const PlanRecord&);
};

/// Those that any plan fills (the step time of each engine that ran, percentiles with jitter, the
/// gap where a bound is proven). "-" where one plan has no figure.
std::vector<FigureColumn> figure_columns(const std::vector<CaseRecord>& cases);

struct MemoryUnit {
  double bytes;
  const char* name;
  /// The amount without the unit, one decimal.
  std::string text(Bytes amount) const;
};
/// The largest of GiB, MiB and KiB that is not more than the amount; KiB of less.
MemoryUnit memory_unit(Bytes amount);
/// One unit for the peaks of all cases: that of the smallest, which would be lost in a larger one.
MemoryUnit memory_unit(const std::vector<CaseRecord>& cases);

}  // namespace pfeife
