#include "plots/figure/theme.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace pfeife::plots {

std::string hex(Color color) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "#";
  for (const std::uint8_t channel : {color.red, color.green, color.blue}) {
    text += digits[channel >> 4];
    text += digits[channel & 15];
  }
  return text;
}

Color mix(Color a, Color b, double amount) {
  const auto channel = [&](std::uint8_t x, std::uint8_t y) {
    return static_cast<std::uint8_t>(std::lround(x + (y - x) * std::clamp(amount, 0.0, 1.0)));
  };
  return {channel(a.red, b.red), channel(a.green, b.green), channel(a.blue, b.blue)};
}

Paint paint(const Event& event) {
  if (event.kind == TaskKind::Optimizer) return Paint::Optimizer;
  if (event.kind == TaskKind::Reduction) return Paint::Reduction;
  const auto* action = std::get_if<Action>(&event.cell);
  if (action == nullptr) return Paint::Overlap;
  if (event.kind == TaskKind::Transfer)
    return action->direction == Direction::Forward ? Paint::SendForward : Paint::SendBackward;
  switch (action->op) {
    case Op::Backward:
      return Paint::Backward;
    case Op::BackwardInput:
      return Paint::BackwardInput;
    case Op::BackwardWeight:
      return Paint::BackwardWeight;
    default:
      return Paint::Forward;
  }
}

namespace {

struct Look {
  Color fill;
  std::string_view letter, name;
};
constexpr std::array<Look, kPaints> kLooks{{
    {{0x82, 0xb4, 0xf4}, "F", "forward"},
    {{0xe0, 0x74, 0x3c}, "B", "backward"},
    {{0xfa, 0xe7, 0x5f}, "I", "backward, inputs"},
    {{0x5c, 0xc0, 0x88}, "W", "backward, weights"},
    {{0xa2, 0x74, 0xf6}, "FB", "overlapped"},
    {{0xcf, 0xd3, 0xd8}, "opt", "optimizer"},
    {{0xc9, 0x7a, 0x9c}, "red", "gradient reduction"},
    {{0xa6, 0xc1, 0xe6}, "F", "value sent"},
    {{0xd9, 0xa8, 0x78}, "B", "gradient sent"},
}};

const Look& look(Paint paint) { return kLooks[static_cast<std::size_t>(paint)]; }

}  // namespace

Color fill(Paint paint, std::size_t shade, std::size_t shades) {
  if (shades <= 1) return look(paint).fill;
  constexpr double palest = 0.62;  // more, and the palest shade is hard to tell from an idle lane
  const double step = palest / static_cast<double>(shades - 1);
  return mix(look(paint).fill, kPaper, step * static_cast<double>(std::min(shade, shades - 1)));
}

std::string letter(Paint paint) { return std::string(look(paint).letter); }
std::string name(Paint paint) { return std::string(look(paint).name); }

std::vector<Cause> causes(const Attribution& a) {
  return {{"compute", a.compute, look(Paint::Forward).fill},
          {"waiting for other ranks", a.dependency_wait, look(Paint::Optimizer).fill},
          {"exposed transfer", a.exposed_transfer, look(Paint::Backward).fill},
          {"waiting in a queue", a.queue_wait, look(Paint::BackwardInput).fill},
          {"launch", a.launch, look(Paint::Overlap).fill},
          {"reduction", a.reduction, look(Paint::Reduction).fill},
          {"optimizer", a.optimizer, look(Paint::BackwardWeight).fill}};
}

/// Advance of a character in units of the font size: not less than in any font of kFonts.
static double advance(char c) {
  constexpr std::string_view narrow = "ijl'|!.,:;I()[]/ -t f r", wide = "MWmw%@";
  if (wide.find(c) != std::string_view::npos) return 0.98;
  if (narrow.find(c) != std::string_view::npos) return 0.42;
  if (c >= '0' && c <= '9') return 0.64;
  return c >= 'A' && c <= 'Z' ? 0.76 : 0.63;
}

static bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

double text_width(std::string_view text, double size) {
  double width = 0;
  for (const char c : text)
    if (starts_character(c)) width += static_cast<unsigned char>(c) < 0x80 ? advance(c) : 1.0;
  return width * size;
}

std::string shortened(std::string_view text, double size, double width) {
  if (text_width(text, size) <= width) return std::string(text);
  double used = size;  // the ellipsis
  std::size_t end = 0;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t next = i + 1;
    while (next < text.size() && !starts_character(text[next])) ++next;
    used += text_width(text.substr(i, next - i), size);
    if (used > width) break;
    end = i = next;
  }
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace pfeife::plots
