#include "experiments/studies/published_runs/study.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/run_main.h"

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

int run_study(
    const char* name, int argc, char** argv,
    const std::function<void(const std::filesystem::path&, const std::filesystem::path&)>& study) {
  return run_main(name, [&] {
    if (argc != 3) {
      std::fprintf(stderr, "usage: %s REPOSITORY OUT\n", name);
      return 2;
    }
    const std::filesystem::path root = argv[1], out = argv[2];
    std::filesystem::create_directories(out);
    study(root, out);
    return 0;
  });
}

std::vector<Source> sources_of(const std::filesystem::path& root) {
  return read_sources(root / "experiments/studies/published_runs/data", root / "configs");
}

std::string gib(Bytes bytes, int decimals) {
  return fixed(static_cast<double>(bytes.value) / static_cast<double>(kGiB.value), decimals);
}

}  // namespace pfeife::published
