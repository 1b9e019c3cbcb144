#include "plots/figure/theme.h"

#include <gtest/gtest.h>

#include "plots/figure/svg.h"
#include "tests/plots/sight.h"

namespace pfeife::plots {
namespace {

TEST(Theme, FillsOfOneLaneDifferForEverySight) {
  const std::vector<std::vector<Paint>> lanes{
      {Paint::Forward, Paint::Backward, Paint::BackwardInput, Paint::BackwardWeight, Paint::Overlap,
       Paint::Optimizer, Paint::Reduction, Paint::HeadShare, Paint::HeadRest},
      {Paint::SendForward, Paint::SendBackward, Paint::Reduction, Paint::HeadCollective,
       Paint::Offload, Paint::Reload}};
  for (const auto& lane : lanes)
    for (const Matrix& sight : kSights)
      for (std::size_t i = 0; i < lane.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
          EXPECT_GE(distance(fill(lane[i]), fill(lane[j]), sight), 13)
              << name(lane[i]) << " and " << name(lane[j]) << ", sight " << &sight - kSights.data();
}

// REDUCE_GRAD reduces gradients; what joins the shares of an output layer does not.
TEST(Theme, CollectivesOfTheOutputLayerAreNamedSo) {
  for (const Op op : kHeadCollectives)
    EXPECT_EQ(name(paint({.kind = TaskKind::Reduction, .cell = Action{.op = op}})),
              "collective of the output layer");
  EXPECT_EQ(name(paint({.kind = TaskKind::Reduction, .cell = Action{.op = Op::ReduceGrad}})),
            "gradient reduction");
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
