// Where everything in a timeline is: pure geometry, nothing is written here.
#pragma once

#include <span>
#include <vector>

#include "planner/ir/trace/trace_lanes.h"
#include "plots/figure/axis.h"
#include "plots/timeline/timeline.h"

namespace pfeife::plots {

/// From time to pixels. Positions are rounded to hundredths once, so that boxes that touch in time
/// touch on paper and never overlap.
struct TimeScale {
  Nanoseconds origin{0};
  double left = 0;
  double pixels_per_ns = 0;

  std::int64_t hundredths_at(Nanoseconds time) const;
  double x(Nanoseconds time) const { return static_cast<double>(hundredths_at(time)) / 100; }
};

/// The vertical extent of one rank's row.
struct Row {
  double compute_top = 0, compute_height = 0;              ///< height of one lane
  double communication_top = 0, communication_height = 0;  ///< height of one lane
  double bottom = 0;

  double top(const LaneItem& item, bool communication) const;
};

/// One trace in the picture.
struct Panel {
  const Trace* trace = nullptr;
  std::string name;
  std::vector<RankLanes> lanes;              ///< [rank]
  std::vector<std::vector<StageId>> stages;  ///< [rank] sorted
  std::vector<Row> rows;                     ///< [rank]
  std::vector<double> memory_tops;           ///< [rank]; empty = no memory is drawn
  double memory_height = 0;                  ///< of one rank's strip
  double top = 0, rows_bottom = 0, bottom = 0;
  Nanoseconds end{0};  ///< of the trace, on its own clock
  TimeScale scale;
};

struct TimelineLayout {
  double width = 0, height = 0;
  double labels_left = 0, plot_left = 0, plot_right = 0;
  double bubble_right = 0, peak_right = 0;  ///< right edges of the columns at the side
  double legend_top = 0;
  bool figures = true;     ///< columns of them at the side
  bool column = false;     ///< for a paper: letters of one size
  bool counts = false;     ///< memory is in microbatches, or slices of them
  bool slices = false;     ///< microbatches are cut into them
  std::size_t shades = 1;  ///< largest number of stages on a rank
  TimeAxis axis;
  Bytes largest_peak{1};  ///< in whose unit all memory is written
  std::vector<Panel> panels;
};

/// A panel of the trace that is not placed yet: lanes, stages, start and end.
Panel open_panel(const Trace& trace);

/// `legend_lines`: lines of text to keep free for the legend.
TimelineLayout timeline_layout(std::span<const Trace> traces, const TimelineOptions& options,
                               std::size_t legend_lines);

/// The size of letters that have `usual` pixels where there is room: in a column all have 7 points.
double letters(const TimelineLayout& layout, double usual);

/// "12.35 GiB" in the unit of the largest peak, or "12".
std::string amount(const TimelineLayout& layout, Bytes memory);

/// "stage 3", "stages 3, 11".
std::string stage_list(std::span<const StageId> stages);

constexpr double kAxisFoot = 30;    ///< below rows and memory, for the axis
constexpr int kLeastWidth = 240;    ///< pixels of a timeline
constexpr double kStageList = 9;    ///< font size of that list, pixels
constexpr double kLegendLine = 18;  ///< height of a line of the legend

}  // namespace pfeife::plots
