#include "plots/timeline/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "plots/figure/theme.h"
#include "plots/timeline/panel_parts.h"
#include "tests/plots/example_traces.h"
#include "tests/plots/xml.h"

namespace pfeife {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Box {
  double x, y, width, height;
  std::string title;
};

std::vector<Box> boxes(const XmlElement& root, const std::string& kind = "boxes") {
  std::vector<Box> found;
  for (const XmlElement* group : by_class(root, kind))
    for (const XmlElement& rect : group->children)
      found.push_back({rect.number("x"), rect.number("y"), rect.number("width"),
                       rect.number("height"), rect.children.at(0).text});
  return found;
}

/// Titles of the boxes of each lane from left to right; lanes from top to bottom.
std::vector<std::vector<std::string>> lane_titles(const XmlElement& root) {
  std::map<double, std::map<double, std::string>> lanes;
  for (const Box& box : boxes(root)) lanes[box.y][box.x] = box.title;
  std::vector<std::vector<std::string>> titles;
  for (const auto& [y, lane] : lanes) {
    titles.emplace_back();
    for (const auto& [x, title] : lane) titles.back().push_back(title);
  }
  return titles;
}

/// Events anywhere, at the same time on one rank too, with every kind of cell.
Trace random_trace(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
  Trace trace;
  trace.source = static_cast<TraceSource>(below(4));
  trace.ranks = static_cast<std::size_t>(1 + below(12));
  for (int i = 0; i < 150; ++i) {
    Event e;
    e.kind = static_cast<TaskKind>(below(4));
    e.rank = e.peer = RankId{below(static_cast<std::uint32_t>(trace.ranks))};
    e.start = e.posted = Nanoseconds{below(1000)};
    e.end = e.start + Nanoseconds{below(60)};
    const StageId stage{below(6)};
    const MicrobatchId mb{below(100)};
    if (e.kind == TaskKind::Compute)
      e.cell = below(5) == 0 ? Cell{Overlap{{forward(stage, mb), backward(stage, mb)}}}
                             : Cell{backward_weight(stage, mb)};
    if (e.kind == TaskKind::Transfer) {
      e.peer = RankId{below(static_cast<std::uint32_t>(trace.ranks))};
      e.cell = send(stage, StageId{stage.value + 1}, mb, static_cast<Direction>(below(2)));
    }
    if (e.kind == TaskKind::Reduction) {
      e.cell = stage_action(Op::ReduceGrad, stage);
      e.parties = {e.rank, RankId{below(static_cast<std::uint32_t>(trace.ranks))}};
    }
    if (e.kind == TaskKind::Optimizer) e.cell = stage_action(Op::OptimizerStep, stage);
    trace.events.push_back(e);
  }
  return trace;
}

std::vector<Trace> examples() {
  std::vector<Trace> traces{
      example_trace({}), example_trace({.ranks = 4, .microbatches = 8, .stages_per_rank = 2}),
      example_trace({.ranks = 8, .microbatches = 16, .stages_per_rank = 3, .split = true}),
      example_trace({.ranks = 8, .microbatches = 64}),
      example_trace({.ranks = 40, .microbatches = 40})};
  for (std::uint32_t seed = 0; seed < 20; ++seed) traces.push_back(random_trace(seed));
  return traces;
}

// F = 1 ms, B = 2 ms, 0.1 ms a transfer, 0.5 ms an optimizer step. Rank 1 starts when F0 has
// arrived, at 1.1; it never waits for a forward again until it has caught up at 7.1, when F2, made
// by rank 0 from 6.2 to 7.2 after B0 came at 4.2, is still on its way until 7.3. B3 of rank 1 ends
// at 13.3 and arrives at 13.4.
TEST(Timeline, TwoRanksFourMicrobatchesByHand) {
  const XmlElement svg = parse_xml(timeline_svg(example_trace({}), {.title = "1F1B"}));
  const auto f = [](const char* s) { return std::string(s); };
  EXPECT_THAT(
      lane_titles(svg),
      ElementsAre(ElementsAre(f("F0 of stage 0, 0–1 ms"), f("F1 of stage 0, 1–2 ms"),
                              f("B0 of stage 0, 4.2–6.2 ms"), f("F2 of stage 0, 6.2–7.2 ms"),
                              f("B1 of stage 0, 7.2–9.2 ms"), f("F3 of stage 0, 9.2–10.2 ms"),
                              f("B2 of stage 0, 10.4–12.4 ms"), f("B3 of stage 0, 13.4–15.4 ms"),
                              f("0OPTIMIZER_STEP, 15.4–15.9 ms")),
                  ElementsAre(f("F0 of stage 0 to stage 1, 1–1.1 ms"),
                              f("F1 of stage 0 to stage 1, 2–2.1 ms"),
                              f("F2 of stage 0 to stage 1, 7.2–7.3 ms"),
                              f("F3 of stage 0 to stage 1, 10.2–10.3 ms")),
                  ElementsAre(f("F0 of stage 1, 1.1–2.1 ms"), f("B0 of stage 1, 2.1–4.1 ms"),
                              f("F1 of stage 1, 4.1–5.1 ms"), f("B1 of stage 1, 5.1–7.1 ms"),
                              f("F2 of stage 1, 7.3–8.3 ms"), f("B2 of stage 1, 8.3–10.3 ms"),
                              f("F3 of stage 1, 10.3–11.3 ms"), f("B3 of stage 1, 11.3–13.3 ms"),
                              f("1OPTIMIZER_STEP, 13.3–13.8 ms")),
                  ElementsAre(f("B0 of stage 1 to stage 0, 4.1–4.2 ms"),
                              f("B1 of stage 1 to stage 0, 7.1–7.2 ms"),
                              f("B2 of stage 1 to stage 0, 10.3–10.4 ms"),
                              f("B3 of stage 1 to stage 0, 13.3–13.4 ms"))));
}

TEST(Timeline, BoxesAreTrueToScale) {
  const XmlElement svg = parse_xml(timeline_svg(example_trace({}), {}));
  const std::vector<Box> all = boxes(svg);
  const Box& first = all.at(0);  // F0 of rank 0, 1 ms from 0
  ASSERT_THAT(first.title, HasSubstr("F0 of stage 0, 0–1"));
  for (const Box& box : all) {
    if (box.title.starts_with("B2 of stage 0,")) {
      EXPECT_NEAR(box.x - first.x, 10.4 * first.width, 0.1);
      EXPECT_NEAR(box.width, 2 * first.width, 0.02);
    }
  }
}

TEST(Timeline, EveryEventHasExactlyOneBoxWithATooltip) {
  for (const Trace& trace : examples()) {
    const auto all = boxes(parse_xml(timeline_svg(trace, {})));
    EXPECT_EQ(all.size(), trace.events.size());
    for (const Box& box : all) EXPECT_FALSE(box.title.empty());
  }
}

TEST(Timeline, BoxesOfALaneNeverOverlap) {
  for (const Trace& trace : examples()) {
    const XmlElement svg = parse_xml(timeline_svg(trace, {}));
    std::vector<Box> all = boxes(svg);
    for (const Box& guest : boxes(svg, "guest")) all.push_back(guest);
    std::map<double, std::vector<Box>> lanes;
    for (const Box& box : all) lanes[box.y].push_back(box);
    double floor = 0;
    for (auto& [y, lane] : lanes) {
      EXPECT_GE(y, floor - 1e-9);  // the lane above ends before this one begins
      std::ranges::sort(lane, {}, [](const Box& b) { return std::pair{b.x, b.x + b.width}; });
      for (std::size_t i = 1; i < lane.size(); ++i)
        EXPECT_GE(lane[i].x, lane[i - 1].x + lane[i - 1].width - 1e-6) << lane[i].title;
      floor = y + lane[0].height;
    }
  }
}

TEST(Timeline, LabelsStayInTheirBoxesAndTextInThePicture) {
  for (const Trace& trace : examples()) {
    const XmlElement svg = parse_xml(
        timeline_svg(trace, {.title = "A title that goes on and on " + std::string(300, 'm'),
                             .subtitle = std::string(500, 'W'),
                             .memory_limits = std::vector<Bytes>(trace.ranks, 5 * kGiB),
                             .width = 700}));
    const double width = svg.number("width"), height = svg.number("height");
    for (const XmlElement* text : by_name(svg, "text")) {
      const double size = text->attributes.contains("font-size") ? text->number("font-size") : 11;
      const double extent = plots::text_width(text->text, size);
      const std::string anchor = text->attribute("text-anchor");
      const double left = text->number("x") - (anchor == "end"      ? extent
                                               : anchor == "middle" ? extent / 2
                                                                    : 0);
      EXPECT_GE(left, 0) << text->text;
      EXPECT_LE(left + extent, width) << text->text;
      EXPECT_LE(text->number("y"), height) << text->text;
    }
    const std::vector<Box> all = boxes(svg);
    for (const XmlElement* group : by_name(svg, "g")) {
      if (group->attribute("text-anchor") != "middle") continue;  // the labels
      for (const XmlElement& label : group->children) {
        const double half = plots::text_width(label.text, group->number("font-size")) / 2;
        const double x = label.number("x"), y = label.number("y");
        EXPECT_TRUE(std::ranges::any_of(all, [&](const Box& box) {
          return box.x <= x - half && x + half <= box.x + box.width && box.y < y &&
                 y < box.y + box.height;
        })) << label.text;
      }
    }
  }
}

TEST(Timeline, LabelsDropOutWhenBoxesAreTooSmall) {
  const auto labels = [](const Trace& trace) {
    std::size_t count = 0;
    const XmlElement svg = parse_xml(timeline_svg(trace, {}));
    for (const XmlElement* group : by_name(svg, "g"))
      if (group->attribute("text-anchor") == "middle") count += group->children.size();
    return count;
  };
  EXPECT_GE(labels(example_trace({})), 18u);  // F, B, optimizer of both ranks
  EXPECT_EQ(labels(example_trace({.ranks = 8, .microbatches = 64, .stages_per_rank = 3})), 0u);
}

TEST(Timeline, BoxesTooNarrowForTheirLetterKeepTheirNumber) {
  // About 15 pixels a ms: 31 for B, enough for "B5"; 9 for F, enough for "5" but not for "F5".
  Example example{.ranks = 2, .microbatches = 8};
  example.forward = Nanoseconds{600'000};
  Trace trace = example_trace(example);
  trace.events.push_back(trace.events.front());  // one long forward decides the style of all
  trace.events.back().start = step_time(trace);
  trace.events.back().end = trace.events.back().start + Nanoseconds{40'000'000};
  std::map<std::string, int> texts;
  const XmlElement svg = parse_xml(timeline_svg(trace, {.memory = false}));
  for (const XmlElement* group : by_name(svg, "g"))
    if (group->attribute("text-anchor") == "middle")
      for (const XmlElement& label : group->children) ++texts[label.text];
  EXPECT_EQ(texts["F0"], 1);  // the long one
  EXPECT_EQ(texts["5"], 2);   // F5 of both ranks
  EXPECT_EQ(texts["B5"], 2);
}

TEST(Timeline, StackedTracesShareOneTimeAxisAndNameTheirSources) {
  Example slower{.source = TraceSource::Simulated};
  slower.transfer = Nanoseconds{400'000};
  std::vector<Trace> traces{example_trace({}), example_trace(slower),
                            example_trace({.source = TraceSource::Measured})};
  const XmlElement svg = parse_xml(timeline_svg(traces, {.names = {"plan A"}}));
  std::vector<double> widths;
  for (const char* source : {"estimated", "simulated", "measured"}) {
    const auto panel = by_class(svg, source);
    ASSERT_EQ(panel.size(), 1u) << source;
    widths.push_back(boxes(*panel[0]).at(0).width);  // F0, 1 ms in all three
    bool named = false;
    for (const XmlElement* text : by_name(*panel[0], "text")) named |= text->text.ends_with(source);
    EXPECT_TRUE(named) << source;
  }
  EXPECT_EQ(widths[0], widths[1]);
  EXPECT_EQ(widths[0], widths[2]);
}

TEST(Timeline, TracesMayStartAtAnyTime) {
  Trace late = example_trace({});
  for (Event& event : late.events)
    for (Nanoseconds* time : {&event.posted, &event.start, &event.end})
      *time += std::chrono::hours(9);
  late.memory.clear();
  Trace early = example_trace({});
  early.memory.clear();
  EXPECT_EQ(timeline_svg(late, {}), timeline_svg(early, {}));
}

TEST(Timeline, HostileNamesStayText) {
  const std::string evil = "</title><script>alert(1)</script>\"'&\x01\xff";
  const std::string svg =
      timeline_svg(example_trace({}), {.title = evil, .subtitle = evil, .names = {evil}});
  EXPECT_NO_THROW(parse_xml(svg));
  EXPECT_EQ(svg.find("<script"), std::string::npos);
}

TEST(Timeline, NothingToDrawIsStillADrawing) {
  EXPECT_NO_THROW(parse_xml(timeline_svg(Trace{}, {})));
  EXPECT_NO_THROW(parse_xml(timeline_svg(std::span<const Trace>{}, {})));
  Trace idle;
  idle.ranks = 2;
  idle.memory = {{}, {}};
  EXPECT_NO_THROW(parse_xml(timeline_svg(idle, {.width = -5})));
}

TEST(Timeline, EqualInputGivesEqualBytes) {
  for (const Trace& trace : examples())
    EXPECT_EQ(timeline_svg(trace, {.title = "t"}), timeline_svg(Trace(trace), {.title = "t"}));
}

TEST(Timeline, EightRanks64MicrobatchesThreeLoopsStayBelowOneMegabyte) {
  const Trace trace = example_trace({.ranks = 8, .microbatches = 64, .stages_per_rank = 3});
  EXPECT_LT(timeline_svg(trace, {}).size(), 1'000'000u);
}

TEST(Timeline, VirtualStagesHaveShadesOfTheirOwn) {
  const XmlElement svg = parse_xml(
      timeline_svg(example_trace({.ranks = 2, .microbatches = 4, .stages_per_rank = 3}), {}));
  std::size_t seen = 0;
  for (const XmlElement* group : by_class(svg, "boxes"))
    for (const XmlElement& rect : group->children)
      if (rect.children.at(0).text.starts_with("F0 of stage 4,")) {  // third stage of rank 0
        EXPECT_EQ(group->attribute("fill"), plots::hex(plots::fill(plots::Paint::Forward, 2, 3)));
        ++seen;
      }
  EXPECT_EQ(seen, 1u);
}

TEST(Timeline, CriticalPathLeadsFromTheStartToTheEndWithoutGaps) {
  const Trace trace = example_trace({.ranks = 4, .microbatches = 8});
  const auto path = plots::critical_path(trace);
  EXPECT_EQ(trace.events[path.front()].start, Nanoseconds{0});
  EXPECT_EQ(trace.events[path.back()].end, step_time(trace));
  for (std::size_t i = 1; i < path.size(); ++i)
    EXPECT_EQ(trace.events[path[i]].start, trace.events[path[i - 1]].end);
}

TEST(Timeline, CriticalPathOfACircleEnds) {
  Trace trace = example_trace({});
  trace.events[0].waited_for = 1;
  trace.events[1].waited_for = 0;
  EXPECT_LE(plots::critical_path(trace).size(), trace.events.size());
}

TEST(TimelineLabels, OverlapsNameAllTheirParts) {
  Event event;
  event.cell =
      Overlap{{forward(StageId{4}, MicrobatchId{4}), backward(StageId{3}, MicrobatchId{11})}};
  EXPECT_EQ(plots::label(event, true), "F4B11");
  EXPECT_EQ(plots::label(event, false), "4/11");
}

// 0.22 x 96 = 21.12 pixels a rank, and 7 x 96 / 72 = 9.33 a letter.
TEST(TimelineOfAColumn, HasRowsThatTouchLettersOfOneSizeAndNothingBetween) {
  const Trace trace = example_trace({.ranks = 4, .microbatches = 8});
  const XmlElement root = parse_xml(timeline_svg(trace, column_options()));
  EXPECT_EQ(root.attribute("width"), "317");
  std::set<double> tops;
  for (const Box& box : boxes(root)) {
    EXPECT_NEAR(box.height, 21.12, 0.01);
    tops.insert(box.y);
  }
  ASSERT_EQ(tops.size(), 4U);
  EXPECT_NEAR(*tops.rbegin() - *tops.begin(), 3 * 21.12, 0.02);
  std::set<std::string> sizes;
  for (const XmlElement* text : by_name(root, "text"))
    if (text->attributes.contains("font-size")) sizes.insert(text->attribute("font-size"));
  for (const XmlElement* labels : by_class(root, "labels"))
    sizes.insert(labels->attribute("font-size"));
  EXPECT_EQ(sizes, std::set<std::string>{"9.33"});
  EXPECT_TRUE(by_class(root, "critical").empty());
  EXPECT_TRUE(by_class(root, "arrows").empty());
}

TEST(TimelineOfAColumn, HasTheHeightThatIsAskedFor) {
  const Trace trace = example_trace({.ranks = 8, .microbatches = 16});
  TimelineOptions options = column_options();
  options.height = 120;
  EXPECT_EQ(parse_xml(timeline_svg(trace, options)).attribute("height"), "120");
  options = {.height = 900};
  EXPECT_EQ(parse_xml(timeline_svg(trace, options)).attribute("height"), "900");
}

// Many viewers draw a hairline at least a pixel wide: thin boxes would be all edge.
TEST(TimelineBoxes, BelowThreePixelsHaveNoEdges) {
  const Trace trace = example_trace({.ranks = 4, .microbatches = 96});
  std::size_t thin = 0, wide = 0;
  const XmlElement narrow = parse_xml(timeline_svg(trace, column_options())),
                   large = parse_xml(timeline_svg(trace, {.width = 6000}));
  for (const XmlElement* root : {&narrow, &large})
    for (const XmlElement* group : by_class(*root, "boxes"))
      for (const XmlElement& rect : group->children) {
        EXPECT_EQ(group->attributes.contains("stroke"), rect.number("width") >= 3);
        ++(rect.number("width") >= 3 ? wide : thin);
      }
  EXPECT_GT(thin, 0U);
  EXPECT_GT(wide, 0U);
}

}  // namespace
}  // namespace pfeife
