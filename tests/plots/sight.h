// How far apart two colours look, to whoever has all three cones or lacks one.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "plots/figure/theme.h"

namespace pfeife::plots {

using Triple = std::array<double, 3>;
using Matrix = std::array<Triple, 3>;

// How colours look with normal sight and without one of the three cones: Machado, Oliveira,
// Fernandes 2009, "A Physiologically-based Model for Simulation of Color Vision Deficiency",
// severity 1, on linear RGB.
inline constexpr std::array<Matrix, 4> kSights{{
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

inline double linear(std::uint8_t channel) {
  const double c = channel / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

/// CIE L*a*b* (D65) of a colour as it is seen.
inline Triple lab(Color color, const Matrix& sight) {
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

inline double distance(Color a, Color b, const Matrix& sight) {
  const Triple p = lab(a, sight), q = lab(b, sight);
  return std::sqrt(std::pow(p[0] - q[0], 2) + std::pow(p[1] - q[1], 2) + std::pow(p[2] - q[2], 2));
}

}  // namespace pfeife::plots
