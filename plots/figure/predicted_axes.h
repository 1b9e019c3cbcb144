// The axes of a chart of predicted over measured steps: the same ticks on both.
#pragma once

#include <span>
#include <string>

#include "plots/figure/svg.h"

namespace pfeife::plots {

struct PredictedAxes {
  double left = 0, right = 0, top = 0, bottom = 0;
  std::string unit;       ///< of the steps
  std::string predicted;  ///< "predicted" or which engine's: "estimated"
};
struct PredictedTick {
  double share = 0;  ///< of the axis, from its beginning
  std::string text;
};

/// Rules, figures and titles; the marks and the line of no error are the caller's.
void draw_predicted_axes(Svg& svg, const PredictedAxes& axes, std::span<const PredictedTick> ticks);

}  // namespace pfeife::plots
