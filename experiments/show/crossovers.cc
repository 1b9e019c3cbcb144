#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/show/figure.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

constexpr double kAhead = 1e-3;

std::string place_text(const Chart& chart, double x) {
  return chart.x_words.empty() ? shortest(x) : chart.x_words[static_cast<std::size_t>(x)];
}

std::string unit_text(const LineOrder& order) { return order.key.empty() ? "" : " " + order.key; }

std::map<double, double> fitting_points(const ChartLine& line) {
  std::map<double, double> points;
  for (const ChartPoint& point : line.points)
    if (point.fits) points[point.x] = point.y;
  return points;
}

/// 1 if `a` is ahead of `b`, -1 if it is behind, 0 if they are as good.
int ahead(double a, double b, const LineOrder& order) {
  const double size = std::max(std::fabs(a), std::fabs(b));
  if (std::fabs(a - b) <= kAhead * size) return 0;
  return (a > b) == order.more_is_better ? 1 : -1;
}

}  // namespace

std::string leaders(const Chart& chart, const ChartPanel& panel, const LineOrder& order) {
  // [x] The lines that none is ahead of; the last drawn, the plan, comes first.
  std::map<double, std::vector<std::pair<const ChartLine*, double>>> at;
  for (auto line = panel.lines.rbegin(); line != panel.lines.rend(); ++line)
    for (const auto& [x, y] : fitting_points(*line)) at[x].emplace_back(&*line, y);
  struct Span {
    const ChartLine* line;
    double from, to;
  };
  std::vector<Span> spans;
  for (const auto& [x, lines] : at) {
    const auto best = std::ranges::max_element(lines, [&](const auto& a, const auto& b) {
      return order.more_is_better ? a.second < b.second : a.second > b.second;
    });
    const auto leads = [&](const auto& line) {
      return ahead(best->second, line.second, order) <= 0;
    };
    const auto still = std::ranges::find_if(lines, [&](const auto& line) {
      return leads(line) && !spans.empty() && line.first == spans.back().line;
    });
    const ChartLine* leader =
        still != lines.end() ? still->first : std::ranges::find_if(lines, leads)->first;
    if (!spans.empty() && spans.back().line == leader)
      spans.back().to = x;
    else
      spans.push_back({leader, x, x});
  }
  std::string text;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const auto& [line, from, to] = spans[i];
    text += (i == 0 ? "best that fits: " : ", ") + line->name;
    if (spans.size() == 1) return text;
    const std::string unit = i == 0 ? unit_text(order) : "";
    const bool in_words = !chart.x_words.empty();
    if (i + 1 == spans.size())
      text += (in_words ? " with " : " from ") + place_text(chart, from) + (in_words ? "" : " on");
    else if (i == 0 && !in_words)
      text += " up to " + place_text(chart, to) + unit;
    else
      text += (in_words ? " with " : " at ") + place_text(chart, from) +
              (from == to ? "" : " to " + place_text(chart, to)) + unit;
  }
  return text;
}

std::vector<std::string> crossovers(const Chart& chart, const ChartPanel& panel,
                                    const LineOrder& order) {
  std::vector<std::pair<double, std::string>> found;
  for (std::size_t i = 0; i < panel.lines.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const auto first = fitting_points(panel.lines[i]), second = fitting_points(panel.lines[j]);
      int before = 0;
      double since = 0;
      for (const auto& [x, y] : first) {
        const auto other = second.find(x);
        const int now = other == second.end() ? 0 : ahead(y, other->second, order);
        if (now == 0) continue;
        if (before != 0 && now != before) {
          const std::string &winner = panel.lines[now > 0 ? i : j].name,
                            &loser = panel.lines[now > 0 ? j : i].name;
          found.emplace_back(x, winner + " overtakes " + loser + " between " +
                                    place_text(chart, since) + " and " + place_text(chart, x) +
                                    unit_text(order));
        }
        before = now;
        since = x;
      }
    }
  std::ranges::stable_sort(found, {}, &std::pair<double, std::string>::first);
  std::vector<std::string> sentences;
  for (auto& [x, sentence] : found) sentences.push_back(std::move(sentence));
  return sentences;
}

}  // namespace pfeife
