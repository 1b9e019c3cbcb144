#include "plots/report/sweep.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "planner/ir/result/result_engine.h"
#include "plots/figure/axis.h"
#include "plots/figure/html.h"
#include "plots/figure/svg.h"
#include "plots/report/sweep_figures.h"
#include "plots/screen/columns.h"
#include "plots/screen/rows.h"

namespace pfeife::plots {
namespace {

constexpr double kWidth = 300, kHeight = 190, kLeft = 46, kRight = 288, kTop = 10, kBottom = 150;

/// A key of which every value is a number, with the same unit or none.
struct Axis {
  std::size_t key = 0;
  std::string name, unit;
  std::vector<double> values;  ///< [case]
  std::set<double> distinct;
};

std::optional<Axis> axis_of(const std::vector<Key>& keys, std::size_t k) {
  Axis axis{k, keys[k].head, "", {}, {}};
  if (axis.name == "D") axis.name = "devices";
  if (axis.name == "N") axis.name = "microbatches";
  if (axis.name == kMicrobatchSize) axis.name = "samples a microbatch";
  for (const std::string& text : keys[k].values) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string unit(end, text.data() + text.size());
    if (error != std::errc() || (!axis.values.empty() && unit != axis.unit)) return std::nullopt;
    axis.unit = unit;
    axis.values.push_back(value);
    axis.distinct.insert(value);
  }
  return axis.distinct.size() > 1 ? std::optional(axis) : std::nullopt;
}

/// The axis with most values; of equals microbatches before devices before others.
std::optional<Axis> longest_axis(const std::vector<Key>& keys) {
  std::optional<Axis> best;
  std::vector<std::size_t> order{1, 0};
  for (std::size_t k = 2; k < keys.size(); ++k) order.push_back(k);
  for (const std::size_t k : order)
    if (auto axis = axis_of(keys, k);
        axis && (!best || axis->distinct.size() > best->distinct.size()))
      best = std::move(axis);
  return best;
}

/// How the line of a plan looks: a colour, a mark and a dash, so that no two need their colours.
struct LineLook {
  Color color;
  const char* mark;  ///< path around 0 0
};
LineLook look_of(std::size_t line) {
  static constexpr std::array<const char*, kSeries.size()> kMarks{
      "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
      "M-3.5-3.5h7v7h-7z",
      "M0-4.5l4.5 8h-9z",
      "M0-5l5 5l-5 5l-5-5z",
      "M0 4.5l-4.5-8h9z",
      "M-4.5-1.5h3v-3h3v3h3v3h-3v3h-3v-3h-3z"};
  return {kSeries[line % kSeries.size()], kMarks[line % kMarks.size()]};
}

constexpr double kHeadroom = 1.05;  ///< of an axis over the largest figure

struct Plane {
  double low = 0, high = 1, top = 1;  ///< x from low to high, y from 0 to top
  bool logarithmic = false;

