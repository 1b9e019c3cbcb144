// Quantities with their unit in the type: time, bytes, operations, and their rates.
// Only the operators that mean something exist; a bare number never becomes a quantity by itself.
#pragma once

#include <chrono>
#include <cmath>
#include <compare>
#include <cstdint>
#include <string>

namespace pfeife {

/// Time in integer nanoseconds; the only representation of time in the project.
using Nanoseconds = std::chrono::duration<std::int64_t, std::nano>;

/// An amount of memory or of a message, in bytes.
struct Bytes {
  std::int64_t value = 0;

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.value - b.value}; }
  friend constexpr Bytes operator*(std::int64_t n, Bytes b) { return {n * b.value}; }
  constexpr Bytes& operator+=(Bytes b) { return value += b.value, *this; }
  constexpr Bytes& operator-=(Bytes b) { return value -= b.value, *this; }
};

/// Floating-point operations (a multiply-add counts two).
struct Flops {
  double value = 0;

  friend constexpr auto operator<=>(Flops, Flops) = default;
  friend constexpr Flops operator+(Flops a, Flops b) { return {a.value + b.value}; }
  friend constexpr Flops operator*(double n, Flops f) { return {n * f.value}; }
  constexpr Flops& operator+=(Flops f) { return value += f.value, *this; }
};

/// Bytes a second.
struct BytesPerSecond {
  double value = 0;
  friend constexpr auto operator<=>(BytesPerSecond, BytesPerSecond) = default;
  friend constexpr BytesPerSecond operator*(double n, BytesPerSecond b) { return {n * b.value}; }
};

/// Floating-point operations a second.
struct FlopsPerSecond {
  double value = 0;
  friend constexpr auto operator<=>(FlopsPerSecond, FlopsPerSecond) = default;
  friend constexpr FlopsPerSecond operator*(double n, FlopsPerSecond f) { return {n * f.value}; }
};

constexpr Bytes kKiB{std::int64_t{1} << 10}, kMiB{std::int64_t{1} << 20},
    kGiB{std::int64_t{1} << 30};

/// Seconds to the nearest nanosecond. The one place where real time becomes integer time.
inline Nanoseconds nanoseconds_from_seconds(double seconds) {
  return Nanoseconds{std::llround(seconds * 1e9)};
}
inline Nanoseconds nanoseconds_from_ms(double ms) { return Nanoseconds{std::llround(ms * 1e6)}; }
constexpr double milliseconds(Nanoseconds t) { return static_cast<double>(t.count()) * 1e-6; }
constexpr double seconds(Nanoseconds t) { return static_cast<double>(t.count()) * 1e-9; }

/// Time in seconds that `amount` takes at `rate` (> 0), not yet rounded.
inline double seconds_at(Bytes amount, BytesPerSecond rate) {
  return static_cast<double>(amount.value) / rate.value;
}
inline double seconds_at(Flops amount, FlopsPerSecond rate) { return amount.value / rate.value; }

/// "1.234 ms", "11.04 MiB": for people. Files carry plain numbers.
std::string to_string(Nanoseconds time);
std::string to_string(Bytes bytes);

}  // namespace pfeife
