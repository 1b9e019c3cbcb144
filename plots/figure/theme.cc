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

namespace {

struct Look {
  Color fill, pale;  ///< of the first and of the last stage of a rank
  std::string_view letter, name;
  std::optional<Op> op = {};  ///< whose events have it
};
constexpr std::array<Look, kPaints> kLooks{{
    {{0x68, 0xa0, 0xe3}, {0x87, 0xb3, 0xe9}, "F", "forward", Op::Forward},
    {{0xcd, 0x4e, 0x29}, {0xd4, 0x68, 0x49}, "B", "backward", Op::Backward},
    {{0xef, 0xc2, 0x3b}, {0xf6, 0xdc, 0x90}, "I", "backward, inputs", Op::BackwardInput},
    {{0x23, 0x60, 0x3c}, {0x37, 0x6e, 0x4e}, "W", "backward, weights", Op::BackwardWeight},
    {{0x7f, 0x49, 0xbf}, {0x8d, 0x5c, 0xc6}, "FB", "overlapped"},
    {{0x30, 0x35, 0x3e}, {0x30, 0x35, 0x3e}, "opt", "optimizer"},
    {{0xac, 0x49, 0x7d}, {0xac, 0x49, 0x7d}, "red", "gradient reduction"},
    {{0xbd, 0xa2, 0xd9}, {0xd2, 0xbf, 0xe6}, "F", "transfer of a value"},
    {{0x97, 0x6e, 0xc7}, {0xa9, 0x87, 0xd1}, "B", "transfer of a gradient"},
    {{0x58, 0xc8, 0x78}, {0x84, 0xd8, 0x9c}, "out", "copy to the host", Op::Offload},
    {{0x08, 0x70, 0x30}, {0x18, 0x78, 0x3e}, "in", "copy from the host", Op::Reload},
    {{0xb4, 0xa5, 0x87}, {0xb4, 0xa5, 0x87}, "S", "share of the output layer", Op::HeadShare},
    {{0x3c, 0x1e, 0x0f}, {0x3c, 0x1e, 0x0f}, "T", "rest of that share", Op::HeadRest},
    {{0x48, 0x3c, 0xe0}, {0x48, 0x3c, 0xe0}, "all", "collective of the output layer"},
}};

const Look& look(Paint paint) { return kLooks[static_cast<std::size_t>(paint)]; }

}  // namespace

Paint paint(const Event& event) {
  if (event.kind == TaskKind::Optimizer) return Paint::Optimizer;
  const auto* action = std::get_if<Action>(&event.cell);
  if (event.kind == TaskKind::Reduction)
    return action != nullptr && is_head_collective(action->op) ? Paint::HeadCollective
                                                               : Paint::Reduction;
  if (action == nullptr) return Paint::Overlap;
  if (event.kind == TaskKind::Transfer)
    return action->direction == Direction::Forward ? Paint::SendForward : Paint::SendBackward;
  for (std::size_t p = 0; p < kPaints; ++p)
    if (kLooks[p].op == action->op) return static_cast<Paint>(p);
  return Paint::Forward;
}

std::vector<Paint> compute_paints() {
  std::vector<Paint> paints;
  for (std::size_t p = 0; p < kPaints; ++p)
    if (static_cast<Paint>(p) == Paint::Overlap || (kLooks[p].op && is_compute(*kLooks[p].op)))
      paints.push_back(static_cast<Paint>(p));
  return paints;
}

Color fill(Paint paint, std::size_t shade, std::size_t shades) {
  if (shades <= 1) return look(paint).fill;
  return mix(look(paint).fill, look(paint).pale,
             static_cast<double>(std::min(shade, shades - 1)) / static_cast<double>(shades - 1));
}

double luminance(Color color) {
  const auto linear = [](std::uint8_t channel) {
    const double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color.red) + 0.7152 * linear(color.green) + 0.0722 * linear(color.blue);
}

double contrast(Color a, Color b) {
  const auto [low, high] = std::minmax({luminance(a), luminance(b)});
  return (high + 0.05) / (low + 0.05);
}

Color ink_on(Color ground) {
  constexpr Color kBlack{0, 0, 0};
  return contrast(kBlack, ground) >= contrast(kEdge, ground) ? kBlack : kEdge;
}

std::string letter(Paint paint) { return std::string(look(paint).letter); }
std::string name(Paint paint) { return std::string(look(paint).name); }

std::vector<Cause> causes(const Attribution& a) {
  return {{"compute", a.compute, look(Paint::Forward).fill},
          {"waiting for other ranks", a.dependency_wait, kWaiting},
          {"exposed transfer", a.exposed_transfer, look(Paint::SendBackward).fill},
          {"waiting in a queue", a.queue_wait, look(Paint::SendForward).fill},
          {"launch", a.launch, kLaunch},
          {"reduction", a.reduction, look(Paint::Reduction).fill},
          {"optimizer", a.optimizer, look(Paint::Optimizer).fill}};
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
