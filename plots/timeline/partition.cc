#include <algorithm>
#include <array>
#include <functional>

#include "plots/figure/axis.h"
#include "plots/figure/svg.h"
#include "plots/timeline/pictures.h"

namespace pfeife {
namespace {

using namespace plots;

constexpr double kMargin = 12, kLabels = 84, kBand = 26, kHead = 22, kFoot = 20, kThin = 5;

/// A rank's colour says nothing but which rank: pale, so that it is taken for no action. They come
/// again where there are more ranks; the numbers in the bands tell them apart.
Color rank_fill(RankId rank) {
  static constexpr std::array<Color, 8> kRanks{{{0xc3, 0xd8, 0xf2},
                                                {0xf3, 0xd2, 0xa9},
                                                {0xbf, 0xe0, 0xc4},
                                                {0xe5, 0xc4, 0xde},
                                                {0xe9, 0xe3, 0xa0},
                                                {0xb9, 0xdf, 0xe0},
                                                {0xe6, 0xc3, 0xbb},
                                                {0xd3, 0xd6, 0xda}}};
  return kRanks[rank.index() % kRanks.size()];
}

/// What the width of a layer stands for.
using Weight = std::function<double(const RibbonLayer&)>;

double bytes_of(const RibbonLayer& layer) {
  return static_cast<double>(layer.held.value) + static_cast<double>(layer.saved.value);
}

std::string figures(Nanoseconds time, Bytes held, Bytes saved) {
  return ", " + rounded(time) + "; " + rounded(held) + " held, " + rounded(saved) +
         " saved a microbatch";
}

void draw_box(Svg& svg, double x, double y, double width, Color fill, Color edge,
              const std::string& hint) {
  svg.raw("<rect class=\"layers\" x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) +
          "\" width=\"" + coordinate(width) + "\" height=\"" + coordinate(kBand) + "\" fill=\"" +
          hex(fill) + "\" stroke=\"" + hex(edge) + "\" stroke-width=\"0.5\"><title>" +
          escape(hint) + "</title></rect>\n");
}

/// The layers of [first, last) as boxes, thin ones together with those behind them.
void draw_layers(Svg& svg, const Ribbon& ribbon, std::size_t first, std::size_t last, double x,
                 double y, double pixels, const Weight& weight) {
  const RankId rank = ribbon.rank_of_stage[ribbon.layers[first].stage];
  const Color fill = rank_fill(rank);
  const std::string who =
      "rank " + to_string(rank) + ", stage " + std::to_string(ribbon.layers[first].stage) + ": ";
  while (first < last) {
    Nanoseconds time{0};
    Bytes held{0}, saved{0};
    double width = 0;
    std::size_t next = first;
    while (next < last && (next == first || width < kThin)) {
      const RibbonLayer& layer = ribbon.layers[next++];
      time += layer.time, held += layer.held, saved += layer.saved;
      width += pixels * weight(layer);
    }
    std::string names = "layer " + std::to_string(first) + ", " + ribbon.layers[first].name;
    if (next - first > 1)
      names = "layers " + std::to_string(first) + " to " + std::to_string(next - 1) + ", " +
              ribbon.layers[first].name + " to " + ribbon.layers[next - 1].name;
    draw_box(svg, x, y, width, fill, mix(fill, kInk, 0.25),
             who + names + figures(time, held, saved));
    x += width, first = next;
  }
}

void draw_band(Svg& svg, const Ribbon& ribbon, const char* name, double y, double right,
               const Weight& weight) {
  double total = 0;
  for (const RibbonLayer& layer : ribbon.layers) total += weight(layer);
  if (total <= 0) return;
  const double left = kMargin + kLabels, pixels = (right - left) / total;
  svg.text(kMargin, y + kBand / 2 + 4, name, {.size = 11});
  double x = left;
  for (std::size_t first = 0, last; first < ribbon.layers.size(); first = last) {
    const std::size_t stage = ribbon.layers[first].stage;
    double width = 0;
    for (last = first; last < ribbon.layers.size() && ribbon.layers[last].stage == stage; ++last)
      width += pixels * weight(ribbon.layers[last]);
    draw_layers(svg, ribbon, first, last, x, y, pixels, weight);
    const std::string share = percent(width / (right - left));
    const std::string rank = to_string(ribbon.rank_of_stage[stage]);
    for (const std::string& text : {"rank " + rank + ", " + share, rank})
      if (text_width(text, 10.5) + 8 <= width) {
        svg.text(x + width / 2, y + kBand / 2 + 3.8, text,
                 {.size = 10.5, .anchor = Anchor::Middle, .color = ink_on(rank_fill(RankId{0}))});
        break;
      }
    x += width;
    if (last < ribbon.layers.size())
      svg.line(x, y - 4, x, y + kBand + 4, kInk, " class=\"cut\" stroke-width=\"1.6\"");
  }
}

}  // namespace

std::string partition_svg(const Ribbon& ribbon, int width) {
  if (ribbon.layers.empty()) return "";
  const double whole = std::max(320, width), right = whole - kMargin;
  Nanoseconds time{0};
  Bytes held{0}, saved{0};
  for (const RibbonLayer& layer : ribbon.layers)
    time += layer.time, held += layer.held, saved += layer.saved;
  const Bytes most = std::max(held, saved);
  Svg svg;
  svg.text(kMargin, 15, shortened(ribbon.name, 11.5, whole / 3), {.size = 11.5, .bold = true});
  svg.text(right, 15,
           std::to_string(ribbon.layers.size()) + " layers, estimated " + rounded(time) +
               " a microbatch; " + rounded(held, most) + " held, " + rounded(saved, most) +
               " saved a microbatch",
           {.size = 10.5, .anchor = Anchor::End, .color = kMuted});
  double y = kHead + 6;
  draw_band(svg, ribbon, "by time", y, right,
            [](const RibbonLayer& layer) { return static_cast<double>(layer.time.count()); });
  y += kBand + 12;
  draw_band(svg, ribbon, "by memory", y, right, bytes_of);
  y += kBand;
  return svg.document(whole, y + kFoot - 8, "layers of each rank, " + ribbon.name);
}

}  // namespace pfeife
