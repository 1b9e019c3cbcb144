// This machine: its name, and what other programs take of its processors while something is
// measured.
#pragma once

#include <string>

namespace pfeife {

/// What decides how fast this machine is, as a line: part of the digest of what was measured on it.
std::string machine_line();

/// Counts from its construction, by the system's account of the processors that this process may
/// use, less what this process and its ended children used.
class OtherPrograms {
 public:
  OtherPrograms();
  /// Processors that others kept busy since, on average: 0.3 = three tenths of one.
  double processors() const;

 private:
  double began_, busy_, own_;  // seconds
};

/// Seconds that the processors [0, ...) were not idle, by the text of /proc/stat; `counts`: whether
/// a processor counts.
double busy_seconds(const std::string& stat, double ticks_per_second,
                    bool (*counts)(int processor));

/// From here on a measurement says more about the other programs than about the plan.
constexpr double kTooBusy = 0.2;

/// "other programs kept 1.8 of 2 processors busy": a warning from kTooBusy on, else "".
std::string busy_warning(double processors);

}  // namespace pfeife
