#include "planner/io/files/quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <vector>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

struct Unit {
  const char* name;
  double scale;
};
struct Units {
  const char* what;     // for messages
  const char* example;  // likewise
  std::span<const Unit> units;
};

constexpr double kKi = 1024.0, kMi = kKi * 1024, kGi = kMi * 1024, kTi = kGi * 1024;
constexpr auto kByteUnits = std::to_array<Unit>({{"B", 1},
                                                 {"KB", 1e3},
                                                 {"MB", 1e6},
                                                 {"GB", 1e9},
                                                 {"TB", 1e12},
                                                 {"KiB", kKi},
                                                 {"MiB", kMi},
                                                 {"GiB", kGi},
                                                 {"TiB", kTi}});
constexpr auto kRateUnits = std::to_array<Unit>({{"B/s", 1},
                                                 {"KB/s", 1e3},
                                                 {"MB/s", 1e6},
                                                 {"GB/s", 1e9},
                                                 {"TB/s", 1e12},
                                                 {"KiB/s", kKi},
                                                 {"MiB/s", kMi},
                                                 {"GiB/s", kGi},
                                                 {"TiB/s", kTi},
                                                 {"Mbit/s", 1e6 / 8},
                                                 {"Gbit/s", 1e9 / 8}});
constexpr auto kFlopUnits = std::to_array<Unit>({{"FLOP", 1},
                                                 {"KFLOP", 1e3},
                                                 {"MFLOP", 1e6},
                                                 {"GFLOP", 1e9},
                                                 {"TFLOP", 1e12},
                                                 {"PFLOP", 1e15}});
constexpr auto kFlopRateUnits = std::to_array<Unit>({{"FLOP/s", 1},
                                                     {"KFLOP/s", 1e3},
                                                     {"MFLOP/s", 1e6},
                                                     {"GFLOP/s", 1e9},
                                                     {"TFLOP/s", 1e12},
                                                     {"PFLOP/s", 1e15}});
constexpr auto kTimeUnits =
    std::to_array<Unit>({{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}});
constexpr auto kLengthUnits = std::to_array<Unit>(
    {{"px", 1}, {"in", 96}, {"cm", 96 / 2.54}, {"mm", 96 / 25.4}, {"pt", 96 / 72.0}});

constexpr Units kBytes{"an amount of memory", "24 GiB", kByteUnits};
constexpr Units kRate{"a bandwidth", "300 GB/s", kRateUnits};
constexpr Units kFlops{"an amount of work", "2.1 GFLOP", kFlopUnits};
constexpr Units kFlopRate{"a speed", "35.6 TFLOP/s", kFlopRateUnits};
constexpr Units kTime{"a time", "5 us", kTimeUnits};
constexpr Units kLength{"a length", "3.3in", kLengthUnits};

/// "02" is 2 for some programs and, as "010", 8 for others: no number here.
bool has_leading_zero(std::string_view digits) {
  return digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9';
}

