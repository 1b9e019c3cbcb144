// What a calibration by traces found, for a terminal.
#pragma once

#include <string>

#include "experiments/measure/calibrated.h"

namespace pfeife {

/// The errors on the steps held out, before and after; the curves. ASCII.
std::string calibration_text(const Calibrated& calibrated, std::size_t width = 80);

}  // namespace pfeife
