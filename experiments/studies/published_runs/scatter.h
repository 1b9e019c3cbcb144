// Predicted over measured, a colour a source.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/studies/published_runs/score.h"

namespace pfeife::published {

struct Series {
  std::string name;
  std::vector<Pair> pairs;  ///< seconds
};

/// An SVG with logarithmic axes and the line of no error.
std::string scatter(std::span<const Series> series);

}  // namespace pfeife::published
