#include "planner/ir/model/microbatch_scale.h"

#include <algorithm>
#include <map>

#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/error.h"

namespace pfeife {

std::vector<MicrobatchScale> scales_of_documents(const DocumentLengths& documents,
                                                 std::int64_t tokens, std::int64_t samples) {
  PFEIFE_CHECK(tokens > 0 && samples > 0, tokens, " tokens, ", samples, " samples");
  const auto sequence = static_cast<double>(tokens);
  const double all = sequence * static_cast<double>(samples);
  std::vector<MicrobatchScale> scales;
  for (const std::vector<std::int64_t>& microbatch : documents) {
    double sum = 0, squares = 0;
    for (const std::int64_t length : microbatch) {
      const auto exact = static_cast<double>(length);
      sum += exact, squares += exact * exact;
    }
    scales.push_back({.linear = sum / all, .attention = squares / (all * sequence)});
  }
  return scales;
}

std::vector<MicrobatchScale> without_equal_ones(std::vector<MicrobatchScale> scales) {
  if (std::ranges::all_of(scales, [](const MicrobatchScale& s) { return s == MicrobatchScale{}; }))
    scales.clear();
  return scales;
}

std::vector<std::uint32_t> kinds_of(const std::vector<MicrobatchScale>& scales) {
  std::map<MicrobatchScale, std::uint32_t> number;
  std::vector<std::uint32_t> kinds;
  for (const MicrobatchScale& scale : scales)
    kinds.push_back(
        number.try_emplace(scale, static_cast<std::uint32_t>(number.size())).first->second);
  return kinds;
}

std::string to_string(const MicrobatchScale& scale) {
  if (scale.linear == scale.attention) return shortest(scale.linear);
  return "[" + shortest(scale.linear) + ", " + shortest(scale.attention) + "]";
}

}  // namespace pfeife
