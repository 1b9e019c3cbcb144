// Where lines of a chart change places, in words.
#pragma once

#include <string>
#include <vector>

#include "plots/figure/chart.h"

namespace pfeife {

/// A line is ahead where it is better by more than a thousandth; points that do not fit into memory
/// do not count. Of lines that are as good the one that was best before leads, else the plan.
struct LineOrder {
  bool more_is_better = true;
  std::string key;  ///< what x counts: "microbatches", "GiB"; "" = nothing is said of it
};

/// "best that fits: zb_h2 up to 16 microbatches, zbv from 24 on"; "" if no point fits.
std::string leaders(const Chart& chart, const ChartPanel& panel, const LineOrder& order);
/// "zbv overtakes interleaved_1f1b between 8 and 16 microbatches", for every two lines, in the
/// order of x.
std::vector<std::string> crossovers(const Chart& chart, const ChartPanel& panel,
                                    const LineOrder& order);

}  // namespace pfeife
