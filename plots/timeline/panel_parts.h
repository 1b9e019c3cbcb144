// What timeline.cc draws of a panel; each part is in a source of its name.
#pragma once

#include <span>

#include "plots/figure/svg.h"
#include "plots/timeline/layout.h"

namespace pfeife::plots {

// The rows of a timeline: lanes, boxes, arrows of transfers, the critical path, and the figures at
// the side.

void draw_rows(Svg& svg, const TimelineLayout& layout, const Panel& panel,
               const TimelineOptions& options);

/// Are there few enough transfers for each to have an arrow to its receiver?
bool draws_arrows(const TimelineLayout& layout, const Panel& panel);
/// The events that the step waited for, first to last: each is what the next one waited for.
std::vector<std::size_t> critical_path(const Trace& trace);

// The boxes of a timeline row and what is written on them.

/// How the boxes of one kind are labelled in a whole panel: alike, or the picture gets restless.
struct LabelStyle {
  double size = 0;      ///< pixels; 0 = no labels
  bool letters = true;  ///< "F12", not only "12"
  friend bool operator==(const LabelStyle&, const LabelStyle&) = default;
};
/// [paint] The largest style that fits most boxes of its kind; one size for all computations, in a
/// column the one of all its letters.
std::vector<LabelStyle> label_styles(const TimelineLayout& layout, const Panel& panel);

/// The label of a box of that size in pixels: as its kind has it, or without letters if that is too
/// wide, or nothing.
std::string fitting_label(const Event& event, const LabelStyle& style, double width, double height);

/// "F12", or "12" without letters; "F4B3" and "4/3" for an overlap; "opt", "red".
std::string label(const Event& event, bool letters);
/// Number of the event's stage among the stages of its rank; 0 for events without one stage.
std::size_t shade(const Panel& panel, const Event& event);

/// Boxes, tooltips and labels of a rank.
void draw_boxes(Svg& svg, const TimelineLayout& layout, const Panel& panel, RankId rank,
                std::span<const LabelStyle> styles);

// Rows of a step that has more actions than there are pixels: what a rank does in each pixel's
// time, as shares. Boxes would be thinner than their outlines there, and a file of many megabytes.

/// True if the panel's computations are thinner than half a pixel on average.
bool is_dense(const Panel& panel);

/// Columns a pixel wide: each kind of action (and each stage of the rank) has the height of its
/// share of the column's time, stacked from below; what is left is idle. With several lanes at the
/// same time a share is of all of them.
void draw_shares(Svg& svg, const TimelineLayout& layout, const Panel& panel, RankId rank);

// Memory under the rows of a timeline: one strip a rank, all to one scale.

/// Draws the memory of a panel that has room for it.
void draw_memory(Svg& svg, const TimelineLayout& layout, const Panel& panel,
                 const TimelineOptions& options);

/// What the top of every strip stands for: the limit if any rank comes near it, else the highest
/// peak.
Bytes memory_top(const Trace& trace, std::span<const Bytes> limits);

/// A point of a step curve: the memory is `bytes` from `x` on.
struct MemoryPoint {
  double x = 0;
  Bytes bytes{0};
  friend bool operator==(const MemoryPoint&, const MemoryPoint&) = default;
};
/// The samples on paper. Of samples closer than half a pixel the largest and the last are kept, so
/// peaks stay.
std::vector<MemoryPoint> memory_points(std::span<const MemorySample> samples,
                                       const TimeScale& scale);

}  // namespace pfeife::plots
