// Sixteen candidates of a Program side by side in SIMD lanes. The compiler makes one clone a CPU
// generation from plain loops, so the file is built without -march.
//
// In doubles, which hold whole nanoseconds exactly below 2^53 and, unlike 64-bit integers, have a
// maximum in AVX2; or in 32-bit integers, twice as many in a vector, where it is sure beforehand
// that none can be too large.
#include <algorithm>

#include "planner/cost/estimate/clones.h"
#include "planner/search/price/program.h"

namespace pfeife {
namespace {

constexpr std::size_t kLanes = Program::kLanes;
using Narrow = Program::Narrow;
template <class Number>
using Row = Program::Row<Number>;

inline double sum(double a, double b) { return a + b; }
/// Wraps around, so that clocks which start at the least number have all 2^32 values to go.
inline Narrow sum(Narrow a, Narrow b) {
  return static_cast<Narrow>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}

}  // namespace

template <class Number, class Step>
PFEIFE_CLONES_32 static void run_program(const Step* steps, std::size_t count,
                                         const Row<Number>* durations, Row<Number>* ranks,
                                         Row<Number>* slots) {
  for (std::size_t i = 0; i < count; ++i) {
    const Step& step = steps[i];
    auto& rank = ranks[step.rank].lane;
    const auto& in = slots[step.in].lane;
    const auto& duration = durations[step.duration].lane;
    const auto& latency = durations[step.latency].lane;
    auto& out = slots[step.out].lane;
    // All is read before anything is written: the compiler cannot know that `out` is none of these.
    Number end[kLanes], arrival[kLanes];
    for (std::size_t k = 0; k < kLanes; ++k)
      end[k] = sum(rank[k] > in[k] ? rank[k] : in[k], duration[k]);
    for (std::size_t k = 0; k < kLanes; ++k) arrival[k] = sum(end[k], latency[k]);
    for (std::size_t k = 0; k < kLanes; ++k) rank[k] = end[k];
    for (std::size_t k = 0; k < kLanes; ++k) out[k] = arrival[k];
  }
}

/// When all are done, after the optimizer steps of every rank.
template <class Number>
PFEIFE_CLONES_32 static void last_end(const Row<Number>* ranks, const Row<Number>* optimizer,
                                      const std::vector<std::vector<std::size_t>>& stages_of_rank,
                                      Row<Number>& last) {
  for (std::size_t r = 0; r < stages_of_rank.size(); ++r) {
    Row<Number> end = ranks[r];
    for (const std::size_t s : stages_of_rank[r])
      for (std::size_t k = 0; k < kLanes; ++k) end.lane[k] = sum(end.lane[k], optimizer[s].lane[k]);
    for (std::size_t k = 0; k < kLanes; ++k)
      last.lane[k] = last.lane[k] > end.lane[k] ? last.lane[k] : end.lane[k];
  }
}

template <class Number>
Program::Row<Number> Program::run_lanes(Lanes<Number>& lanes, Number start) const {
  Row<Number>* const ranks_begin = lanes.data() + durations();
  for (std::size_t i = durations(); i < lane_rows(); ++i) lanes[i].lane.fill(start);
  run_program(steps_.data(), steps_.size(), lanes.data(), ranks_begin, ranks_begin + ranks());
  Row<Number> last;
  last.lane.fill(start);
  last_end(ranks_begin, lanes.data() + work(Work::Optimizer, 0), stages_of_rank_, last);
  return last;
}

void Program::makespans(Lanes<double>& lanes, double* out) const {
  std::ranges::copy(run_lanes(lanes, 0.0).lane, out);
}

/// sums += times * the largest of some rows; much more if that may be larger than it says.
PFEIFE_CLONES_32 static void add_largest(const Row<Narrow>* rows, std::size_t count, double times,
                                         double* sums) {
  Narrow most[kLanes] = {};
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < kLanes; ++k)
      most[k] = most[k] > rows[i].lane[k] ? most[k] : rows[i].lane[k];
  for (std::size_t k = 0; k < kLanes; ++k)
    sums[k] += times * (most[k] == Program::kNarrowMost ? 1e18 : most[k]);
}

PFEIFE_CLONES_32 static bool any_negative(const Row<Narrow>* rows, std::size_t count) {
  Narrow bits[kLanes] = {}, all = 0;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < kLanes; ++k) bits[k] |= rows[i].lane[k];
  for (const Narrow lane_bits : bits) all |= lane_bits;
  return all < 0;
}

bool Program::makespans(Lanes<Narrow>& lanes, double* out) const {
  const Row<Narrow>* const latencies = lanes.data() + forward_latency(0);
  double longest[kLanes] = {};  // no path is longer
  for (std::size_t w = 0; w < kWorks; ++w)
    add_largest(&lanes[w * stages_], stages_, most_works_[w], longest);
  add_largest(latencies, 2 * stages_, most_transfers_, longest);
  // What waits for a transfer that does not exist must be below all clocks: half of the numbers.
  const Narrow start = any_negative(latencies, 2 * stages_) ? 0 : kNarrowNever;
  const double limit = static_cast<double>(kNarrowMost) - start;
  if (std::ranges::any_of(longest, [&](double l) { return l > limit; })) return false;
  const Row<Narrow> last = run_lanes(lanes, start);
  for (std::size_t k = 0; k < kLanes; ++k) out[k] = static_cast<double>(last.lane[k]) - start;
  return true;
}

}  // namespace pfeife
