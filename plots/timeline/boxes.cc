#include <algorithm>
#include <array>
#include <map>

#include "plots/timeline/panel_parts.h"

namespace pfeife::plots {
namespace {

bool is_communication(Paint paint) {
  return paint == Paint::SendForward || paint == Paint::SendBackward || paint == Paint::Reduction ||
         paint == Paint::HeadCollective || paint == Paint::Offload || paint == Paint::Reload;
}

/// One box to draw.
struct Box {
  std::int64_t left = 0, right = 0;  ///< hundredths of a pixel
  double top = 0, height = 0;
  const Event* event = nullptr;
  bool guest = false;

  double width() const { return static_cast<double>(right - left) / 100; }
};

Box box_of(const Panel& panel, RankId rank, const LaneItem& item, bool communication) {
  const Event& event = panel.trace->events[item.event];
  const Row& row = panel.rows[rank.index()];
  return {panel.scale.hundredths_at(event.start),
          panel.scale.hundredths_at(event.end),
          row.top(item, communication),
          communication ? row.communication_height : row.compute_height,
          &event,
          item.guest};
}

/// Calls `visit(Box)` for all boxes of the rank.
template <class Visitor>
void for_each_box(const Panel& panel, RankId rank, Visitor&& visit) {
  const RankLanes& lanes = panel.lanes[rank.index()];
  for (const LaneItem& item : lanes.compute) visit(box_of(panel, rank, item, false));
  if (panel.rows[rank.index()].communication_height == 0) return;  // of a column
  for (const LaneItem& item : lanes.communication) visit(box_of(panel, rank, item, true));
}

bool fits(const Event& event, const LabelStyle& style, double width, double height) {
  return text_width(label(event, style.letters), style.size) + 0.8 <= width &&
         style.size + 1 <= height;
}
bool fits(const Box& box, const LabelStyle& style) {
  return fits(*box.event, style, box.width(), box.height);
}

constexpr double kLargest = 12, kSmallest = 7, kSmallestNumber = 6.5;
constexpr double kEdged = 3;  ///< pixels that a box must have or its edges are all that is seen
/// Share of a kind's time whose boxes must have room, and at the smallest size.
constexpr double kMost = 0.75, kLeastShare = 0.5;

/// The best style for boxes of one kind: letters before size, size before nothing.
LabelStyle best_style(std::span<const Box> boxes, double largest) {
  double total = 0;
  for (const Box& box : boxes) total += box.width();
  const auto share = [&](const LabelStyle& style) {
    double room = 0;
    for (const Box& box : boxes)
      if (fits(box, style)) room += box.width();
    return total > 0 ? room / total : 0;
  };
  for (const bool letters : {true, false})
    for (double size = largest; size >= (letters ? kSmallest : kSmallestNumber); size -= 0.5)
      if (share({size, letters}) >= kMost) return {size, letters};
  // The first ten microbatches may have room where later ones, of two digits, have none.
  if (share({kSmallestNumber, false}) >= kLeastShare) return {kSmallestNumber, false};
  return {};
}

std::string describe(const Event& event) {
  std::string text = to_string(event.cell);
  const auto* action = std::get_if<Action>(&event.cell);
  if (action == nullptr || !action->microbatch) return text;
  if (event.kind == TaskKind::Copy)
    text = "microbatch " + to_string(*action->microbatch) + " of stage " +
           to_string(action->stage) +
           (operation(action->op).queue == 0 ? " to the host" : " back from the host");
  if (event.kind == TaskKind::Compute)
    text = label(event, true) + " of stage " + to_string(action->stage);
  if (event.kind == TaskKind::Transfer && action->peer)
    text = label(event, true) + " of stage " + to_string(action->stage) + " to stage " +
           to_string(*action->peer);
  return text;
}

/// Times with as many digits as tell neighbours apart: 1e-5 of the step, in whole nanoseconds.
Nanoseconds coarse(Nanoseconds time, Nanoseconds step) {
  std::int64_t grain = 1;
  while (grain * 1'000'000 <= step.count()) grain *= 10;
  return Nanoseconds{(time.count() + grain / 2) / grain * grain};
}

std::string tooltip(const TimelineLayout& layout, const Panel& panel, const Event& event) {
  const Nanoseconds origin = panel.scale.origin, step = panel.end - origin;
  const Nanoseconds wait = event.start - event.posted;
  std::string waited;
  if (event.kind == TaskKind::Transfer && wait > Nanoseconds{0})
    waited = ", after " + rounded(wait) + " in a queue";
  return describe(event) + ", " + exact(coarse(event.start - origin, step), layout.axis) + "–" +
         exact(coarse(event.end - origin, step), layout.axis) + " " + layout.axis.unit + waited;
}

struct Look {
  Paint paint;
  std::size_t shade;
  bool guest, edged;
  friend auto operator<=>(const Look&, const Look&) = default;
};

void draw_group(Svg& svg, const TimelineLayout& layout, const Panel& panel, const Look& look,
                std::span<const Box> boxes) {
  double typical = 0;
  for (const Box& box : boxes) typical += box.width() / static_cast<double>(boxes.size());
  const double line = is_communication(look.paint) ? 0.4 : std::clamp(typical * 0.08, 0.15, 0.8);
  const std::string edge =
      look.edged ? "\" stroke=\"" + hex(kEdge) + "\" stroke-width=\"" + coordinate(line) + "\""
                 : "\"";
  svg.open_group(" class=\"" + std::string(look.guest ? "guest" : "boxes") + "\" fill=\"" +
                 hex(fill(look.paint, look.shade, layout.shades)) + edge);
  for (const Box& box : boxes)
    svg.raw("<rect x=\"" + hundredths(box.left) + "\" y=\"" + coordinate(box.top) + "\" width=\"" +
            hundredths(box.right - box.left) + "\" height=\"" + coordinate(box.height) +
            "\"><title>" + escape(tooltip(layout, panel, *box.event)) + "</title></rect>\n");
  svg.close_group();
}

}  // namespace

std::string fitting_label(const Event& event, const LabelStyle& style, double width,
                          double height) {
  if (style.size == 0) return "";
  for (const bool letters : {true, false})
    if (letters <= style.letters && fits(event, {style.size, letters}, width, height))
      return label(event, letters);
  return "";
}

std::string label(const Event& event, bool letters) {
  const auto* action = std::get_if<Action>(&event.cell);
  const Paint kind = paint(event);
  if (kind == Paint::Overlap) {
    std::string text;
    for_each_action(event.cell, [&](const Action& part) {
      if (!letters && !text.empty()) text += "/";
      if (letters) text += letter(paint(Event{.cell = part}));
      if (part.microbatch) text += to_string(*part.microbatch);
    });
    return text;
  }
  if (action == nullptr || !action->microbatch) return letter(kind);
  return (letters ? letter(kind) : "") + to_string(*action->microbatch);
}

std::size_t shade(const Panel& panel, const Event& event) {
  const auto* action = std::get_if<Action>(&event.cell);
  if (action == nullptr || event.kind == TaskKind::Optimizer || event.kind == TaskKind::Reduction)
    return 0;
  const auto& stages = panel.stages[event.rank.index()];
  const auto at = std::ranges::lower_bound(stages, action->stage);
  return at == stages.end() ? 0 : static_cast<std::size_t>(at - stages.begin());
}

std::vector<LabelStyle> label_styles(const TimelineLayout& layout, const Panel& panel) {
  std::array<std::vector<Box>, kPaints> by_paint;
  for (std::size_t r = 0; r < panel.rows.size(); ++r)
    for_each_box(panel, RankId{r}, [&](const Box& box) {
      by_paint[static_cast<std::size_t>(paint(*box.event))].push_back(box);
    });
  std::vector<LabelStyle> styles(kPaints);
  double common = kLargest;
  if (layout.column) {
    const double size = letters(layout, kLargest);
    bool with_letters = true;
    for (const Paint kind : compute_paints()) {
      const std::vector<Box>& boxes = by_paint[static_cast<std::size_t>(kind)];
      const auto fit = [&](const Box& box) { return fits(box, {size, true}); };
      with_letters = with_letters && static_cast<double>(std::ranges::count_if(boxes, fit)) >=
                                         kMost * static_cast<double>(boxes.size());
    }
    std::ranges::fill(styles, LabelStyle{size, with_letters});
    return styles;
  }
  for (std::size_t p = 0; p < kPaints; ++p) {
    styles[p] = best_style(by_paint[p], kLargest);
    if (!is_communication(static_cast<Paint>(p)) && static_cast<Paint>(p) != Paint::Optimizer &&
        styles[p].size > 0)
      common = std::min(common, styles[p].size);
  }
  for (std::size_t p = 0; p < kPaints; ++p)
    if (styles[p].size > common) styles[p] = best_style(by_paint[p], common);
  return styles;
}

void draw_boxes(Svg& svg, const TimelineLayout& layout, const Panel& panel, RankId rank,
                std::span<const LabelStyle> styles) {
  std::map<Look, std::vector<Box>> groups;
  for_each_box(panel, rank, [&](const Box& box) {
    groups[{paint(*box.event), shade(panel, *box.event), box.guest, box.width() >= kEdged}]
        .push_back(box);
  });
  for (const auto& [look, boxes] : groups) draw_group(svg, layout, panel, look, boxes);
  for (const auto& [look, boxes] : groups) {
    const LabelStyle& style = styles[static_cast<std::size_t>(look.paint)];
    if (style.size == 0 || look.guest) continue;
    svg.open_group(" class=\"labels\" fill=\"" +
                   hex(ink_on(fill(look.paint, look.shade, layout.shades))) + "\" font-size=\"" +
                   coordinate(style.size) + "\" text-anchor=\"middle\"");
    for (const Box& box : boxes)
      if (const std::string text = fitting_label(*box.event, style, box.width(), box.height);
          !text.empty())
        svg.raw("<text x=\"" + coordinate(static_cast<double>(box.left + box.right) / 200) +
                "\" y=\"" + coordinate(box.top + box.height / 2 + style.size * 0.36) + "\">" +
                escape(text) + "</text>\n");
    svg.close_group();
  }
}

}  // namespace pfeife::plots
