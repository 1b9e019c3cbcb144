// Study: how much time the order of transfers costs when they queue. Usage: study_transfer_order
// FOLDER; writes transfer_order.csv and transfer_order.svg there. What is compared and what came
// out: README.md beside this file.
#include <algorithm>
#include <array>
#include <filesystem>

#include "planner/cost/estimator.h"
#include "planner/io/files/atomic_file.h"
#include "planner/ir/decimals.h"
#include "planner/ir/lower.h"
#include "planner/ir/run_main.h"
#include "planner/schedules/families.h"
#include "plots/figure/svg.h"

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
constexpr double kLabels = 190, kColumn = 200, kRow = 26, kHead = 68, kBar = 9,
                 kFullScale = 1.5;  // 150 % lost
constexpr plots::Color kTorch{0xa8, 0x5f, 0x3a}, kReady{0x2f, 0x6f, 0xa8};

void draw_bar(plots::Svg& svg, const Result& r, std::size_t column, double top) {
  const double left = kLabels + kColumn * static_cast<double>(column - 1), width = kColumn - 50;
  const double lost = std::min(r.slowdown[column] - 1, kFullScale);
  const bool ready = r.order == TransferOrder::Ready, longer = r.transfer == kTransfers.back();
  const plots::Color color = ready ? kReady : kTorch;
  const double y = top + (ready ? kBar + 1 : 0);
  svg.rect(left, y, width * lost / kFullScale, kBar,
           longer ? plots::mix(color, plots::kPaper, 0.6) : color);
  if (longer)
    svg.text(left + width * lost / kFullScale + 4, y + kBar - 1,
             fixed(100 * (r.slowdown[column] - 1), 1) + " %", {.size = 9, .color = plots::kMuted});
}

std::string figure(const std::vector<Result>& results) {
  plots::Svg svg;
  const double width = kLabels + kColumn * static_cast<double>(kSettings.size() - 1);
  const double height = kHead + kRow * static_cast<double>(kPoints.size()) + 10;
  svg.text(10, 20, "Time lost to the order of transfers, over free queues",
           {.size = 14, .bold = true});
  svg.text(10, 38,
           "upper bar: torch's placement, lower bar: ready order; strong: transfer = 5 % of F, "
           "pale: 20 %",
           {.size = 11, .color = plots::kMuted});
  for (std::size_t s = 1; s < kSettings.size(); ++s)
    svg.text(kLabels + kColumn * static_cast<double>(s - 1), 58, kSettings[s].name, {.bold = true});
  for (std::size_t i = 0; i < kPoints.size(); ++i) {
    const double top = kHead + kRow * static_cast<double>(i);
    const Point& p = kPoints[i];
    svg.text(10, top + 13,
             std::string(p.family) + "  D=" + std::to_string(p.ranks) + " N=" +
                 std::to_string(p.microbatches) + " V=" + std::to_string(p.stages_per_rank));
    for (std::size_t s = 1; s < kSettings.size(); ++s)
      for (const bool longer : {true, false})  // the strong bar over the pale one
        for (const Result& r : results)
          if (r.point.family == p.family && r.point.ranks == p.ranks &&
              (r.transfer == kTransfers.back()) == longer)
            draw_bar(svg, r, s, top);
  }
  return svg.document(width, height, "Time lost to the order of transfers");
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
