// Rows of a step that has more actions than there are pixels: what a rank does in each pixel's
// time, as shares. Boxes would be thinner than their outlines there, and a file of many megabytes.
#pragma once

#include "plots/figure/svg.h"
#include "plots/timeline/layout.h"

namespace pfeife::plots {

/// True if the panel's computations are thinner than half a pixel on average.
bool is_dense(const Panel& panel);

/// Columns a pixel wide: each kind of action (and each stage of the rank) has the height of its
/// share of the column's time, stacked from below; what is left is idle. With several lanes at the
/// same time a share is of all of them.
void draw_shares(Svg& svg, const TimelineLayout& layout, const Panel& panel, RankId rank);

}  // namespace pfeife::plots
