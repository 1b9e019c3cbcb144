#include "plots/figure/axis.h"
#include "plots/figure/theme.h"

namespace pfeife::plots {

void draw_predicted_axes(Svg& svg, const PredictedAxes& axes,
                         std::span<const PredictedTick> ticks) {
  const auto& [left, right, top, bottom, unit, predicted] = axes;
  for (const PredictedTick& tick : ticks) {
    const double x = left + (right - left) * tick.share, y = bottom - (bottom - top) * tick.share;
    svg.line(x, top, x, bottom, kRule, " stroke-width=\"0.6\"")
        .line(left, y, right, y, kRule, " stroke-width=\"0.6\"");
    svg.text(x, bottom + 15, tick.text, {.size = 10, .anchor = Anchor::Middle, .color = kMuted});
    svg.text(left - 6, y + 3.5, tick.text, {.size = 10, .anchor = Anchor::End, .color = kMuted});
  }
  svg.line(left, bottom, right, bottom, kMuted).line(left, top, left, bottom, kMuted);
  svg.text((left + right) / 2, bottom + 32, "measured step, " + unit,
           {.size = 10.5, .anchor = Anchor::Middle, .color = kMuted});
  const std::string turned = coordinate((top + bottom) / 2);
  svg.open_group(" transform=\"rotate(-90 14 " + turned + ")\"")
      .text(14, (top + bottom) / 2, predicted + " step, " + unit,
            {.size = 10.5, .anchor = Anchor::Middle, .color = kMuted})
      .close_group();
}

}  // namespace pfeife::plots
