#include <algorithm>
#include <array>
#include <map>

#include "planner/ir/basics/round_down.h"
#include "plots/figure/svg.h"
#include "plots/timeline/layout.h"
#include "plots/timeline/panel_parts.h"
#include "plots/timeline/pictures.h"

namespace pfeife {
namespace {

using namespace plots;

constexpr double kMargin = 12, kHead = 20, kFoot = 26, kGap = 12, kLabels = 34;
constexpr double kBoundLine = 14;  ///< for the words above a bound

double row_height(std::size_t ranks) {
  return ranks <= 4 ? 18 : ranks <= 8 ? 12 : ranks <= 16 ? 8 : ranks <= 64 ? 4 : 2;
}

/// The compute rows of a plan from `top` on, `bottom` after the last.
Panel panel_of(const Trace& trace, double top) {
  Panel panel = open_panel(trace);
  const double height = row_height(trace.ranks), gap = height >= 8 ? 2 : 0.5;
  double y = panel.top = top;
  y += kHead;
  for (const RankLanes& lanes : panel.lanes) {
    Row row;
    row.compute_top = y;
    row.compute_height = height / static_cast<double>(lanes.compute_lanes);
    row.communication_top = row.bottom = y + height;
    panel.rows.push_back(row);
    y += height + gap;
  }
  panel.rows_bottom = panel.bottom = y;
  return panel;
}

std::string box_path(double left, double top, double width, double height) {
  return "M" + coordinate(left) + " " + coordinate(top) + "h" + coordinate(width) + "v" +
         coordinate(height) + "h" + coordinate(-width) + "z";
}

/// A path for each kind of action and stage of a rank; what is written on the boxes.
void draw_compact(Svg& svg, const TimelineLayout& layout, const Panel& panel) {
  constexpr std::size_t kMostLabels = 1000;
  std::map<std::pair<Paint, std::size_t>, std::string> paths, labels;
  const std::vector<LabelStyle> styles = label_styles(layout, panel);
  const bool labelled = panel.trace->events.size() <= kMostLabels;
  for (std::size_t r = 0; r < panel.rows.size(); ++r)
    for (const LaneItem& item : panel.lanes[r].compute) {
      const Event& event = panel.trace->events[item.event];
      const double left = panel.scale.x(event.start), width = panel.scale.x(event.end) - left;
      const double top = panel.rows[r].top(item, false), height = panel.rows[r].compute_height;
      const std::pair look{paint(event), shade(panel, event)};
      paths[look] += box_path(left, top, width, height);
      const LabelStyle& style = styles[static_cast<std::size_t>(look.first)];
      const std::string text = fitting_label(event, style, width, height);
      if (labelled && !text.empty())
        labels[look] += "<text x=\"" + coordinate(left + width / 2) + "\" y=\"" +
                        coordinate(top + height / 2 + style.size * 0.36) + "\">" + escape(text) +
                        "</text>\n";
    }
  for (const auto& [look, data] : paths) {
    const Color ground = fill(look.first, look.second, layout.shades);
    svg.path(data, " class=\"boxes\" fill=\"" + hex(ground) + "\" stroke=\"" + hex(kEdge) +
                       "\" stroke-width=\"0.3\"");
    if (labels[look].empty()) continue;
    const LabelStyle& style = styles[static_cast<std::size_t>(look.first)];
    svg.open_group(" class=\"labels\" fill=\"" + hex(ink_on(ground)) + "\" font-size=\"" +
                   coordinate(style.size) + "\" text-anchor=\"middle\"")
        .raw(labels[look])
        .close_group();
  }
}

void draw_plan(Svg& svg, const TimelineLayout& layout, const Panel& panel,
               const ComparedPlan& plan) {
  const double baseline = panel.top + 13;
  const std::string facts = to_string(plan.trace.source) + " " +
                            rounded(step_time(plan.trace), layout.axis) + ", bubble " +
                            percent(bubble(plan.trace)) + (plan.fits ? "" : ", does not fit");
  const double room = layout.plot_right - kMargin;
  const std::string name = shortened(plan.name, 12.5, room * 0.5);
  svg.text(kMargin, baseline, name, {.size = 12.5, .bold = true});
  double left = kMargin + text_width(name, 12.5) * 1.06 + 10;
  if (!plan.speed_up.empty()) {
    svg.text(left, baseline, plan.speed_up, {.size = 12.5, .bold = true});
    left += text_width(plan.speed_up, 12.5) * 1.06 + 10;
  }
  svg.text(left, baseline, shortened(facts, 11.5, layout.plot_right - left),
           {.size = 11.5, .color = plan.fits ? kInk : kAlarm});
  const double right = panel.scale.x(panel.end);
  for (std::size_t r = 0; r < panel.rows.size(); ++r) {
    const Row& row = panel.rows[r];
    const double height = row.bottom - row.compute_top;
    svg.rect(layout.plot_left, row.compute_top, right - layout.plot_left, height, kIdle);
    if (height >= 8)
      svg.text(layout.plot_left - 6, row.compute_top + height / 2 + 3.5, std::to_string(r),
               {.size = std::min(10.0, height + 1), .anchor = Anchor::End, .color = kMuted});
  }
  if (!is_dense(panel)) return draw_compact(svg, layout, panel);
  for (std::size_t r = 0; r < panel.rows.size(); ++r) draw_shares(svg, layout, panel, RankId{r});
}

/// [paint] Does some plan spend so much time on it that it can be seen: 1/10,000 of its step?
std::array<bool, kPaints> visible(std::span<const ComparedPlan> plans) {
  std::array<bool, kPaints> visible{};
  for (const ComparedPlan& plan : plans) {
    std::array<Nanoseconds, kPaints> spent{};
    for (const Event& event : plan.trace.events)
      if (event.kind == TaskKind::Compute || event.kind == TaskKind::Optimizer)
        spent[static_cast<std::size_t>(paint(event))] += event.end - event.start;
    const auto least = step_time(plan.trace) * static_cast<std::int64_t>(plan.trace.ranks);
    for (std::size_t p = 0; p < kPaints; ++p)
      visible[p] = visible[p] || (spent[p].count() > 0 && 10'000 * spent[p] >= least);
  }
  return visible;
}

/// Boxes and names of what there is, in one or more lines from `top` on; returns where they end.
double draw_legend(Svg& svg, std::span<const ComparedPlan> plans, std::size_t shades, double top,
                   double width) {
  const std::array<bool, kPaints> present = visible(plans);
  double x = kMargin, y = top;
  const auto entry = [&](Color color, const std::string& text) {
    const double wide = 19 + text_width(text, 10.5) + 12;
    if (x > kMargin && x + wide > width - kMargin) x = kMargin, y += kLegendLine;
    svg.rect(x, y + 3, 14, 12, color).text(x + 19, y + 13, text, {.size = 10.5});
    x += wide;
  };
  for (std::size_t p = 0; p < kPaints; ++p)
    if (present[p]) entry(fill(static_cast<Paint>(p)), name(static_cast<Paint>(p)));
  entry(kIdle, "idle");
  if (shades > 1) entry(kPaper, "paler: later stage of the rank");
  return y + kLegendLine;
}

/// Through the plans between `top`, where its label stands, and `bottom`.
void draw_bound(Svg& svg, const TimelineLayout& layout, const CoveringBound& bound, double x,
                double top, double bottom) {
  svg.line(x, top + 13, x, bottom, kInk,
           " class=\"bound\" stroke-width=\"1.4\" stroke-dasharray=\"5 3\"");
  const std::string text =
      "no plan of " + bound.of + " is below " + rounded(rounded_down(bound.time, 4), layout.axis);
  const double right = std::max(std::min(x, layout.plot_right), kMargin + text_width(text, 10.5));
  svg.text(right, top + 9, text, {.size = 10.5, .anchor = Anchor::End});
}

void draw_axis(Svg& svg, const TimelineLayout& layout, const TimeScale& scale, double y) {
  svg.line(layout.plot_left, y, layout.plot_right, y, kMuted, " stroke-width=\"0.8\"");
  for (const Nanoseconds tick : layout.axis.ticks) {
    const double x = scale.x(tick);
    svg.line(x, y, x, y + 4, kMuted, " stroke-width=\"0.8\"");
    svg.text(x, y + 15, exact(tick, layout.axis), {.size = 10, .anchor = Anchor::Middle});
  }
  svg.text(layout.plot_right + 8, y + 4, layout.axis.unit, {.size = 10});
}

}  // namespace

std::string plans_svg(std::span<const ComparedPlan> plans, const PlansOptions& options) {
  TimelineLayout layout;
  layout.width = std::max(320, options.width);
  layout.plot_left = kMargin + kLabels;
  layout.plot_right = layout.width - kMargin - 24;
  Svg svg;
  double y = kMargin;
  if (!options.title.empty()) {
    svg.text(kMargin, y + 12, shortened(options.title, 14, layout.width - 2 * kMargin),
             {.size = 14, .bold = true});
    y += 22;
  }
  Nanoseconds longest{1};
  for (const ComparedPlan& plan : plans) {
    longest = std::max(longest, step_time(plan.trace));
    if (plan.bound) longest = std::max(longest, plan.bound->time);
  }
  const double pixels =
      (layout.plot_right - layout.plot_left) / static_cast<double>(longest.count());
  layout.axis =
      time_axis(longest, static_cast<std::size_t>((layout.plot_right - layout.plot_left) / 70));
  constexpr std::int64_t kMillisecond = 1'000'000;
  if (longest.count() < 10'000 * kMillisecond && layout.axis.unit == "s") {  // as tables have them
    layout.axis.unit = "ms";
    layout.axis.unit_size = Nanoseconds{kMillisecond};
  }
  for (const ComparedPlan& plan : plans) {
    layout.panels.push_back(open_panel(plan.trace));
    for (const auto& stages : layout.panels.back().stages)
      layout.shades = std::max(layout.shades, stages.size());
  }
  if (options.legend) y = draw_legend(svg, plans, layout.shades, y, layout.width) + 4;
  TimeScale axis{Nanoseconds{0}, layout.plot_left, pixels};
  double bound_top = y;  // of the plans up to here that have the same bound
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const auto& bound = plans[p].bound;
    if (bound && (p == 0 || plans[p - 1].bound != bound)) bound_top = y, y += kBoundLine;
    Panel panel = panel_of(plans[p].trace, y);
    panel.scale = {panel.scale.origin, layout.plot_left, pixels};
    svg.open_group(" class=\"plan\"");
    draw_plan(svg, layout, panel, plans[p]);
    svg.close_group();
    if (bound && (p + 1 == plans.size() || plans[p + 1].bound != bound))
      draw_bound(svg, layout, *bound, axis.x(bound->time), bound_top, panel.bottom + 4);
    y = panel.bottom + kGap;
  }
  draw_axis(svg, layout, axis, y - kGap + 4);
  return svg.document(layout.width, y - kGap + 4 + kFoot,
                      options.title.empty() ? "plans on one time axis" : options.title);
}

}  // namespace pfeife
