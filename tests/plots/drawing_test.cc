// What holds for every drawing: its texts stay in the picture and off one another, its axis is true
// to scale, and its legend names what is there and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plots/figure/theme.h"
#include "plots/report/parts.h"
#include "plots/timeline/timeline.h"
#include "tests/plots/example_report.h"
#include "tests/plots/example_traces.h"
#include "tests/plots/xml.h"

namespace pfeife {
namespace {

using testing::Contains;
using testing::Not;

/// A text and the box of its letters, in pixels of the drawing.
struct Letters {
  std::string text;
  double left, right, top, bottom;
};

/// What an element hands down to those in it.
struct Inherited {
  double x = 0, y = 0, size = 11;
  std::string anchor;
};

void collect_letters(const XmlElement& element, Inherited from, std::vector<Letters>& found) {
  if (element.attributes.contains("font-size")) from.size = element.number("font-size");
  if (element.attributes.contains("text-anchor")) from.anchor = element.attribute("text-anchor");
  double dx = 0, dy = 0;
  if (std::sscanf(element.attribute("transform").c_str(), "translate(%lf %lf)", &dx, &dy) == 2)
    from.x += dx, from.y += dy;
  if (element.name == "text") {
    const double width = plots::text_width(element.text, from.size);
    const double left = from.x + element.number("x") -
                        (from.anchor == "end"      ? width
                         : from.anchor == "middle" ? width / 2
                                                   : 0);
    const double baseline = from.y + element.number("y");
    found.push_back({element.text, left, left + width, baseline - 0.7 * from.size, baseline});
  }
  for (const XmlElement& child : element.children) collect_letters(child, from, found);
}
std::vector<Letters> letters(const XmlElement& drawing) {
  std::vector<Letters> found;
  collect_letters(drawing, {}, found);
  return found;
}
std::vector<std::string> words(const XmlElement& drawing) {
  std::vector<std::string> found;
  for (const Letters& one : letters(drawing)) found.push_back(one.text);
  return found;
}

void expect_readable(const std::string& svg) {
  const XmlElement drawing = parse_xml(svg);
  const std::vector<Letters> all = letters(drawing);
  ASSERT_FALSE(all.empty());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Letters& a = all[i];
    EXPECT_GE(a.left, 0) << a.text;
    EXPECT_GE(a.top, 0) << a.text;
    EXPECT_LE(a.right, drawing.number("width")) << a.text;
    EXPECT_LE(a.bottom, drawing.number("height")) << a.text;
    for (std::size_t k = 0; k < i; ++k) {
      const Letters& b = all[k];
      EXPECT_FALSE(a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
          << "'" << a.text << "' lies on '" << b.text << "'";
    }
  }
}

TEST(Drawing, TextsOfTimelinesLieOnNothingElseThatIsWritten) {
  for (const Example& example :
       {Example{}, Example{.ranks = 4, .microbatches = 8, .stages_per_rank = 2},
        Example{.ranks = 8, .microbatches = 16, .stages_per_rank = 3, .split = true},
        Example{.ranks = 16, .microbatches = 32}, Example{.ranks = 40, .microbatches = 40}})
    for (const int width : {480, 700, 1200}) {
      const Trace trace = example_trace(example);
      Example other = example;
      other.source = TraceSource::Simulated;
      const std::vector<Trace> both{trace, example_trace(other)};
      expect_readable(timeline_svg(
          both, {.title = "A plan", .subtitle = "and what is said of it", .width = width}));
      expect_readable(timeline_svg(
          trace, {.memory_limits = std::vector<Bytes>(trace.ranks, 9 * kGiB), .width = width}));
    }
}

TEST(Drawing, TextsOfChartsLieOnNothingElseThatIsWritten) {
  for (const CaseRecord& report_case : example_report().cases) {
    expect_readable(plots::search_chart(report_case));
  }
}

// 15.9 ms; the first box of F lasts 1 ms and begins at 0.
TEST(Drawing, TheAxisOfATimelineIsTrueToScale) {
  const XmlElement drawing = parse_xml(timeline_svg(example_trace({}), {.memory = false}));
  const XmlElement& first = by_class(drawing, "boxes").at(0)->children.at(0);
  double below = 0;  // the boxes
  for (const XmlElement* group : by_class(drawing, "boxes"))
    for (const XmlElement& box : group->children)
      below = std::max(below, box.number("y") + box.number("height"));
  std::size_t ticks = 0;
  for (const Letters& one : letters(drawing)) {
    double ms = 0;
    int used = 0;
    if (std::sscanf(one.text.c_str(), "%lf%n", &ms, &used) != 1) continue;
    if (static_cast<std::size_t>(used) != one.text.size()) continue;
    if (one.top < below) continue;
    EXPECT_NEAR((one.left + one.right) / 2, first.number("x") + ms * first.number("width"), 0.5)
        << one.text;
    ++ticks;
  }
  EXPECT_GE(ticks, 5U);
}

TEST(Drawing, TheHeadOfATimelineSaysWhatItIsOf) {
  const auto named = [](const TimelineOptions& options) {
    return words(parse_xml(timeline_svg(example_trace({}), options)));
  };
  EXPECT_THAT(named({.title = "1F1B", .subtitle = "two ranks"}),
              testing::IsSupersetOf({"1F1B", "two ranks", "estimated"}));
  EXPECT_THAT(named({.memory = false}), Contains(testing::StartsWith("step 15.90 ms, bubble ")));
  EXPECT_THAT(named({.names = {"plan A"}}), Contains("plan A, estimated"));
  EXPECT_THAT(named({}), Contains(testing::ContainsRegex("peak memory [0-9.]+ GiB")));
  // In a column of a paper what has no room is left out, not cut.
  EXPECT_THAT(named({.width = 317}), testing::Each(Not(testing::HasSubstr("…"))));
}

TEST(Drawing, TheLegendOfATimelineNamesWhatIsThere) {
  Trace trace = example_trace({});
  const auto named = [&](const TimelineOptions& options = {}) {
    return words(parse_xml(timeline_svg(trace, options)));
  };
  EXPECT_THAT(named(), Not(Contains("launch")));
  trace.events[3].launch = Nanoseconds{1000};
  EXPECT_THAT(named(), Contains("launch"));
  for (Event& event : trace.events) event.waited_for.reset();
  EXPECT_THAT(named(), Not(Contains("critical path")));
  trace.events[1].waited_for = 0;
  EXPECT_THAT(named(), Contains("critical path"));
  EXPECT_THAT(named({.critical_path = false}), Not(Contains("critical path")));
  EXPECT_THAT(named(), Not(Contains("paler = later stage of the rank")));
  trace = example_trace({.stages_per_rank = 2});
  EXPECT_THAT(named(), Contains("paler = later stage of the rank"));
  // Transfers that take no time have no box.
  EXPECT_THAT(named(), Contains("transfer of a value"));
  for (Event& event : trace.events)
    if (event.kind == TaskKind::Transfer) event.end = event.start;
  EXPECT_THAT(named(), Not(Contains("transfer of a value")));
}

// 8 ranks and 16 microbatches: at a page's width every box has its label, in a column of a paper
// those of the longer backwards that have one digit.
TEST(Drawing, BoxesOf8x16AreLabelledWhereThereIsRoom) {
  Example example{.ranks = 8, .microbatches = 16};
  example.forward = Nanoseconds{1'000'000}, example.backward = Nanoseconds{2'000'000};
  example.transfer = example.optimizer = Nanoseconds{0};
  const auto labels = [&](int width) {
    std::size_t count = 0;
    const XmlElement drawing =
        parse_xml(timeline_svg(example_trace(example), {.width = width, .memory = false}));
    for (const XmlElement* group : by_class(drawing, "labels")) {
      EXPECT_GE(group->number("font-size"), 6.5) << width;  // 5 points
      count += group->children.size();
    }
    return count;
  };
  EXPECT_GE(labels(1200), 2u * 8 * 16);
  EXPECT_GE(labels(317), 8u * 10);
}

}  // namespace
}  // namespace pfeife
