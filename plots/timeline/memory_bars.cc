#include "plots/timeline/memory_bars.h"

#include <algorithm>
#include <cmath>

#include "plots/figure/axis.h"
#include "plots/figure/svg.h"

namespace pfeife {

std::vector<plots::MemoryPart> plots::memory_parts() {
  return {{"parameters", &MemoryContents::parameters, kHeld},
          {"gradients", &MemoryContents::gradients, fill(Paint::Reduction)},
          {"optimizer", &MemoryContents::optimizer, fill(Paint::Optimizer)},
          {"saved for backward", &MemoryContents::saved, kMemory},
          {"autocast copies", &MemoryContents::autocast_copies, fill(Paint::Forward)},
          {"held for W", &MemoryContents::held_for_weights, fill(Paint::BackwardWeight)},
          {"buffers", &MemoryContents::buffers, fill(Paint::SendForward)},
          {"temporary", &MemoryContents::temporary, kWaiting},
          {"free in segments", &MemoryContents::segments, mix(kAlarm, kPaper, 0.7)}};
}

namespace {

using namespace plots;

constexpr double kMargin = 12, kLabels = 34, kHead = 20, kGap = 10, kLegend = 18, kFigures = 92,
                 kFoot = 34;
constexpr double kNear = 0.35;  ///< share of the limit from which on the limit is worth its room

double number(Bytes bytes) { return static_cast<double>(bytes.value); }

double row_height(std::size_t ranks) { return ranks <= 8 ? 14 : ranks <= 32 ? 8 : 4; }

/// Bytes to pixels.
struct Scale {
  double left = 0, right = 0;
  Bytes full{1};
  double x(Bytes bytes) const {
    return left + (right - left) * std::min(1.0, number(bytes) / number(full));
  }
};

Scale scale_of(std::span<const PlanMemory> plans, double width) {
  Bytes highest{1}, limit{0};
  for (const PlanMemory& plan : plans) {
    for (const MemoryContents& rank : plan.ranks) highest = std::max(highest, rank.total());
    for (const Bytes rank_limit : plan.limits) limit = std::max(limit, rank_limit);
  }
  if (number(highest) >= kNear * number(limit)) highest = std::max(highest, limit);
  if (limit > Bytes{0}) highest = std::min(highest, Bytes{2 * limit.value});
  return {kMargin + kLabels, width - kMargin - kFigures, highest};
}

void draw_bar(Svg& svg, const MemoryContents& rank, const Scale& scale, double top, double height,
              const std::string& who) {
  Bytes done{0};
  for (const MemoryPart& content : memory_parts()) {
    const Bytes bytes = rank.*content.bytes;
    const double from = scale.x(done);
    done += bytes;
    const double wide = scale.x(done) - from;
    if (wide < 0.05) continue;
    const std::string share = percent(number(bytes) / std::max(1.0, number(rank.total())));
    svg.raw("<rect class=\"content\" x=\"" + coordinate(from) + "\" y=\"" + coordinate(top) +
            "\" width=\"" + coordinate(wide) + "\" height=\"" + coordinate(height) + "\" fill=\"" +
            hex(content.fill) + "\" stroke=\"" + hex(kEdge) + "\" stroke-width=\"0.6\"><title>" +
            escape(who + content.name + ", " + rounded(bytes) + ", " + share) +
            "</title></rect>\n");
    const std::string figure = rounded(bytes, scale.full);
    if (height >= 12 && text_width(figure, 9.5) + 6 <= wide)
      svg.text(from + wide / 2, top + height / 2 + 3.4, figure,
               {.size = 9.5, .anchor = Anchor::Middle, .color = ink_on(content.fill)});
  }
}

/// Draws the contents that are there, in one line or more; returns where it ends.
double draw_legend(Svg& svg, std::span<const PlanMemory> plans, bool limits, const Scale& scale,
                   double width) {
  double x = kMargin, y = 6;
  const auto room = [&](const std::string& name) {
    const double entry = 19 + text_width(name, 10.5) + 12;
    if (x > kMargin && x + entry > width - kMargin) x = kMargin, y += kLegend;
    const double at = x;
    svg.text(at + 19, y + 13, name, {.size = 10.5});
    x += entry;
    return at;
  };
  for (const MemoryPart& content : memory_parts()) {
    const bool present = std::ranges::any_of(plans, [&](const PlanMemory& plan) {
      return std::ranges::any_of(plan.ranks, [&](const MemoryContents& rank) {
        return 1000 * (rank.*content.bytes).value > scale.full.value;
      });
    });
    if (!present) continue;
    const double at = room(content.name);
    svg.rect(at, y + 3, 14, 12, content.fill);
  }
  if (limits) {
    const double at = room("limit");
    svg.line(at + 7, y + 2, at + 7, y + 16, kAlarm,
             " stroke-width=\"1.4\" stroke-dasharray=\"4 2\"");
  }
  return y + kLegend + 4;
}

void draw_axis(Svg& svg, const Scale& scale, double top, double bottom) {
  const Bytes unit = scale.full >= kGiB ? kGiB : scale.full >= kMiB ? kMiB : kKiB;
  const char* name = unit == kGiB ? "GiB" : unit == kMiB ? "MiB" : "KiB";
  const double range = number(scale.full) / number(unit), step = tick_step(range);
  for (double tick = 0; tick <= range * 1.000001; tick += step) {
    const double x = scale.left + (scale.right - scale.left) * tick / range;
    svg.line(x, top, x, bottom, kRule, " stroke-width=\"0.6\"");
    svg.text(x, bottom + 14, fixed(tick, tick_decimals(step)),
             {.size = 10, .anchor = Anchor::Middle, .color = kMuted});
  }
  svg.text(scale.right + 14, bottom + 14, std::string(name) + ", estimated",
           {.size = 10, .color = kMuted});
}

}  // namespace

std::string memory_bars_svg(std::span<const PlanMemory> plans, int width) {
  const double whole = std::max(320, width);
  const Scale scale = scale_of(plans, whole);
  const auto drawn = [&](Bytes limit) { return limit > Bytes{0} && limit <= scale.full; };
  const bool limits = std::ranges::any_of(
      plans, [&](const PlanMemory& plan) { return std::ranges::any_of(plan.limits, drawn); });
  Svg svg, bars;
  const double top = draw_legend(svg, plans, limits, scale, whole);
  double y = top;
  for (const PlanMemory& plan : plans) {
    const double height = row_height(plan.ranks.size()), gap = height >= 8 ? 2 : 0.5;
    bars.text(kMargin, y + 13, shortened(plan.name, 11.5, scale.right - kMargin - 40),
              {.size = 11.5, .bold = true});
    y += kHead;
    for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
      const Bytes total = plan.ranks[r].total();
      const bool known = r < plan.limits.size() && plan.limits[r] > Bytes{0};
      const bool over = known && total > plan.limits[r];
      const double text = std::min(10.0, height + 1), base = y + height / 2 + 3.5;
      if (height >= 8)
        bars.text(scale.left - 6, base, std::to_string(r),
                  {.size = text, .anchor = Anchor::End, .color = kMuted});
      draw_bar(bars, plan.ranks[r], scale, y, height, "rank " + std::to_string(r) + ": ");
      if (known && drawn(plan.limits[r]))
        bars.line(scale.x(plan.limits[r]), y - 1, scale.x(plan.limits[r]), y + height + 1, kAlarm,
                  " class=\"limit\" stroke-width=\"1.4\" stroke-dasharray=\"4 2\"");
      if (height >= 8)
        bars.text(
            whole - kMargin, base,
            (total > scale.full ? "… " : "") + rounded(total, scale.full) + (over ? " !" : ""),
            {.size = text, .anchor = Anchor::End, .color = over ? kAlarm : kInk});
      y += height + gap;
    }
    y += kGap;
  }
  draw_axis(svg, scale, top, y - kGap + 4);
  svg.raw(bars.body());
  return svg.document(whole, y - kGap + 4 + kFoot - 12, "peak memory of each rank by content");
}

}  // namespace pfeife