/// The number at the start of `text`, which is cut off; nothing if there is none.
std::optional<double> take_number(std::string_view& text) {
  if (text.empty() || !((text[0] >= '0' && text[0] <= '9') || text[0] == '.')) return std::nullopt;
  if (has_leading_zero(text)) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::string wrong(const Units& dimension, std::string_view text, const std::string& why) {
  std::string units;
  for (const Unit& unit : dimension.units)
    units += (units.empty() ? "" : ", ") + std::string(unit.name);
  return "expected " + std::string(dimension.what) + " such as \"" + dimension.example +
         "\", found \"" + std::string(text) + "\"" + why + "; units allowed: " + units;
}

ParsedQuantity<double> parse(const Units& dimension, std::string_view text) {
  std::string_view rest = text;
  const std::optional<double> number = take_number(rest);
  if (!number)
    return {std::nullopt, wrong(dimension, text,
                                text.starts_with('-')    ? ", which is negative"
                                : has_leading_zero(text) ? ", which has a zero too many in front"
                                                         : ", which does not start with a number")};
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  if (rest.empty()) return {std::nullopt, wrong(dimension, text, ", a number without a unit")};
  std::vector<std::string> names;
  for (const Unit& unit : dimension.units) {
    if (rest == unit.name) return {*number * unit.scale, ""};
    names.emplace_back(unit.name);
  }
  const std::string nearest = nearest_spelling(std::string(rest), names);
  return {std::nullopt, wrong(dimension, text,
                              ", where \"" + std::string(rest) + "\" is no unit of it" +
                                  (nearest.empty() ? "" : " (did you mean \"" + nearest + "\"?)"))};
}

/// The number of a text that is one in the unit itself, the first of its dimension; as a double it
/// might lose its last digits.
std::optional<std::int64_t> whole_in_unit(const Units& dimension, std::string_view text) {
  const std::string_view unit = dimension.units.front().name;
  if (!text.ends_with(unit)) return std::nullopt;
  text.remove_suffix(unit.size());
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  return parse_integer(text);
}

/// To a whole number of bytes or nanoseconds, if it fits.
ParsedQuantity<std::int64_t> parse_whole(const Units& dimension, std::string_view text) {
  if (const auto number = whole_in_unit(dimension, text)) return {*number, ""};
  const ParsedQuantity<double> found = parse(dimension, text);
  if (!found.value) return {std::nullopt, found.error};
  if (*found.value > 9e18) return {std::nullopt, wrong(dimension, text, ", which is too large")};
  return {std::llround(*found.value), ""};
}

const Units& units_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::Memory:
      return kBytes;
    case Dimension::Bandwidth:
      return kRate;
    case Dimension::Work:
      return kFlops;
    case Dimension::Speed:
      return kFlopRate;
    case Dimension::Time:
      return kTime;
    case Dimension::Length:
      return kLength;
  }
  return kBytes;
}

}  // namespace

std::string pattern_of(Dimension dimension) {
  std::string names;
  for (const Unit& unit : units_of(dimension).units)
    names += (names.empty() ? "" : "|") + std::string(unit.name);
  return "^((0|[1-9][0-9]*)([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)? *(" + names + ")$";
}

ParsedQuantity<Bytes> parse_bytes(std::string_view text) {
  const auto found = parse_whole(kBytes, text);
  if (!found.value) return {std::nullopt, found.error};
  return {Bytes{*found.value}, ""};
}

ParsedQuantity<BytesPerSecond> parse_bytes_per_second(std::string_view text) {
  const auto found = parse(kRate, text);
  if (!found.value) return {std::nullopt, found.error};
  return {BytesPerSecond{*found.value}, ""};
}

ParsedQuantity<Flops> parse_flops(std::string_view text) {
  const auto found = parse(kFlops, text);
  if (!found.value) return {std::nullopt, found.error};
  return {Flops{*found.value}, ""};
}

ParsedQuantity<FlopsPerSecond> parse_flops_per_second(std::string_view text) {
  const auto found = parse(kFlopRate, text);
  if (!found.value) return {std::nullopt, found.error};
  return {FlopsPerSecond{*found.value}, ""};
}

ParsedQuantity<Nanoseconds> parse_duration(std::string_view text) {
  const auto found = parse_whole(kTime, text);
  if (!found.value) return {std::nullopt, found.error};
  return {Nanoseconds{*found.value}, ""};
}

ParsedQuantity<double> parse_length(std::string_view text) { return parse(kLength, text); }

std::optional<double> parse_number(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  std::string_view rest = text.substr(negative ? 1 : 0);
  const std::optional<double> number = take_number(rest);
  if (!number || !rest.empty()) return std::nullopt;
  return negative ? -*number : *number;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (has_leading_zero(text.substr(text.starts_with('-') ? 1 : 0))) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace pfeife