  double x(double value) const {
    const double share =
        logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return kLeft + 12 + (kRight - kLeft - 24) * share;
  }
  double y(double value) const { return kBottom - (kBottom - kTop - 6) * value / top; }
};

std::string tick_text(double value, double step) { return fixed(value, tick_decimals(step)); }

void draw_axes(Svg& svg, const Plane& plane, const Axis& axis) {
  const double step = tick_step(plane.top);
  for (double value = 0; value <= plane.top * 1.0001; value += step) {
    svg.line(kLeft, plane.y(value), kRight, plane.y(value), value == 0 ? kMuted : kRule,
             " stroke-width=\"0.7\"");
    svg.text(kLeft - 5, plane.y(value) + 3.5, tick_text(value, step),
             {.size = 10, .anchor = Anchor::End, .color = kMuted});
  }
  double used = -100;
  for (const double value : axis.distinct) {
    const double x = plane.x(value);
    svg.line(x, kBottom, x, kBottom + 4, kMuted, " stroke-width=\"0.7\"");
    const std::string text = tick_text(value, value == std::floor(value) ? 1 : 0.01);
    if (x - used < text_width(text, 10) + 6) continue;
    used = x;
    svg.text(x, kBottom + 15, text, {.size = 10, .anchor = Anchor::Middle, .color = kMuted});
  }
  svg.text((kLeft + kRight) / 2, kBottom + 31,
           axis.name + (axis.unit.empty() ? "" : "," + axis.unit),
           {.size = 10.5, .anchor = Anchor::Middle, .color = kMuted});
}

/// Points of a line, by x.
struct Point {
  double value = 0;
  bool fits = true;
  std::string label;
};
using Line = std::map<double, Point>;

void draw_line(Svg& svg, const Plane& plane, const Line& line, const LineLook& look) {
  std::string path;
  for (const auto& [x, point] : line)
    path += (path.empty() ? "M" : "L") + coordinate(plane.x(x)) + " " +
            coordinate(plane.y(point.value));
  const std::string color = hex(look.color);
  svg.path(path, " fill=\"none\" stroke=\"" + color + "\" stroke-width=\"1.6\"");
  for (const auto& [x, point] : line)
    svg.raw("<path d=\"" + std::string(look.mark) + "\" transform=\"translate(" +
            coordinate(plane.x(x)) + " " + coordinate(plane.y(point.value)) + ")\" fill=\"" +
            (point.fits ? color : hex(kPaper)) + "\" stroke=\"" + color +
            "\" stroke-width=\"1.3\"><title>" + escape(point.label) + "</title></path>\n");
}

struct Facet {
  std::string name;
  std::vector<std::size_t> cases;
};

/// Cases that differ in the axis alone, together.
std::vector<Facet> facets_of(const std::vector<Key>& keys, const Axis& axis, std::size_t cases) {
  std::vector<Facet> facets;
  for (std::size_t c = 0; c < cases; ++c) {
    std::string name;
    for (std::size_t k = 0; k < keys.size(); ++k)
      if (k != axis.key && keys[k].varies())
        name += (name.empty() ? "" : ", ") + keys[k].head + " " + keys[k].values[c];
    auto facet = std::ranges::find(facets, name, &Facet::name);
    if (facet == facets.end()) facet = facets.insert(facets.end(), {name, {}});
    facet->cases.push_back(c);
  }
  return facets;
}

std::string line_name(const PlanRecord& plan, const CaseRecord& record) {
  return &plan == &record.plans.front() ? "planned" : plan.row.plan;
}

/// Largest figure of all cases: one scale for all pictures of a figure.
double top_of(const std::vector<CaseRecord>& cases, const SweepFigure& figure) {
  double top = 0;
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans) {
      top = std::max(top, figure.value(record, plan).value_or(0));
      // A limit far above everything would flatten the lines.
      if (const auto at = figure.dashed ? figure.dashed(record, plan) : std::nullopt)
        if (*at < 2 * top) top = std::max(top, *at);
    }
  return top;
}

std::string picture(const std::vector<CaseRecord>& cases, const Axis& axis, const Facet& facet,
                    const SweepFigure& figure, const std::vector<std::string>& names, double top) {
  Plane plane{*axis.distinct.begin(), *axis.distinct.rbegin(), top * kHeadroom};
  plane.logarithmic = plane.low > 0 && plane.high / plane.low >= 8;
  Svg svg;
  draw_axes(svg, plane, axis);
  std::map<std::string, Line> lines;
  std::map<double, double> dashed;
  for (const std::size_t c : facet.cases)
    for (const PlanRecord& plan : cases[c].plans) {
      const auto value = figure.value(cases[c], plan);
      const std::string name = line_name(plan, cases[c]);
      if (value)
        lines[name][axis.values[c]] = {*value, plan.row.feasible,
                                       name + " (" + schedule_name(plan.row) + "), " +
                                           cases[c].name + ": " + fixed(*value, 1) +
                                           (plan.row.feasible ? "" : ", does not fit")};
      if (const auto at = figure.dashed ? figure.dashed(cases[c], plan) : std::nullopt)
        dashed[axis.values[c]] = *at;
    }
  std::string path;
  for (const auto& [x, value] : dashed)
    if (value <= plane.top)
      path +=
          (path.empty() ? "M" : "L") + coordinate(plane.x(x)) + " " + coordinate(plane.y(value));
  if (!path.empty())
    svg.path(path, " class=\"dashed\" fill=\"none\" stroke=\"" + hex(kAlarm) +
                       "\" stroke-width=\"1.4\" stroke-dasharray=\"5 3\"");
  for (std::size_t n = names.size(); n-- > 0;)  // the planned one on top
    if (lines.contains(names[n])) draw_line(svg, plane, lines[names[n]], look_of(n));
  return inline_svg(svg.document(kWidth, kHeight, figure.title + ", " + facet.name));
}

