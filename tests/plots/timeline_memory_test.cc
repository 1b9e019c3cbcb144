#include <gtest/gtest.h>

#include <algorithm>

#include "plots/timeline/panel_parts.h"
#include "plots/timeline/timeline.h"
#include "tests/plots/example_traces.h"
#include "tests/plots/xml.h"

namespace pfeife::plots {
namespace {

TEST(TimelineMemory, CurveHasTheValuesOfTheSamples) {
  // 2 of 8 GiB, then 4 from 1 ms on, 6 from 2 ms on, 2 from 3 ms on, until 4 ms.
  Trace trace;
  trace.ranks = 1;
  Event event;
  event.cell = forward(StageId{0}, MicrobatchId{0});
  event.end = Nanoseconds{4'000'000};
  trace.events = {event};
  trace.memory = {{{Nanoseconds{0}, 2 * kGiB},
                   {Nanoseconds{1'000'000}, 4 * kGiB},
                   {Nanoseconds{2'000'000}, 6 * kGiB},
                   {Nanoseconds{3'000'000}, 2 * kGiB}}};
  const std::vector<Bytes> limits{8 * kGiB};
  const XmlElement svg = parse_xml(timeline_svg(trace, {.memory_limits = limits}));
  const TimelineLayout layout = timeline_layout({&trace, 1}, {.memory_limits = limits}, 1);
  const double left = layout.plot_left, right = layout.plot_right;
  const double top = layout.panels[0].memory_tops[0], high = layout.panels[0].memory_height;
  const auto x = [&](double ms) { return coordinate(left + (right - left) * ms / 4); };
  const auto y = [&](double gib) { return coordinate(top + high * (1 - gib / 8)); };
  const auto curves = by_class(svg, "memory");
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_EQ(curves[0]->attribute("d"), "M" + x(0) + " " + y(0) + "H" + x(0) + "V" + y(2) + "H" +
                                           x(1) + "V" + y(4) + "H" + x(2) + "V" + y(6) + "H" +
                                           x(3) + "V" + y(2) + "H" + x(4) + "V" + y(0) + "z");
  const auto held = by_class(svg, "held");  // 2 GiB are never released
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0]->attribute("y"), y(2));
  const auto line = by_class(svg, "limit");
  ASSERT_EQ(line.size(), 1u);
  EXPECT_EQ(line[0]->attribute("y1"), y(8));
}

TEST(TimelineMemory, ReachesUpToTheLimitUnlessItIsFarAway) {
  Trace trace;
  trace.ranks = 1;
  trace.memory = {{{Nanoseconds{0}, 4 * kGiB}}};
  EXPECT_EQ(memory_top(trace, {}), 4 * kGiB);
  EXPECT_EQ(memory_top(trace, std::vector{10 * kGiB}), 10 * kGiB);
  EXPECT_EQ(memory_top(trace, std::vector{40 * kGiB}), 4 * kGiB);
  EXPECT_EQ(memory_top(trace, std::vector{3 * kGiB}), 4 * kGiB);
}

TEST(TimelineMemory, PeaksSurviveDenseSamples) {
  std::vector<MemorySample> samples;
  for (int i = 0; i < 10'000; ++i)
    samples.push_back({Nanoseconds{i}, Bytes{i == 4321 ? 900 : 100 + i % 3}});
  const TimeScale scale{Nanoseconds{0}, 10, 0.01};  // 100 pixels
  const auto points = memory_points(samples, scale);
  EXPECT_LE(points.size(), 450u);
  EXPECT_EQ(std::ranges::max(points, {}, &MemoryPoint::bytes).bytes, Bytes{900});
  EXPECT_EQ(points.back().bytes, samples.back().bytes);
  for (std::size_t i = 1; i < points.size(); ++i) EXPECT_GE(points[i].x, points[i - 1].x);
}

TEST(TimelineMemory, PeaksAboveTheLimitStandOut) {
  const Trace trace = example_trace({});
  const auto alarms = [&](Bytes limit) {
    const XmlElement svg =
        parse_xml(timeline_svg(trace, {.memory_limits = std::vector<Bytes>(2, limit)}));
    std::size_t count = 0;
    for (const XmlElement* text : by_name(svg, "text"))
      count += text->attribute("fill") == hex(kAlarm) && text->attribute("font-weight") == "bold";
    return count;
  };
  EXPECT_EQ(alarms(5 * kGiB), 0u);  // peaks: 5 and 4.5 GiB
  EXPECT_EQ(alarms(Bytes{5 * kGiB.value - 1}), 1u);
  EXPECT_EQ(alarms(4 * kGiB), 2u);
}

TEST(TimelineMemory, IsLeftOutOnRequest) {
  const Trace trace = example_trace({});
  EXPECT_TRUE(by_class(parse_xml(timeline_svg(trace, {.memory = false})), "memory").empty());
}

}  // namespace
}  // namespace pfeife::plots
