#include "plots/report/charts.h"

#include <algorithm>

#include "plots/figure/axis.h"
#include "plots/figure/svg.h"

namespace pfeife::plots {
namespace {

constexpr double kWideWidth = 1100, kLabels = 150, kFigures = 84, kBar = 18, kRowHeight = 26;

/// Horizontal bars from 0 on, a row a plan.
struct Bars {
  double left = kLabels, right = 0, bottom = 0;
  TimeAxis axis;
  double pixels_per_ns = 0;

  double x(Nanoseconds time) const {
    return left + static_cast<double>(time.count()) * pixels_per_ns;
  }
  double top(std::size_t row) const { return 4 + kRowHeight * static_cast<double>(row); }
};

Bars bars_for(double width, std::size_t rows, Nanoseconds longest) {
  Bars bars;
  bars.right = width - kFigures;
  bars.bottom = bars.top(rows);
  bars.axis = time_axis(longest, static_cast<std::size_t>((bars.right - bars.left) / 60));
  bars.pixels_per_ns =
      (bars.right - bars.left) / static_cast<double>(std::max(longest, Nanoseconds{1}).count());
  return bars;
}

void draw_axis(Svg& svg, const Bars& bars) {
  for (const Nanoseconds tick : bars.axis.ticks) {
    svg.line(bars.x(tick), 0, bars.x(tick), bars.bottom, kRule, " stroke-width=\"0.6\"");
    svg.text(bars.x(tick), bars.bottom + 14, exact(tick, bars.axis),
             {.size = 10, .anchor = Anchor::Middle, .color = kMuted});
  }
  svg.text(bars.right + 12, bars.bottom + 14, bars.axis.unit, {.size = 10, .color = kMuted});
}

void draw_label(Svg& svg, const Bars& bars, std::size_t row, const std::string& text, bool bold) {
  svg.text(bars.left - 8, bars.top(row) + kBar / 2 + 4, shortened(text, 11.5, bars.left - 14),
           {.size = 11.5, .anchor = Anchor::End, .bold = bold});
}

/// One stacked bar.
void draw_causes(Svg& svg, const Bars& bars, std::size_t row, const Attribution& whole) {
  const double top = bars.top(row), total = static_cast<double>(whole.total().count());
  Nanoseconds done{0};
  for (const Cause& cause : causes(whole)) {
    const double left = bars.x(done), right = bars.x(done + cause.time);
    done += cause.time;
    if (cause.time <= Nanoseconds{0}) continue;
    svg.open_group(" class=\"cause\"");
    svg.raw("<title>" + escape(cause.name + ", " + rounded(cause.time)) + "</title>\n");
    svg.rect(left, top, right - left, kBar, cause.fill);
    const std::string share = percent(static_cast<double>(cause.time.count()) / total);
    if (text_width(share, 10) + 6 <= right - left)
      svg.text((left + right) / 2, top + kBar / 2 + 3.6, share,
               {.size = 10, .anchor = Anchor::Middle, .color = ink_on(cause.fill)});
    svg.close_group();
  }
}

/// The stages of a rank, one after the other: forward, then backward; the fainter the later.
void draw_stages(Svg& svg, const Bars& bars, std::size_t row,
                 const std::vector<std::pair<std::size_t, StageCompute>>& stages) {
  Nanoseconds done{0};
  for (std::size_t k = 0; k < stages.size(); ++k) {
    const auto& [number, stage] = stages[k];
    svg.open_group(" class=\"stage\"");
    svg.raw("<title>" +
            escape("stage " + std::to_string(number) + ", forward " + rounded(stage.forward) +
                   ", backward " + rounded(stage.backward)) +
            "</title>\n");
    for (const auto& [time, paint] :
         {std::pair{stage.forward, Paint::Forward}, {stage.backward, Paint::Backward}}) {
      svg.rect(bars.x(done), bars.top(row), bars.x(done + time) - bars.x(done), kBar,
               fill(paint, k, stages.size()),
               " stroke=\"" + hex(kPaper) + "\" stroke-width=\"0.5\"");
      done += time;
    }
    svg.close_group();
  }
}

/// A box and a name, and the next to the right; returns where that begins.
double draw_entry(Svg& svg, double x, double baseline, Color fill, const std::string& name) {
  svg.rect(x, baseline - 9, 14, 11, fill);
  svg.text(x + 19, baseline, name, {.size = 10.5});
  return x + 19 + text_width(name, 10.5) + 8;
}

void draw_cause_legend(Svg& svg, double baseline) {
  double x = kLabels;
  for (const Cause& cause : causes(Attribution{}))
    x = draw_entry(svg, x, baseline, cause.fill, cause.name);
}

}  // namespace

std::string stage_chart(const PlanRecord& plan) {
  std::vector<std::vector<std::pair<std::size_t, StageCompute>>> ranks;
  std::vector<Nanoseconds> load;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const StageCompute& stage = plan.stages[s];
    ranks.resize(std::max(ranks.size(), stage.rank.index() + 1));
    load.resize(ranks.size());
    ranks[stage.rank.index()].emplace_back(s, stage);
    load[stage.rank.index()] += stage.forward + stage.backward;
  }
  if (ranks.empty()) return "";
  Nanoseconds total{0};
  for (const Nanoseconds time : load) total += time;
  const Nanoseconds mean = total / static_cast<std::int64_t>(load.size());
  const Bars bars = bars_for(kWideWidth, ranks.size(), std::ranges::max(load));
  Svg svg;
  draw_axis(svg, bars);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    draw_label(svg, bars, r, "rank " + std::to_string(r), false);
    draw_stages(svg, bars, r, ranks[r]);
    svg.text(kWideWidth - 4, bars.top(r) + kBar / 2 + 4, rounded(load[r], bars.axis),
             {.anchor = Anchor::End});
  }
  svg.line(bars.x(mean), 0, bars.x(mean), bars.bottom, kInk,
           " stroke-width=\"1.5\" stroke-dasharray=\"4 3\"");
  const double baseline = bars.bottom + 34;
  double x = draw_entry(svg, kLabels, baseline, fill(Paint::Forward), "forward");
  x = draw_entry(svg, x, baseline, fill(Paint::Backward), "backward");
  if (plan.stages.size() > ranks.size())
    svg.text(x, baseline, "paler = later stage of the rank", {.size = 10.5});
  return inline_svg(svg.document(kWideWidth, baseline + 10, "work of each rank, " + plan.row.plan));
}

std::string attribution_chart(const CaseRecord& report_case) {
  std::vector<const PlanRecord*> plans;
  Nanoseconds longest{0};
  for (const PlanRecord& plan : report_case.plans) {
    if (plan.critical_rank.index() >= plan.attribution.size()) continue;
    plans.push_back(&plan);
    longest = std::max(longest, plan.attribution[plan.critical_rank.index()].total());
  }
  if (plans.empty()) return "";
  const Bars bars = bars_for(kWideWidth, plans.size(), longest);
  Svg svg;
  draw_axis(svg, bars);
  for (std::size_t row = 0; row < plans.size(); ++row) {
    const Attribution& whole = plans[row]->attribution[plans[row]->critical_rank.index()];
    draw_label(svg, bars, row, plans[row]->row.plan, false);
    draw_causes(svg, bars, row, whole);
    svg.text(kWideWidth - 4, bars.top(row) + kBar / 2 + 4, rounded(whole.total(), bars.axis),
             {.anchor = Anchor::End});
  }
  draw_cause_legend(svg, bars.bottom + 36);
  return inline_svg(svg.document(kWideWidth, bars.bottom + 48, "attribution, " + report_case.name));
}

}  // namespace pfeife::plots
