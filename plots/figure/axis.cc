#include "plots/figure/axis.h"

#include <algorithm>
#include <cmath>

#include "plots/figure/svg.h"

namespace pfeife::plots {
namespace {

struct Unit {
  const char* name;
  std::int64_t size;
};
constexpr Unit kTimeUnits[] = {{"s", 1'000'000'000}, {"ms", 1'000'000}, {"µs", 1'000}, {"ns", 1}};
constexpr Unit kByteUnits[] = {
    {"TiB", std::int64_t{1} << 40}, {"GiB", kGiB.value}, {"MiB", kMiB.value}, {"KiB", kKiB.value}};

/// Four digits, and no more than three after the point.
std::string four_digits(double value) {
  const double size = value < 0 ? -value : value;
  return fixed(value, size < 9.9995 ? 3 : size < 99.995 ? 2 : size < 999.95 ? 1 : 0);
}

/// The same, with a fourth digit after the point of less than 1: what the axis' unit is too large
/// for.
std::string four_digits_of_axis(double value) {
  return value > -0.99995 && value < 0.99995 ? fixed(value, 4) : four_digits(value);
}

}  // namespace

TimeAxis time_axis(Nanoseconds longest, std::size_t most) {
  const std::int64_t end = std::max<std::int64_t>(1, longest.count());
  const auto gaps = static_cast<std::int64_t>(std::max<std::size_t>(2, most)) - 1;
  std::int64_t power = 1, step = 0;
  while (step == 0) {
    for (const std::int64_t digit : {1, 2, 5})
      if (step == 0 && end / (digit * power) <= gaps) step = digit * power;
    power *= 10;
  }
  TimeAxis axis;
  for (const Unit& unit : kTimeUnits)
    if (axis.unit.empty() && (end >= unit.size || unit.size == 1)) {
      axis.unit = unit.name;
      axis.unit_size = Nanoseconds{unit.size};
    }
  for (std::int64_t t = 0; t <= end; t += step) axis.ticks.emplace_back(t);
  return axis;
}

std::string exact(Nanoseconds time, const TimeAxis& axis) {
  const std::int64_t unit = axis.unit_size.count(), ns = time.count(), size = ns < 0 ? -ns : ns;
  std::string text = (ns < 0 ? "-" : "") + std::to_string(size / unit);
  std::string rest = std::to_string(unit + size % unit).substr(1);  // with leading zeros
  while (!rest.empty() && rest.back() == '0') rest.pop_back();
  return rest.empty() ? text : text + "." + rest;
}

std::string rounded(Nanoseconds time) {
  const std::int64_t size = time.count() < 0 ? -time.count() : time.count();
  for (const Unit& unit : kTimeUnits)
    if (size >= unit.size && unit.size > 1)
      return four_digits(static_cast<double>(time.count()) / static_cast<double>(unit.size)) + " " +
             unit.name;
  return std::to_string(time.count()) + " ns";
}

std::string rounded(Nanoseconds time, const TimeAxis& axis) {
  if (axis.unit_size == Nanoseconds{1}) return std::to_string(time.count()) + " ns";
  return four_digits_of_axis(static_cast<double>(time.count()) /
                             static_cast<double>(axis.unit_size.count())) +
         " " + axis.unit;
}

double tick_step(double range) {
  const double most = range / 4 * 1.000001, power = std::pow(10, std::floor(std::log10(most)));
  for (const double digit : {5.0, 2.0})
    if (digit * power <= most) return digit * power;
  return power;
}

int tick_decimals(double step) {
  return step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
}

std::vector<double> linear_ticks(double low, double high) {
  std::vector<double> ticks;
  if (!(high > low)) return {low};
  const double step = tick_step(high - low), last = high + step * 1e-6;
  for (double n = std::ceil(low / step - 1e-6); n * step <= last; ++n) ticks.push_back(n * step);
  return ticks;
}

std::vector<double> log_ticks(double low, double high) {
  const bool many = high / low > 10000;
  std::vector<double> ticks;
  for (double power = std::floor(std::log10(low)); std::pow(10, power) <= high; ++power)
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double tick = digit * std::pow(10, power);
      if (tick >= low && tick <= high && (digit == 1 || !many)) ticks.push_back(tick);
    }
  return ticks;
}

double reach(std::vector<double> distances, double least) {
  std::erase_if(distances, [](double distance) { return distance <= 0; });
  if (distances.empty()) return least;
  std::ranges::sort(distances);
  const double median = distances[(distances.size() - 1) / 2];
  return std::max(least, std::min(distances.back(), 4 * median));
}

std::string percent(double fraction) { return fixed(fraction * 100, 1) + " %"; }

std::string rounded(Bytes bytes, Bytes scale) {
  const std::int64_t size = scale.value < 0 ? -scale.value : scale.value;
  for (const Unit& unit : kByteUnits)
    if (size >= unit.size)
      return four_digits_of_axis(static_cast<double>(bytes.value) /
                                 static_cast<double>(unit.size)) +
             " " + unit.name;
  return std::to_string(bytes.value) + " B";
}

std::string rounded(Bytes bytes) { return rounded(bytes, bytes); }

}  // namespace pfeife::plots
