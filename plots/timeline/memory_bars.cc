#include <algorithm>
#include <cmath>

#include "plots/figure/axis.h"
#include "plots/figure/chart_frame.h"
#include "plots/figure/svg.h"
#include "plots/timeline/pictures.h"

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

/// A bar that is cut at the end of the scale ends in a tear: paper from a jagged line on.
void draw_torn_end(Svg& svg, double right, double top, double height) {
  const double tooth = std::min(4.0, height / 2), depth = 3;
  std::string data =
      "M" + coordinate(right + 1) + " " + coordinate(top - 0.5) + "H" + coordinate(right - depth);
  bool out = true;
  for (double y = top - 0.5; y < top + height + 0.5; out = !out) {
    y = std::min(y + tooth, top + height + 0.5);
    data += "L" + coordinate(out ? right : right - depth) + " " + coordinate(y);
  }
  svg.path(data + "H" + coordinate(right + 1) + "Z",
           " class=\"torn\" fill=\"" + hex(kPaper) + "\"");
}

/// The same limit of all ranks; nothing if they differ.
std::optional<Bytes> common_limit(const PlanMemory& plan) {
  const bool same = !plan.limits.empty() && plan.limits.size() >= plan.ranks.size() &&
                    std::ranges::count(plan.limits, plan.limits.front()) ==
                        static_cast<std::ptrdiff_t>(plan.limits.size());
  return same ? std::optional(plan.limits.front()) : std::nullopt;
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
    draw_limit(svg, at + 7, y + 2, at + 7, y + 16);
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
    const auto limit = common_limit(plan);
    const std::string limit_text =
        limit && drawn(*limit) ? "limit " + rounded(*limit, scale.full) : "";
    double room = scale.right - kMargin - 40;
    if (!limit_text.empty())
      room = std::min(room, scale.x(*limit) - text_width(limit_text, 9.5) / 2 - kMargin - 8);
    bars.text(kMargin, y + 13, shortened(plan.name, 11.5, room), {.size = 11.5, .bold = true});
    y += kHead;
    const double first = y;
    for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
      const Bytes total = plan.ranks[r].total();
      const bool known = r < plan.limits.size() && plan.limits[r] > Bytes{0};
      const bool over = known && total > plan.limits[r];
      const double text = std::min(10.0, height + 1), base = y + height / 2 + 3.5;
      if (height >= 8)
        bars.text(scale.left - 6, base, std::to_string(r),
                  {.size = text, .anchor = Anchor::End, .color = kMuted});
      draw_bar(bars, plan.ranks[r], scale, y, height, "rank " + std::to_string(r) + ": ");
      if (total > scale.full) draw_torn_end(bars, scale.right, y, height);
      if (known && !limit && drawn(plan.limits[r]))
        draw_limit(bars, scale.x(plan.limits[r]), y - 1, scale.x(plan.limits[r]), y + height + 1);
      if (height >= 8)
        bars.text(whole - kMargin, base, rounded(total, scale.full) + (over ? " !" : ""),
                  {.size = text, .anchor = Anchor::End, .color = over ? kAlarm : kInk});
      y += height + gap;
    }
    if (!limit_text.empty()) {
      const double x = scale.x(*limit);
      draw_limit(bars, x, first - 3, x, y);
      bars.text(x, first - 5, limit_text, {.size = 9.5, .anchor = Anchor::Middle, .color = kAlarm});
    }
    y += kGap;
  }
  draw_axis(svg, scale, top, y - kGap + 4);
  svg.raw(bars.body());
  return svg.document(whole, y - kGap + 4 + kFoot - 12, "peak memory of each rank by content");
}

}  // namespace pfeife
