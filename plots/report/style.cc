#include "plots/figure/theme.h"
#include "plots/report/parts.h"

namespace pfeife::plots {

namespace {

constexpr Color kDarkMuted{0xa3, 0xac, 0xb6}, kDarkRule{0x3a, 0x42, 0x4c};

/// What is paper, ink or rule in light mode, in the page and in its drawings, whose colours are
/// attributes; fills that mean something stay, and so does what is written on them.
struct TwoColors {
  const char* variable;  ///< of page.css; "" = only drawings have it
  Color light, dark;
  bool drawn = true;  ///< drawings have it
};
const TwoColors kColors[] = {
    {"paper", kPaper, kDarkPaper},
    {"ink", kInk, {0xe6, 0xe9, 0xed}},
    {"muted", kMuted, kDarkMuted},
    {"rule", kRule, kDarkRule},
    {"idle", kIdle, {0x2a, 0x30, 0x38}},
    {"", mix(kIdle, kPaper, 0.5), {0x20, 0x25, 0x2c}},
    {"memory", kMemory, kMemory, false},
    {"held", kHeld, kHeld, false},
    {"alarm", kAlarm, {0xff, 0x8a, 0x7a}},
    {"best", mix(fill(Paint::Forward), kPaper, 0.75), {0x23, 0x34, 0x4d}, false},
    {"", kLaunch, kDarkLaunch},
    {"", kWaiting, {0x98, 0xa0, 0xaa}},
    {"", kCoolDown.light, kCoolDown.dark},
    {"", kWarmUp.light, kWarmUp.dark},
    {"", kSteadyState.light, kSteadyState.dark},
    {"", kImbalance.light, kImbalance.dark}};

/// "--paper:#ffffff;--ink:..."
std::string variables(Color TwoColors::*color) {
  std::string css;
  for (const TwoColors& colors : kColors)
    if (*colors.variable != '\0')
      css += std::string("--") + colors.variable + ":" + hex(colors.*color) + ";";
  return css;
}

std::string dark_drawings() {
  std::string css;
  for (const TwoColors& colors : kColors) {
    if (!colors.drawn) continue;
    const std::string light = "=\"" + hex(colors.light) + "\"]", dark = hex(colors.dark) + "}\n";
    css += "svg[fill" + light + ",svg [fill" + light + "{fill:" + dark + "svg [stroke" + light +
           "{stroke:" + dark;
  }
  return css + "svg [fill=\"" + hex(fill(Paint::Optimizer)) + "\"]{stroke:" + hex(kDarkMuted) +
         "}\n";
}

}  // namespace

std::string report_style() {
  return ":root{--fonts:" + std::string(kFonts) + ";--note:" + hex(fill(Paint::Backward)) + ";" +
         variables(&TwoColors::light) +
         "}\n@media (prefers-color-scheme:dark){@media not print{\n:root{" +
         variables(&TwoColors::dark) + "}\n" + dark_drawings() + "}}\n" + kReportCss;
}

}  // namespace pfeife::plots