/// "bound, or memory limit": what is dashed in any of the pictures.
std::string dashed_names(const std::vector<CaseRecord>& cases,
                         const std::vector<SweepFigure>& figures) {
  std::string names;
  for (const SweepFigure& figure : figures) {
    if (!figure.dashed) continue;
    const double top = top_of(cases, figure) * kHeadroom;
    const auto drawn = [&](const CaseRecord& record, const PlanRecord& plan) {
      return figure.dashed(record, plan).value_or(top + 1) <= top;
    };
    if (std::ranges::any_of(cases, [&](const CaseRecord& record) {
          return std::ranges::any_of(record.plans,
                                     [&](const PlanRecord& plan) { return drawn(record, plan); });
        }))
      names += (names.empty() ? "" : ", or ") + std::string(figure.dashed_name);
  }
  return names;
}

/// A drawing for each entry, so that they wrap. `dashed`: "" = nothing is.
std::string legend(const std::vector<std::string>& names, const std::string& dashed, bool hollow) {
  std::string entries;
  const auto entry = [&](Svg svg, const std::string& text) {
    svg.text(26, 13, text);
    entries += inline_svg(svg.document(26 + text_width(text, 11) + 4, 20, text));
  };
  const auto mark = [](Color fill, Color stroke) {
    return " transform=\"translate(11 9)\" fill=\"" + hex(fill) + "\" stroke=\"" + hex(stroke) +
           "\"";
  };
  for (std::size_t n = 0; n < names.size(); ++n) {
    const LineLook look = look_of(n);
    Svg svg;
    svg.line(0, 9, 22, 9, look.color, " stroke-width=\"1.6\"");
    svg.path(look.mark, mark(look.color, look.color));
    entry(svg, names[n]);
  }
  if (!dashed.empty())
    entry(Svg().line(0, 9, 22, 9, kAlarm, " stroke-width=\"1.4\" stroke-dasharray=\"5 3\""),
          dashed);
  if (hollow) entry(Svg().path(look_of(0).mark, mark(kPaper, kMuted)), "hollow: does not fit");
  return element("div", entries, " class=\"legend\"");
}

}  // namespace

std::string sweep_charts(const std::vector<CaseRecord>& cases) {
  if (cases.size() < 2) return "";
  const std::vector<Key> keys = keys_of(cases);
  const std::optional<Axis> axis = longest_axis(keys);
  if (!axis) return "";
  std::vector<std::string> names;
  bool hollow = false;
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans) {
      if (!has_time(plan.row)) continue;
      const std::string name = line_name(plan, record);
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
      hollow = hollow || !plan.row.feasible;
    }
  const std::vector<SweepFigure> figures = sweep_figures(cases);
  const std::vector<Facet> facets = facets_of(keys, *axis, cases.size());
  std::string out = legend(names, dashed_names(cases, figures), hollow), row;
  const bool single_facet = facets.size() == 1;
  for (const SweepFigure& figure : figures) {
    const double top = top_of(cases, figure);
    if (top <= 0) continue;
    std::string cards;
    for (const Facet& facet : facets)
      cards += element("figure",
                       element("figcaption", escape(single_facet ? figure.title : facet.name)) +
                           picture(cases, *axis, facet, figure, names, top));
    if (single_facet)
      row += cards;
    else
      out += element("h3", escape(figure.title)) + element("div", cards, " class=\"multiples\"");
  }
  return row.empty() ? out : out + element("div", row, " class=\"multiples\"");
}

}  // namespace pfeife::plots
