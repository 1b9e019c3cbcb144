#include "planner/ir/schedule/slice_costs.h"

#include <cmath>

#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/microbatch_costs.h"

namespace pfeife {
namespace {

/// Work up to a share `end` of the sequence, of all.
double work_until(double end, double linear) { return linear * end + (1 - linear) * end * end; }

/// One slice of a stage: what grows with time, and what with length.
class Portion {
 public:
  Portion(double begin, double end, double linear)
      : begin_(begin),
        end_(end),
        work_begin_(work_until(begin, linear)),
        work_end_(work_until(end, linear)) {}

  Bytes bytes(Bytes whole) const { return Bytes{part(whole.value, begin_, end_)}; }
  StageCost of(const StageCost& whole) const {
    const auto time = [](double begin, double end) {
      return [=](Nanoseconds of_whole) { return Nanoseconds{part(of_whole.count(), begin, end)}; };
    };
    return scaled_stage(whole, {.time = time(work_begin_, work_end_),
                                .copy = time(begin_, end_),
                                .bytes = [this](Bytes of_whole) { return bytes(of_whole); }});
  }

 private:
  /// Differences of rounded sums, so that the slices add up.
  static std::int64_t part(std::int64_t whole, double begin, double end) {
    const auto until = [&](double share) {
      return std::llround(static_cast<double>(whole) * share);
    };
    return until(end) - until(begin);
  }

  double begin_, end_, work_begin_, work_end_;
};

}  // namespace

std::vector<double> slice_ends(std::size_t slices, SliceLengths lengths, double linear) {
  std::vector<double> ends;
  for (std::size_t k = 1; k < slices; ++k) {
    const double share = static_cast<double>(k) / static_cast<double>(slices);
    const double square = 1 - linear;  // square e^2 + linear e = share
    const double root = std::sqrt(linear * linear + 4 * square * share);
    ends.push_back(lengths == SliceLengths::Equal ? share : 2 * share / (linear + root));
  }
  ends.push_back(1);
  return ends;
}

StageCosts with_slices(StageCosts whole, std::span<const double> ends,
                       std::span<const double> linear) {
  PFEIFE_CHECK(linear.size() == 1 || linear.size() == whole.stages.size(), linear.size());
  double begin = 0;
  whole.slices.clear();
  for (const double end : ends) {
    StageCosts::Slice slice{{}, whole.pairs, whole.values, {}};
    for (std::size_t s = 0; s < whole.stages.size(); ++s)
      slice.stages.push_back(
          Portion(begin, end, linear[linear.size() == 1 ? 0 : s]).of(whole.stages[s]));
    const Portion length(begin, end, 1);
    scale_messages([&](Bytes of_whole) { return length.bytes(of_whole); }, slice);
    slice.key_gradients.assign(whole.stages.size(), Bytes{0});
    whole.slices.push_back(std::move(slice));
    begin = end;
  }
  return whole;
}

}  // namespace pfeife
