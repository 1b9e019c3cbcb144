#include "experiments/studies/published_runs/scatter.h"

#include <algorithm>
#include <cmath>

#include "plots/figure/axis.h"
#include "plots/figure/predicted_axes.h"

namespace pfeife::published {
namespace {

using namespace plots;

constexpr double kWidth = 640, kHeight = 420, kLeft = 64, kRight = 424, kTop = 12, kBottom = 372;

struct Scale {
  double low = 1e9, high = 0;
  double share(double value) const { return std::log(value / low) / std::log(high / low); }
  double x(double value) const { return kLeft + (kRight - kLeft) * share(value); }
  double y(double value) const { return kBottom - (kBottom - kTop) * share(value); }
};

Scale scale_of(std::span<const Series> series) {
  Scale scale;
  for (const Series& shown : series)
    for (const Pair& pair : shown.pairs)
      for (const double value : {pair.measured, pair.predicted})
        scale.low = std::min(scale.low, value), scale.high = std::max(scale.high, value);
  return {scale.low / 1.15, scale.high * 1.15};
}

void draw_axes(Svg& svg, const Scale& scale) {
  std::vector<PredictedTick> ticks;
  for (const double tick : log_ticks(scale.low, scale.high))
    ticks.push_back({scale.share(tick), hundredths(std::llround(tick * 100))});
  draw_predicted_axes(svg, {kLeft, kRight, kTop, kBottom, "s", "estimated"}, ticks);
}

void draw_mark(Svg& svg, double x, double y, Color color) {
  svg.raw("<path d=\"M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z\" transform=\"translate(" + coordinate(x) +
          " " + coordinate(y) + ")\" fill=\"none\" stroke=\"" + hex(color) +
          "\" stroke-width=\"1.4\"/>\n");
}

}  // namespace

std::string scatter(std::span<const Series> series) {
  const Scale scale = scale_of(series);
  Svg svg;
  draw_axes(svg, scale);
  svg.line(kLeft, kBottom, kRight, kTop, kMuted, " stroke-width=\"1.2\" stroke-dasharray=\"4 3\"");
  double y = kTop + 14;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Color color = kSeries[i % kSeries.size()];
    for (const Pair& pair : series[i].pairs)
      draw_mark(svg, scale.x(pair.measured), scale.y(pair.predicted), color);
    draw_mark(svg, kRight + 24, y - 4, color);
    svg.text(kRight + 34, y, series[i].name, {.size = 10.5});
    y += 18;
  }
  svg.line(kRight + 16, y - 4, kRight + 32, y - 4, kMuted,
           " stroke-width=\"1.2\" stroke-dasharray=\"4 3\"");
  svg.text(kRight + 38, y, "no error", {.size = 10.5});
  return svg.document(kWidth, kHeight, "Estimated over measured step times of published runs");
}

}  // namespace pfeife::published
