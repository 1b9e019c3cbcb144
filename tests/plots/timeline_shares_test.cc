#include <gtest/gtest.h>

#include <map>
#include <random>
#include <sstream>

#include "plots/timeline/panel_parts.h"
#include "tests/plots/xml.h"

namespace pfeife {
namespace {

using plots::Paint;
using plots::Svg;

/// Two ranks that compute F and W of their stage with random pauses and send between F and W.
Trace busy_trace(int microbatches) {
  std::mt19937 random(7);
  Trace trace;
  trace.ranks = 2;
  const auto add = [&](TaskKind kind, const Action& action, std::int64_t& time) {
    Event event;
    event.kind = kind;
    event.rank = event.peer = RankId{action.stage.value};
    event.cell = action;
    event.start = event.posted = Nanoseconds{time += static_cast<std::int64_t>(random() % 900)};
    event.end = Nanoseconds{time += static_cast<std::int64_t>(random() % 1900)};
    trace.events.push_back(event);
  };
  for (const int rank : {0, 1}) {
    std::int64_t time = 0;
    for (int i = 0; i < microbatches; ++i) {
      const StageId stage{rank}, other{1 - rank};
      const MicrobatchId microbatch{i};
      add(TaskKind::Compute, forward(stage, microbatch), time);
      add(TaskKind::Transfer, send(stage, other, microbatch, Direction::Forward), time);
      add(TaskKind::Compute, backward_weight(stage, microbatch), time);
    }
  }
  return trace;
}

/// Square pixels by fill, of a drawing of draw_shares().
std::map<std::string, double> areas(const std::string& body) {
  std::map<std::string, double> areas;
  const XmlElement root = parse_xml("<svg>" + body + "</svg>");
  for (const XmlElement* path : by_class(root, "shares")) {
    std::istringstream data(path->attribute("d"));
    std::string piece;
    while (std::getline(data, piece, 'z')) {
      double x = 0, bottom = 0, height = 0, width = 0;
      EXPECT_EQ(std::sscanf(piece.c_str(), "M%lf %lfv-%lfh%lf", &x, &bottom, &height, &width), 4);
      areas[path->attribute("fill")] += width * height;
    }
  }
  return areas;
}

TEST(TimelineShares, AreDrawnWhereComputationsAreThinnerThanHalfAPixel) {
  const auto dense = [](int microbatches) {
    const Trace trace = busy_trace(microbatches);
    return plots::is_dense(plots::timeline_layout(std::span(&trace, 1), {}, 1).panels.front());
  };
  EXPECT_FALSE(dense(100));
  EXPECT_TRUE(dense(2000));
  EXPECT_FALSE(dense(0));
}

TEST(TimelineShares, FillAreasInProportionToTheTimeOfEachKindOfAction) {
  const Trace trace = busy_trace(2000);
  const auto layout = plots::timeline_layout(std::span(&trace, 1), {}, 1);
  const plots::Panel& panel = layout.panels.front();
  for (const int rank : {0, 1}) {
    Svg svg;
    plots::draw_shares(svg, layout, panel, RankId{rank});
    const auto found = areas(svg.body());
    EXPECT_EQ(found.size(), 3u);
    for (const auto& [kind, height] :
         {std::pair{Paint::Forward, panel.rows[0].compute_height},
          std::pair{Paint::BackwardWeight, panel.rows[0].compute_height},
          std::pair{Paint::SendForward, panel.rows[0].communication_height}}) {
      Nanoseconds time{0};
      for (const Event& event : trace.events)
        if (event.rank == RankId{rank} && plots::paint(event) == kind)
          time += event.end - event.start;
      const double expected =
          static_cast<double>(time.count()) * panel.scale.pixels_per_ns * height;
      EXPECT_NEAR(found.at(plots::hex(plots::fill(kind))), expected, 0.005 * expected);
    }
  }
}

}  // namespace
}  // namespace pfeife
