// Study: how much time the order of transfers costs when they queue. Usage: study_transfer_order
// FOLDER; writes transfer_order.csv and transfer_order.svg there. What is compared and what came
// out: README.md beside this file.
#include <algorithm>
#include <array>
#include <filesystem>

#include "planner/cost/estimate/estimator.h"
#include "planner/io/files/atomic_file.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/run_main.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "plots/figure/svg.h"
#include "plots/figure/theme.h"

namespace pfeife {
namespace {

struct Point {
  const char* family;
  std::size_t ranks, microbatches, stages_per_rank;
};
/// The points of torch's own tables, then the same families at sizes of use.
constexpr std::array kPoints{Point{"gpipe", 3, 4, 1},
                             Point{"1f1b", 4, 6, 1},
                             Point{"interleaved_1f1b", 2, 4, 2},
                             Point{"looped_bfs", 2, 3, 3},
                             Point{"zb1p", 3, 6, 2},
                             Point{"zbv", 3, 4, 2},
                             Point{"dualpipev", 2, 5, 2},
                             Point{"gpipe", 8, 16, 1},
                             Point{"1f1b", 8, 16, 1},
                             Point{"zb_h1", 8, 16, 1},
                             Point{"interleaved_1f1b", 8, 16, 2},
                             Point{"looped_bfs", 8, 16, 2},
                             Point{"zb1p", 8, 16, 2},
                             Point{"zbv", 8, 16, 2},
                             Point{"dualpipev", 8, 16, 2}};
constexpr std::array kTransfers{0.05, 0.2};  ///< of a forward
struct Setting {
  const char* name;
  Semantics semantics;
};
constexpr std::array kSettings{Setting{"none", {Queues::None}}, Setting{"edge", {Queues::Edge}},
                               Setting{"pair", {Queues::Pair}}, Setting{"rank", {Queues::Rank}},
                               Setting{"blocking", {Queues::Pair, Links::Delay, true}}};

/// Step time over the one with free queues, by setting.
struct Result {
  Point point;
  double transfer = 0;
  TransferOrder order = TransferOrder::Ready;
  double free_ms = 0;
  std::array<double, kSettings.size()> slowdown{};
};

Result measure(const Point& point, double transfer, TransferOrder order) {
  const ScheduleSpec spec{.family = point.family,
                          .ranks = point.ranks,
                          .microbatches = point.microbatches,
                          .stages_per_rank = point.stages_per_rank};
  const Nanoseconds unit = nanoseconds_from_ms(1);  // F = I = W = 1 ms, B = 2 ms
  const StageCosts costs =
      uniform_costs(spec.stages(), unit, unit, unit, nanoseconds_from_ms(transfer));
  const Placement placement = placement_for(spec);
  const Schedule lowered = lower(generate(spec), costs, placement, {.transfers = order});
  Result result{point, transfer, order, 0, {}};
  for (std::size_t s = 0; s < kSettings.size(); ++s) {
    const DependencyGraph graph =
        dependencies(lowered, stage_graph(costs), placement, kSettings[s].semantics);
    const auto answer = estimate(graph, costs);
    PFEIFE_CHECK(std::holds_alternative<Trace>(answer), point.family, " deadlocks");
    const double ms = milliseconds(step_time(std::get<Trace>(answer)));
    if (s == 0) result.free_ms = ms;
    result.slowdown[s] = ms / result.free_ms;
  }
  return result;
}

std::vector<Result> measure_all() {
  std::vector<Result> results;
  for (const Point& point : kPoints)
    for (const double transfer : kTransfers)
      for (const TransferOrder order : {TransferOrder::Torch, TransferOrder::Ready})
        results.push_back(measure(point, transfer, order));
  return results;
}

std::string csv(const std::vector<Result>& results) {
  std::string text = "family,ranks,microbatches,stages_per_rank,transfer,order,free_ms";
  for (std::size_t s = 1; s < kSettings.size(); ++s) text += std::string(",") + kSettings[s].name;
  text += "\n";
  for (const Result& r : results) {
    text += std::string(r.point.family) + "," + std::to_string(r.point.ranks) + "," +
            std::to_string(r.point.microbatches) + "," + std::to_string(r.point.stages_per_rank) +
            "," + fixed(r.transfer, 2) + "," +
            (r.order == TransferOrder::Torch ? "torch" : "ready") + "," + fixed(r.free_ms, 2);
    for (std::size_t s = 1; s < kSettings.size(); ++s) text += "," + fixed(r.slowdown[s], 4);
    text += "\n";
  }
  return text;
}

// The figure: a row a point, a column a setting; the bar is the time lost, the pale end that at the
// longer transfer.
constexpr double kMargin = 12, kLabels = 230, kColumn = 186, kRow = 26, kHead = 92, kBand = 24,
                 kBar = 9, kFullScale = 1.5;  // 150 % lost
constexpr plots::Color kReady = plots::kSeries[0], kTorch = plots::kSeries[1];

plots::Color pale(plots::Color color) { return plots::mix(color, plots::kPaper, 0.6); }

double column_left(std::size_t setting) {
  return kLabels + kColumn * static_cast<double>(setting - 1);
}
/// Pixels of a loss, without those beyond the scale.
double length(double lost) { return (kColumn - 46) * std::min(lost, kFullScale) / kFullScale; }

void draw_bar(plots::Svg& svg, const Result& r, std::size_t column, double top) {
  const double left = column_left(column), lost = r.slowdown[column] - 1;
  const bool ready = r.order == TransferOrder::Ready, longer = r.transfer == kTransfers.back();
  const plots::Color color = ready ? kReady : kTorch;
  const double y = top + (ready ? kBar + 1 : 0);
  svg.rect(left, y, length(lost), kBar, longer ? pale(color) : color);
  if (longer && lost >= 0.0005)
    svg.text(left + length(lost) + 4, y + kBar - 1, fixed(100 * lost, 1) + " %",
             {.size = 9, .color = plots::kMuted});
}

void draw_legend(plots::Svg& svg, double baseline) {
  double x = kMargin;
  for (const auto& [name, color] :
       {std::pair{"torch's placement", kTorch}, {"ready order", kReady}}) {
    svg.rect(x, baseline - 9, 14, 11, color).rect(x + 14, baseline - 9, 14, 11, pale(color));
    svg.text(x + 33, baseline, name, {.size = 10.5});
    x += 33 + plots::text_width(name, 10.5) + 14;
  }
  svg.text(x, baseline, "strong: transfers of 5 % of F, pale: of 20 %", {.size = 10.5});
}

/// Ticks of every setting, as lines from `top` to `bottom`.
void draw_axes(plots::Svg& svg, double top, double bottom) {
  for (std::size_t s = 1; s < kSettings.size(); ++s) {
    svg.text(column_left(s), kHead - 12, kSettings[s].name, {.bold = true});
    for (const int lost : {0, 50, 100, 150}) {
      const double x = column_left(s) + length(lost / 100.0);
      svg.line(x, top, x, bottom, lost == 0 ? plots::kMuted : plots::kRule,
               " stroke-width=\"0.7\"");
      svg.text(x, bottom + 14, std::to_string(lost) + (lost == 150 ? " %" : ""),
               {.size = 10, .anchor = plots::Anchor::Middle, .color = plots::kMuted});
    }
  }
}

void draw_name(plots::Svg& svg, const Point& p, double baseline) {
  svg.text(kMargin, baseline, p.family);
  const std::pair<const char*, std::size_t> figures[] = {
      {"D ", p.ranks}, {"N ", p.microbatches}, {"V ", p.stages_per_rank}};
  double right = kLabels - 88;
  for (const auto& [name, value] : figures) {
    svg.text(right, baseline, name + std::to_string(value),
             {.size = 10.5, .anchor = plots::Anchor::End, .color = plots::kMuted});
    right += 36;
  }
}

std::string figure(const std::vector<Result>& results) {
  plots::Svg svg;
  const std::size_t torch_tables = static_cast<std::size_t>(
      std::ranges::count_if(kPoints, [](const Point& p) { return p.ranks < 8; }));
  const double bottom = kHead + 2 * kBand + kRow * static_cast<double>(kPoints.size());
  svg.text(kMargin, 24, "Time lost to the order of transfers, over free queues, estimated",
           {.size = 14, .bold = true});
  draw_legend(svg, 48);
  draw_axes(svg, kHead, bottom);
  double top = kHead;
  for (std::size_t i = 0; i < kPoints.size(); ++i) {
    if (i == 0 || i == torch_tables) {
      svg.text(kMargin, top + 16, i == 0 ? "torch's own tables" : "at sizes of use",
               {.size = 10.5, .color = plots::kMuted, .bold = true});
      top += kBand;
    }
    const Point& p = kPoints[i];
    draw_name(svg, p, top + 13);
    for (std::size_t s = 1; s < kSettings.size(); ++s)
      for (const bool longer : {true, false})  // the strong bar over the pale one
        for (const Result& r : results)
          if (r.point.family == p.family && r.point.ranks == p.ranks &&
              (r.transfer == kTransfers.back()) == longer)
            draw_bar(svg, r, s, top);
    top += kRow;
  }
  return svg.document(column_left(kSettings.size()) + 8, bottom + 24,
                      "Time lost to the order of transfers");
}

}  // namespace
}  // namespace pfeife

int main(int argc, char** argv) {
  return pfeife::run_main("study_transfer_order", [&] {
    if (argc != 2) throw pfeife::ConfigError({}, "usage: study_transfer_order FOLDER");
    const std::filesystem::path folder = argv[1];
    const auto results = pfeife::measure_all();
    pfeife::write_file(folder / "transfer_order.csv", pfeife::csv(results));
    pfeife::write_file(folder / "transfer_order.svg", pfeife::figure(results));
    return 0;
  });
}
