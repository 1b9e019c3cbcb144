// The boxes of a timeline row and what is written on them.
#pragma once

#include "plots/figure/svg.h"
#include "plots/timeline/layout.h"

namespace pfeife::plots {

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

}  // namespace pfeife::plots
