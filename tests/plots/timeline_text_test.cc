#include "plots/screen/timeline_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "tests/plots/example_traces.h"

namespace pfeife {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Characters that a terminal shows: without its codes, UTF-8 counted once.
std::size_t shown_width(const std::string& line) {
  const std::string text = std::regex_replace(line, std::regex("\033\\[[0-9;]*m"), "");
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

Trace one_forward_one_backward(std::size_t ranks, std::size_t microbatches) {
  return example_trace({.ranks = ranks,
                        .microbatches = microbatches,
                        .transfer = Nanoseconds{0},
                        .optimizer = Nanoseconds{0}});
}

/// What stands behind the names of the ranks, all lines together.
std::string places(const std::string& text) {
  std::string found;
  for (const std::string& line : lines_of(text))
    if (line.starts_with("rank ")) found += line.substr(8);
  return found;
}

// F = 1 ms, B = 2 ms, three characters a millisecond: by hand
//   rank 0  F0 F1 .. .. B0 .. B1 ..   (B0 of rank 1 ends at 4 ms, B1 at 7 ms)
//   rank 1     F0 B0 .. F1 B1 ..
TEST(TimelineText, TwoRanksAsDrawnByHand) {
  EXPECT_EQ(timeline_text(one_forward_one_backward(2, 2), {.width = 80}),
            "ms      0              5\n"
            "rank 0  F0 F1 ......B0--- ...B1---\n"
            "rank 1  ...F0 B0--- F1 B1--- ......\n");
}

TEST(TimelineText, NoLineIsWiderThanTheTerminal) {
  for (const std::size_t width : {40u, 80u, 133u})
    for (const bool colour : {false, true})
      for (const std::size_t ranks : {2u, 8u, 16u})
        for (const std::size_t microbatches : {2u, 16u, 64u, 400u}) {
          std::vector<std::string> behind(ranks + 1, "12  345");
          for (const auto& texts : {std::vector<std::string>{}, behind}) {
            const std::string text =
                timeline_text(one_forward_one_backward(ranks, microbatches),
                              {.width = width, .colour = colour, .behind = texts});
            for (const std::string& line : lines_of(text)) EXPECT_LE(shown_width(line), width);
            EXPECT_LE(std::ranges::count(text, '\n'), 8 * (static_cast<long>(ranks) + 2) + 3);
          }
        }
}

TEST(TimelineText, WithoutColourItIsAscii) {
  const std::string text = timeline_text(one_forward_one_backward(4, 8), {.width = 60});
  EXPECT_TRUE(
      std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  EXPECT_THAT(timeline_text(one_forward_one_backward(4, 8), {.width = 60, .colour = true}),
              HasSubstr("\033[38;5;"));
}

// 8 ranks, 32 microbatches at 80 columns: no label has room, but every action has a place on its
// rank's lines. Each rank has 32 F, of one place or more.
TEST(TimelineText, WhatHasNoRoomForLabelsIsOnSeveralLines) {
  const std::string text = timeline_text(one_forward_one_backward(8, 32), {.width = 80});
  const std::string all = places(text);
  EXPECT_GE(std::ranges::count(all, 'F'), 8 * 32);
  EXPECT_GE(std::ranges::count(all, 'B'), 8 * 32);
  EXPECT_THAT(text, Not(HasSubstr("longer than an action")));
}

// 720 microbatches of 3 ms on 72 places: each begins with an F, and has B at its middle. Two thirds
// of them show B, as of the time.
TEST(TimelineText, SharesOfPlacesAreSharesOfTime) {
  const std::string text = timeline_text(one_forward_one_backward(1, 720), {.width = 80});
  EXPECT_THAT(text, HasSubstr("longer than an action"));
  EXPECT_EQ(places(text).size(), 72u);
  EXPECT_NEAR(static_cast<double>(std::ranges::count(places(text), 'B')), 48, 3);
}

}  // namespace
}  // namespace pfeife
