// The axes of charts: how far they go, where their ticks are, and what stands at them.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace pfeife::plots {

/// What lies further from the median than reach() (axis.h) is an outlier: it stands in a strip of
/// its own behind a torn line. An axis begins at 0 if its values do not lie close together.
struct ValueAxis {
  double low = 0, high = 1;
  bool outliers_above = false, outliers_below = false;
  double least = 0, most = 1;  ///< of the values

  bool is_above(double value) const { return value > high; }
  bool is_below(double value) const { return value < low; }
  bool holds(double value) const { return value >= low && value <= high; }
};
ValueAxis value_axis(std::span<const double> values);
/// The axis as far as a line at `value`, if that is less than three fifths of its length away.
ValueAxis taking_in(ValueAxis axis, double value);

struct AxisTick {
  double value = 0;
  std::string text;
};
/// At most `most` (>= 2) round ticks within the axis, all with the same number of decimals.
std::vector<AxisTick> value_ticks(const ValueAxis& axis, std::size_t most);

/// Where the values of a swept key stand, as shares of the axis' width.
class KeyAxis {
 public:
  /// Numbers; the axis is logarithmic if they are above 0, go over a factor of 6, and each is at
  /// least a quarter more than the one before.
  static KeyAxis of_numbers(std::vector<double> values);
  /// Words, equally far from one another: x is the number of a word.
  static KeyAxis of_words(std::vector<std::string> words);

  double share(double x) const;
  /// One for every value, of more than two dozen linear ones at round numbers; who draws leaves out
  /// what has no room.
  const std::vector<AxisTick>& ticks() const { return ticks_; }

 private:
  std::vector<AxisTick> ticks_;
  double low_ = 0, high_ = 1;  ///< of position()
  bool logarithmic_ = false;

  double position(double x) const;
};

}  // namespace pfeife::plots
