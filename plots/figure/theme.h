// Colours, fonts and text metrics: the one place where the look of timelines and reports is
// decided.
//
// One colour, one meaning, in every picture. Fills were chosen so that any two of a lane differ by
// at least 13 (CIE76) in normal, deuteranopic, protanopic and tritanopic sight (Machado et al.
// 2009, severity 1); so that optimizer, W, B, F, I and idle, from dark to light, have a contrast of
// at least 1.5 in grey, and of 1.2 from the palest shade of one to the next; and so that what is
// written on any of them has a contrast of at least 4.5 (WCAG 2.1 AA).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/ir/trace/trace.h"

namespace pfeife::plots {

struct Color {
  std::uint8_t red = 0, green = 0, blue = 0;
  friend bool operator==(const Color&, const Color&) = default;
};
/// "#rrggbb".
std::string hex(Color color);
/// `amount` in [0, 1] of `b`, the rest `a`, per channel.
Color mix(Color a, Color b, double amount);

constexpr Color kPaper{0xff, 0xff, 0xff};
constexpr Color kEdge{0xff, 0xff, 0xfe};     ///< white in dark mode, too: between boxes, on them
constexpr Color kInk{0x1b, 0x1f, 0x24};      ///< text
constexpr Color kMuted{0x57, 0x60, 0x6a};    ///< secondary text
constexpr Color kRule{0xd0, 0xd7, 0xde};     ///< grid lines, frames
constexpr Color kIdle{0xf1, 0xf3, 0xf5};     ///< a lane where nothing runs: the bubble
constexpr Color kWaiting{0xd7, 0xdd, 0xe4};  ///< idle, in bars that stand on paper
constexpr Color kLaunch{0x8a, 0x93, 0x9e};   ///< launch overhead
constexpr Color kAlarm{0xb4, 0x23, 0x18};    ///< limits, what exceeds them
constexpr Color kMemory{0x8f, 0xb0, 0xc9};   ///< memory that comes and goes
constexpr Color kHeld{0x5b, 0x82, 0xa1};     ///< memory held throughout

constexpr Color kDarkPaper{0x16, 0x1a, 0x20};

/// Greys of idle time in bars, from light to dark: each has a contrast of at least 1.2 to the next,
/// the first to paper, the last to kLaunch. `dark`: on dark paper, from dark to light; both carry
/// black letters.
struct IdleGrey {
  Color light, dark;
};
constexpr IdleGrey kCoolDown{{0xe6, 0xe9, 0xed}, {0x75, 0x7c, 0x86}};
constexpr IdleGrey kWarmUp{{0xd0, 0xd5, 0xdb}, {0x8b, 0x92, 0x9c}};
constexpr IdleGrey kSteadyState{{0xb9, 0xbf, 0xc6}, {0xa2, 0xa9, 0xb2}};
constexpr IdleGrey kImbalance{{0xa3, 0xa9, 0xb0}, {0xba, 0xc0, 0xc8}};
constexpr Color kDarkLaunch{0xdf, 0xe3, 0xe8};  ///< kLaunch on dark paper

/// Lines and bars that stand for schedules or ways of doing something, not for events: each has a
/// contrast of at least 3 to the paper (WCAG 2.1, section 1.4.11), the dark one, too.
constexpr std::array<Color, 6> kSeries{{{0x2f, 0x7f, 0xe0},
                                        {0xb4, 0x5f, 0x06},
                                        {0x0b, 0x7a, 0x75},
                                        {0xc2, 0x48, 0x9c},
                                        {0x76, 0x80, 0x8c},
                                        {0x8d, 0x7c, 0x10}}};

/// What an event is, as far as its colour and letter go.
enum class Paint {
  Forward,
  Backward,
  BackwardInput,
  BackwardWeight,
  Overlap,
  Optimizer,
  Reduction,
  SendForward,
  SendBackward,
  Offload,
  Reload,
  HeadShare,
  HeadRest,
  HeadCollective,
};
constexpr std::size_t kPaints = 14;
Paint paint(const Event& event);
/// What the compute stream runs for microbatches.
std::vector<Paint> compute_paints();
/// Fill of the stage that is number `shade` of its rank's `shades`; the first is the strongest.
Color fill(Paint paint, std::size_t shade = 0, std::size_t shades = 1);
/// Black or white: what can be read on it.
Color ink_on(Color ground);
/// Relative luminance, 0 to 1, and contrast ratio, 1 to 21 (WCAG 2.1, section 1.4.3).
double luminance(Color color);
double contrast(Color a, Color b);
/// "F", "B", "I", "W", "FB", "opt", "red", "out", "in", "S", "T", "all": what boxes are labelled
/// with. Transfers have the letter of what made the value.
std::string letter(Paint paint);
/// "forward", "backward", ...: for legends.
std::string name(Paint paint);

/// One term of an Attribution, as pictures and tables show it.
struct Cause {
  std::string name;
  Nanoseconds time{0};
  Color fill;
};
/// All seven terms, in a fixed order; they add up to the step.
std::vector<Cause> causes(const Attribution& attribution);

/// No font is shipped or fetched: the first of these that the machine has.
constexpr std::string_view kFonts =
    "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";
/// Width of UTF-8 text in pixels at a font size in pixels: an estimate from above for kFonts.
double text_width(std::string_view text, double size);
/// The text, or its beginning and "…" if it is wider than `width`.
std::string shortened(std::string_view text, double size, double width);

}  // namespace pfeife::plots
