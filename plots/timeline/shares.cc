#include <algorithm>
#include <cmath>
#include <map>

#include "plots/timeline/panel_parts.h"

namespace pfeife::plots {
namespace {

/// A kind of action on a stage of the rank: what has one colour.
using ShareColor = std::pair<Paint, std::size_t>;
/// Columns filled by each look, [column]; 1 = all the time.
using Shares = std::map<ShareColor, std::vector<double>>;

/// The band that the lanes of one sort fill together.
struct Band {
  double top = 0, height = 0;
};

Shares shares_of(const TimelineLayout& layout, const Panel& panel, RankId rank,
                 std::span<const LaneItem> items, std::size_t lanes) {
  const auto columns =
      static_cast<std::size_t>(std::ceil(layout.plot_right - layout.plot_left)) + 1;
  Shares shares;
  for (const LaneItem& item : items) {
    const Event& event = panel.trace->events[item.event];
    const std::size_t shade_here = event.rank == rank ? shade(panel, event) : 0;
    std::vector<double>& filled =
        shares.try_emplace({paint(event), shade_here}, columns).first->second;
    const auto column_at = [&](Nanoseconds time) {
      return static_cast<double>((time - panel.scale.origin).count()) * panel.scale.pixels_per_ns;
    };
    const double left = column_at(event.start), right = column_at(event.end);
    for (auto c = static_cast<std::size_t>(left); c < columns && static_cast<double>(c) < right;
         ++c)
      filled[c] +=
          (std::min(right, static_cast<double>(c + 1)) - std::max(left, static_cast<double>(c))) /
          static_cast<double>(lanes);
  }
  return shares;
}

/// One look on top of `below`, which it raises; neighbours of one height are one rectangle.
std::string stacked(const std::vector<double>& filled, double left, Band band,
                    std::vector<double>& below) {
  std::string data;
  for (std::size_t c = 0, next; c < filled.size(); c = next) {
    const std::string bottom = coordinate(band.top + band.height * (1 - below[c]));
    const std::string height = coordinate(band.height * filled[c]);
    for (next = c; next < filled.size(); ++next) {
      if (coordinate(band.top + band.height * (1 - below[next])) != bottom ||
          coordinate(band.height * filled[next]) != height)
        break;
      below[next] += filled[next];
    }
    if (height == "0") continue;
    data += "M" + coordinate(left + static_cast<double>(c)) + " " + bottom + "v-" + height + "h" +
            std::to_string(next - c) + "v" + height + "z";
  }
  return data;
}

void draw_band(Svg& svg, const TimelineLayout& layout, const Shares& shares, Band band) {
  if (shares.empty()) return;
  std::vector<double> below(shares.begin()->second.size(), 0);
  for (const auto& [look, filled] : shares) {
    const auto& [kind, stage] = look;
    svg.path(stacked(filled, layout.plot_left, band, below),
             " class=\"shares\" fill=\"" + hex(fill(kind, stage, layout.shades)) + "\"");
  }
}

}  // namespace

bool is_dense(const Panel& panel) {
  constexpr double kThin = 0.5;  // pixels
  Nanoseconds computing{0};
  std::size_t count = 0;
  for (const Event& event : panel.trace->events)
    if (event.kind == TaskKind::Compute) computing += event.end - event.start, ++count;
  return static_cast<double>(computing.count()) * panel.scale.pixels_per_ns <
         kThin * static_cast<double>(count);
}

void draw_shares(Svg& svg, const TimelineLayout& layout, const Panel& panel, RankId rank) {
  const RankLanes& lanes = panel.lanes[rank.index()];
  const Row& row = panel.rows[rank.index()];
  const auto band = [](double top, double lane_height, std::size_t count) {
    return Band{top, lane_height * static_cast<double>(count)};
  };
  draw_band(svg, layout, shares_of(layout, panel, rank, lanes.compute, lanes.compute_lanes),
            band(row.compute_top, row.compute_height, lanes.compute_lanes));
  draw_band(svg, layout,
            shares_of(layout, panel, rank, lanes.communication, lanes.communication_lanes),
            band(row.communication_top, row.communication_height, lanes.communication_lanes));
}

}  // namespace pfeife::plots
