#include "plots/figure/theme.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "plots/figure/svg.h"

namespace pfeife::plots {
namespace {

using Triple = std::array<double, 3>;
using Matrix = std::array<Triple, 3>;

// How colours look with normal sight and without one of the three cones: Machado, Oliveira,
// Fernandes 2009, "A Physiologically-based Model for Simulation of Color Vision Deficiency",
// severity 1, on linear RGB.
constexpr std::array<Matrix, 4> kSights{{
    {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
    {{{0.367322, 0.860646, -0.227968},
      {0.280085, 0.672501, 0.047413},
      {-0.011820, 0.042940, 0.968881}}},
    {{{0.152286, 1.052583, -0.204868},
      {0.114503, 0.786281, 0.099216},
      {-0.003882, -0.048116, 1.051998}}},
    {{{1.255528, -0.076749, -0.178779},
      {-0.078411, 0.930809, 0.147602},
      {0.004733, 0.691367, 0.303900}}},
}};

double linear(std::uint8_t channel) {
  const double c = channel / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

/// CIE L*a*b* (D65) of a colour as it is seen.
Triple lab(Color color, const Matrix& sight) {
  const Triple rgb{linear(color.red), linear(color.green), linear(color.blue)};
  Triple seen{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) seen[i] += sight[i][j] * rgb[j];
    seen[i] = std::clamp(seen[i], 0.0, 1.0);
  }
  const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
  const double x = f((0.4124 * seen[0] + 0.3576 * seen[1] + 0.1805 * seen[2]) / 0.95047);
  const double y = f(0.2126 * seen[0] + 0.7152 * seen[1] + 0.0722 * seen[2]);
  const double z = f((0.0193 * seen[0] + 0.1192 * seen[1] + 0.9505 * seen[2]) / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

double distance(Color a, Color b, const Matrix& sight) {
  const Triple p = lab(a, sight), q = lab(b, sight);
  return std::sqrt(std::pow(p[0] - q[0], 2) + std::pow(p[1] - q[1], 2) + std::pow(p[2] - q[2], 2));
}

TEST(Theme, FillsOfOneLaneDifferForEverySight) {
  const std::vector<std::vector<Paint>> lanes{
      {Paint::Forward, Paint::Backward, Paint::BackwardInput, Paint::BackwardWeight, Paint::Overlap,
       Paint::Optimizer, Paint::Reduction},
      {Paint::SendForward, Paint::SendBackward, Paint::Reduction}};
  for (const auto& lane : lanes)
    for (const Matrix& sight : kSights)
      for (std::size_t i = 0; i < lane.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
          EXPECT_GE(distance(fill(lane[i]), fill(lane[j]), sight), 13)
              << name(lane[i]) << " and " << name(lane[j]) << ", sight " << &sight - kSights.data();
}

// From dark to light. Paper is the ground of legends, idle that of the rows.
TEST(Theme, WhatRanksDoDiffersInGrey) {
  const std::vector<Paint> dark_to_light{Paint::Optimizer, Paint::BackwardWeight, Paint::Backward,
                                         Paint::Forward, Paint::BackwardInput};
  for (std::size_t i = 0; i < dark_to_light.size(); ++i) {
    const bool last = i + 1 == dark_to_light.size();
    const Color next = last ? kIdle : fill(dark_to_light[i + 1]);
    EXPECT_LT(luminance(fill(dark_to_light[i])), luminance(next));
    EXPECT_GE(contrast(fill(dark_to_light[i]), next), 1.5) << name(dark_to_light[i]);
    EXPECT_GE(contrast(fill(dark_to_light[i], 3, 4), next), 1.2) << name(dark_to_light[i]);
  }
  for (const Paint sent : {Paint::SendForward, Paint::SendBackward})
    EXPECT_GE(contrast(fill(sent, 3, 4), mix(kIdle, kPaper, 0.5)), 1.5);
  EXPECT_GE(contrast(fill(Paint::SendForward), fill(Paint::SendBackward)), 1.5);
}

TEST(Theme, WhatIsWrittenIsReadableOnEveryFillAndShade) {
  for (std::size_t p = 0; p < kPaints; ++p)
    for (std::size_t shade = 0; shade < 4; ++shade) {
      const Color ground = fill(static_cast<Paint>(p), shade, 4);
      EXPECT_GE(contrast(ink_on(ground), ground), 4.5)
          << name(static_cast<Paint>(p)) << " " << shade;
    }
  for (const Color text : {kInk, kMuted, kAlarm}) EXPECT_GE(contrast(text, kPaper), 4.5);
}

// Machado's matrices leave white as it is; the luminance of green is by definition 0.7152.
TEST(Theme, LinesAndBarsOfSeriesStandOutFromLightAndDarkPaper) {
  for (const Color color : kSeries) {
    EXPECT_GE(contrast(color, kPaper), 3) << hex(color);
    EXPECT_GE(contrast(color, kDarkPaper), 3) << hex(color);
  }
}

TEST(Theme, GreysOfIdleTimeDifferAndCarryLettersOnLightAndDarkPaper) {
  constexpr Color kBlack{0, 0, 0};
  const IdleGrey greys[] = {kCoolDown, kWarmUp, kSteadyState, kImbalance};
  Color light = kPaper, dark = kDarkPaper;
  for (const IdleGrey& grey : greys) {
    EXPECT_GE(contrast(grey.light, light), 1.2) << hex(grey.light);
    EXPECT_GE(contrast(grey.dark, dark), 1.2) << hex(grey.dark);
    EXPECT_LT(luminance(grey.light), luminance(light));
    EXPECT_GT(luminance(grey.dark), luminance(dark));
    EXPECT_EQ(ink_on(grey.light), kBlack);
    EXPECT_GE(contrast(kBlack, grey.light), 4.5);
    EXPECT_GE(contrast(kBlack, grey.dark), 4.5);
    light = grey.light, dark = grey.dark;
  }
  EXPECT_GE(contrast(kImbalance.light, kLaunch), 1.2);
  EXPECT_GE(contrast(kImbalance.dark, kDarkLaunch), 1.2);
  EXPECT_GE(contrast(kCoolDown.dark, kDarkPaper), 3);
}

TEST(Theme, LuminanceIsThatOfTheStandard) {
  EXPECT_NEAR(luminance({0, 255, 0}), 0.7152, 1e-12);
  for (const Matrix& sight : kSights) EXPECT_NEAR(lab(kPaper, sight)[0], 100, 0.01);
}

TEST(Theme, ContrastOfBlackAndWhiteIs21) {
  EXPECT_DOUBLE_EQ(contrast({0, 0, 0}, {255, 255, 255}), 21);
  EXPECT_DOUBLE_EQ(contrast(kInk, kInk), 1);
}

TEST(Theme, LaterStagesArePaler) {
  for (std::size_t shade = 1; shade < 3; ++shade)
    EXPECT_GT(luminance(fill(Paint::Forward, shade, 3)),
              luminance(fill(Paint::Forward, shade - 1, 3)));
  EXPECT_EQ(fill(Paint::Forward, 0, 3), fill(Paint::Forward));
}

TEST(Theme, CausesAddUpToTheStep) {
  const Attribution a{Nanoseconds{1},  Nanoseconds{2},  Nanoseconds{4}, Nanoseconds{8},
                      Nanoseconds{16}, Nanoseconds{32}, Nanoseconds{64}};
  Nanoseconds sum{0};
  for (const Cause& cause : causes(a)) sum += cause.time;
  EXPECT_EQ(sum, a.total());
}

TEST(Theme, TextIsCutAtCharactersNotAtBytes) {
  EXPECT_EQ(shortened("short", 10, 100), "short");
  const std::string cut = shortened("ääääääääääääääää", 10, 60);
  EXPECT_TRUE(cut.ends_with("…"));
  EXPECT_LE(text_width(cut, 10), 60);
  EXPECT_EQ(escape(cut), cut);  // no half character
}

TEST(Svg, EscapesMarkupAndReplacesWhatXmlCannotCarry) {
  EXPECT_EQ(escape("a<b>&\"'c"), "a&lt;b&gt;&amp;&quot;&#39;c");
  EXPECT_EQ(escape("tab\tnew\nline"), "tab\tnew\nline");
  EXPECT_EQ(escape(std::string_view("\x01\x00\x7f", 3)), "���");
  EXPECT_EQ(escape("\xff\xc0\x80"), "���");  // never UTF-8
  EXPECT_EQ(escape("\xed\xa0\x80"), "���");  // a surrogate
  EXPECT_EQ(escape("\xef\xbf\xbe"), "�");    // a noncharacter
  EXPECT_EQ(escape("\xe2\x82"), "��");       // cut off
  EXPECT_EQ(escape("µ € 😀 שלום"), "µ € 😀 שלום");
  EXPECT_EQ(escape("a\u202Eb\u2067c\u0085"), "a�b�c�");  // would turn, or end, the line
}

TEST(Svg, NumbersAreShortAndNeverMinusZero) {
  EXPECT_EQ(hundredths(1250), "12.5");
  EXPECT_EQ(hundredths(1205), "12.05");
  EXPECT_EQ(hundredths(-5), "-0.05");
  EXPECT_EQ(coordinate(-0.001), "0");
  EXPECT_EQ(fixed(12.005, 1), "12.0");
  EXPECT_EQ(fixed(-0.04, 1), "0.0");
  EXPECT_EQ(fixed(0.0625, 3), "0.063");
  EXPECT_EQ(fixed(1.0 / 0.0, 1), "–");
}

TEST(Svg, InlineDrawingsNameNoNamespace) {
  const std::string document = Svg().rect(0, 0, 1, 1, kInk).document(10, 10, "t");
  EXPECT_NE(document.find("http"), std::string::npos);
  EXPECT_EQ(inline_svg(document).find("http"), std::string::npos);
}

}  // namespace
}  // namespace pfeife::plots
