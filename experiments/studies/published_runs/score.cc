#include "experiments/studies/published_runs/score.h"

#include <algorithm>
#include <cmath>

namespace pfeife::published {

Score score(std::span<const Pair> pairs) {
  Score result{.runs = pairs.size()};
  std::vector<double> errors;
  for (const Pair& pair : pairs) {
    errors.push_back(std::abs(pair.error()));
    result.mean += errors.back(), result.bias += pair.error();
  }
  const auto count = static_cast<double>(pairs.size());
  result.mean /= count, result.bias /= count;
  std::ranges::sort(errors);
  result.largest = errors.back();
  result.median = (errors[(errors.size() - 1) / 2] + errors[errors.size() / 2]) / 2;
  double order = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const double both =
          (pairs[i].predicted - pairs[j].predicted) * (pairs[i].measured - pairs[j].measured);
      order += both > 0 ? 1 : both < 0 ? -1 : 0;
    }
  if (pairs.size() > 1) result.tau = order / (count * (count - 1) / 2);
  return result;
}

double calibration(std::span<const Pair> pairs) {
  std::vector<double> factors;
  for (const Pair& pair : pairs) factors.push_back(pair.measured / pair.predicted);
  std::ranges::sort(factors);
  const std::size_t middle = factors.size() / 2;
  return factors.size() % 2 == 1 ? factors[middle] : (factors[middle - 1] + factors[middle]) / 2;
}

}  // namespace pfeife::published
