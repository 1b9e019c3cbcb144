// What a run lost against its plan, for a terminal.
#pragma once

#include <string>

#include "experiments/measure/compared.h"

namespace pfeife {

/// One sentence: how much longer the run took than was predicted, and to what most of it went.
std::string why_slower(const Comparison& comparison);

/// The sentence; the losses of each rank, which add up to the difference; where the time of each
/// rank went, beside the prediction; the table of errors that `measure` gives; how well the clocks
/// are known. ASCII.
std::string comparison_text(const Comparison& comparison, std::size_t width = 80);

}  // namespace pfeife
