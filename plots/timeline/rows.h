// The rows of a timeline: lanes, boxes, arrows of transfers, the critical path, and the figures at
// the side.
#pragma once

#include "plots/figure/svg.h"
#include "plots/timeline/layout.h"

namespace pfeife::plots {

void draw_rows(Svg& svg, const TimelineLayout& layout, const Panel& panel,
               const TimelineOptions& options);

/// Are there few enough transfers for each to have an arrow to its receiver?
bool draws_arrows(const TimelineLayout& layout, const Panel& panel);
/// The events that the step waited for, first to last: each is what the next one waited for.
std::vector<std::size_t> critical_path(const Trace& trace);

}  // namespace pfeife::plots
