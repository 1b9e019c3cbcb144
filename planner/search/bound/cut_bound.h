// The bound: weights on paths make the step time a sum over cuts, and the smallest such sum over
// all cuts is found exactly by dynamic programming.
//
// For every set of paths p with weights w_p >= 0, sum w_p = M, and every choice of cuts,
//   M T(cuts) >= sum_p w_p length_p(cuts) = constant + sum_i g_i(position of boundary i),
// because a path's length is a sum of prefix sums at the cuts and of latencies, and the latter are
// replaced by what is surely sent. Memory's temporaries depend on both ends of a stage, but never
// rise with its begin, so that few begins need be compared. Weights are whole numbers and all sums
// stay below 2^53, so that doubles are exact and the bound needs no tolerance. Stages that the
// present box, the ranges of positions or the memory limit exclude are left out of the minimum.
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "planner/search/bound/proof_record.h"
#include "planner/search/price/cut_costs.h"
#include "planner/search/price/live_memory.h"

namespace pfeife {

/// A part of the search space: bounds on every stage's load (ns on its own device kind) and on
/// every boundary's position, inclusive.
struct CutRegion {
  std::vector<double> low, high;          ///< [stage]
  std::vector<std::int32_t> first, last;  ///< [boundary], 0 and S fixed
};

class CutBound {
 public:
  CutBound(const CutModel& model, const CutCosts& costs, const LiveMemory& live,
           const std::vector<Bytes>& memory_limit, std::size_t stages);

  /// Everything that is legal and within the memory limits by LiveMemory.
  CutRegion everything() const;
  /// Makes `region` the one that the rest speaks of. False if it is surely empty.
  bool enter(const CutRegion& region);
  const CutRegion& region() const { return region_; }
  /// Forgets the moments at which `cuts`, good ones, leave a good part of the memory free: what
  /// memory excludes there is far from them, and to find it takes much longer than a minimum.
  void forget_idle_moments(const Cuts& cuts);
  /// The moments of a rank at which memory is looked at.
  const std::vector<std::reference_wrapper<const LiveMoment>>& moments(std::size_t rank) const {
    return moments_[rank];
  }
  /// Memory is looked at anywhere.
  bool limited() const;
  /// Notes the moments at which memory excludes stages; nullptr = not.
  void set_record(ProofRecord* record) { record_ = record; }
  /// About how many ns all calls together have taken: counted, not measured.
  double work() const { return work_; }

  /// From now on only cuts count whose neighbouring stages are linked: each sends the next one
  /// values and gets gradients back.
  void linked_only() { linked_only_ = true; }
  /// All cuts of the region are linked in this way.
  bool always_linked() const;
  /// Latencies surely paid in the present region; called where it has become much smaller.
  void refresh_latencies();
  /// From now until they are refreshed, latencies of transfers that may not exist are 0.
  void count_missing_as_nothing();
  /// The transfer exists for all cuts of the region at the last refresh.
  bool always_forward(std::size_t boundary) const { return always_sent_[0][boundary]; }
  bool always_backward(std::size_t boundary) const { return always_sent_[1][boundary]; }
  /// For all cuts of the region, of each boundary: the stages on both sides of it wait for one
  /// another (CutCosts::common_waits), or are on different ranks where only linked cuts count.
  std::vector<CutCosts::Waits> common_waits() const;
  /// Sure latencies of the boundary at a position of the region of the last refresh.
  CutCosts::Latency latency_at(std::size_t boundary, std::int32_t q) const {
    const auto at = static_cast<std::size_t>(q);
    return {latency_[0][boundary][at], latency_[1][boundary][at]};
  }
  /// Smallest sure latency over the region's positions of the boundary.
  CutCosts::Latency least_latency(std::size_t boundary) const;
  /// Largest one, 0 at least.
  CutCosts::Latency most_latency(std::size_t boundary) const;

  /// The minimum over the region, in ns times the sum of weights, and cuts that attain it. nullopt:
  /// the region is empty. `constant` = what the paths cost besides work and latencies.
  struct Minimum {
    double scaled = 0;
    Cuts cuts;
  };
  std::optional<Minimum> minimum(const PathCounts<double>& weights, double constant);
  /// After minimum() with the same weights: positions that only cuts above `scaled` use leave the
  /// region; loads follow. False if nothing is left. Returns true even if nothing changed.
  bool filter(double scaled);
  /// Keeps what filter() removes inside the ranges for all regions to come (at the root only).
  void keep_filtered(bool keep) { keep_ = keep; }
  /// Allowed positions of a boundary within the region.
  std::vector<std::int32_t> positions(std::size_t boundary) const;

 private:
  struct Window {  // of a stage, by end position: it may begin in [from[q], to[q]]
    std::vector<std::int32_t> from, to;
    std::vector<std::int32_t> load_from;  // by its load alone
    double low = -1, high = -1;           // of the load
    std::int32_t first = 0, last = -1;    // ends that this was made for
  };
  std::size_t count() const { return static_cast<std::size_t>(model_.last()) + 1; }
  template <class Visit>
  void each_position(std::size_t boundary, const Visit& visit) const;
  void make_window(std::size_t stage);
  bool limit_memory();
  bool limit_memory(std::size_t rank);
  void sum_held(const LiveMoment& moment, std::size_t at, std::size_t stage);
  double least_held(const LiveMoment& moment, std::size_t at, std::size_t stage) const;
  bool begin_later(const LiveMoment& moment, std::size_t at, std::size_t stage, double most);
  std::array<double, kHolds> most_held(std::size_t stage) const;
  void tighten_loads();
  void price_boundary(std::size_t boundary, const PathCounts<double>& weights);
  void price_temporaries(const PathCounts<double>& weights);
  double temporary(std::size_t stage, std::int32_t from, std::int32_t to) const;
  double settled(std::size_t stage, std::int32_t to) const;
  void backward_pass();

  const CutModel& model_;
  const CutCosts& costs_;
  const LiveMemory& live_;
  std::vector<double> limit_;  // [rank]
  std::size_t stages_;
  CutRegion region_;
  std::vector<std::vector<std::reference_wrapper<const LiveMoment>>> moments_;  // [rank]
  std::vector<Window> windows_;                                                 // [stage]
  std::vector<std::vector<double>> latency_[2];          // [way][boundary][q]
  std::vector<bool> always_sent_[2];                     // [way][boundary]
  std::vector<std::vector<char>> allowed_;               // [boundary][q]
  std::vector<std::vector<double>> cost_, best_, rest_;  // [boundary][q]
  std::vector<std::vector<std::int32_t>> choice_;        // [boundary][q] position before
  std::vector<std::vector<double>> held_;                // [local stage][q] of the last sum_held()
  struct Temporary {
    Op op;
    double weight;
  };
  std::vector<std::vector<Temporary>> temporaries_;  // [stage] of the last minimum()
  double constant_ = 0;                              // of the last minimum()
  bool keep_ = false, linked_only_ = false;
  ProofRecord* record_ = nullptr;
  mutable double work_ = 0;
};

}  // namespace pfeife
