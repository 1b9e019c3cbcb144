// The layers as a search over cuts sees them: prefix sums at the legal cut positions, and what
// crosses each of them. Made once a problem, shared by all schedules.
//
// A *position* is an index into the legal boundaries: position 0 is before the first layer, the
// last is after the last layer, those between are the legal cuts. Stage s covers the positions
// [p[s], p[s+1]).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/cost/estimate/reference_memory.h"
#include "planner/cost/stages/summed_layers.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/step_norm.h"
#include "planner/search/price/program.h"

namespace pfeife {

/// Positions of the boundaries of all stages, S + 1 of them: 0 < p[1] < ... < p[S-1] < last.
using Cuts = std::vector<std::int32_t>;

/// What prefix sums at the positions say of [from, to), and of stage s.
inline double between(const std::vector<double>& sums, std::int32_t from, std::int32_t to) {
  return sums[static_cast<std::size_t>(to)] - sums[static_cast<std::size_t>(from)];
}
inline double of_stage(const std::vector<double>& sums, const Cuts& cuts, std::size_t s) {
  return between(sums, cuts[s], cuts[s + 1]);
}

class CutModel {
 public:
  /// `recompute`: every backward begins with its forward again. `norm`: what all optimizer steps
  /// wait for.
  CutModel(const Layers& layers, const Cluster& cluster, MemoryRule rule, bool recompute = false,
           StepNorm norm = StepNorm::None);

  std::int32_t last() const { return static_cast<std::int32_t>(layer_.size()) - 1; }
  Partition partition(const Cuts& cuts) const;
  /// nullopt if a cut of the partition is not legal.
  std::optional<Cuts> cuts(const Partition& partition) const;

  /// Prefix sums at the positions, ns; optimizer time of a shared parameter goes to its first user.
  const std::vector<double>& time(std::size_t kind, Work w) const {
    return time_[kind][static_cast<std::size_t>(w)];
  }
  /// The same side by side, [position][work]; empty if all of it is more than 2^30 ns.
  const std::vector<std::array<Program::Narrow, kWorks>>& narrow_times(std::size_t kind) const {
    return narrow_times_[kind];
  }
  /// Any reductions beside backwards, and exposed_reduction() of [from, to), ns.
  bool has_reductions() const { return !latest_.empty(); }
  double exposed_reduction(std::int32_t from, std::int32_t to) const;
  /// whole_reduction() of [from, to), ns.
  double whole_reduction(std::int32_t from, std::int32_t to) const {
    return reduced_[static_cast<std::size_t>(to)] - reduced_[static_cast<std::size_t>(from)];
  }
  /// Rows have F alone.
  bool forward_only() const { return layers_.mode == Mode::Forward; }
  StepNorm norm() const { return norm_; }
  /// Gradients of a rank: bytes, and parameters that have one.
  struct Gradients {
    Bytes bytes{0};
    std::int64_t parameters = 0;
  };
  /// The gradients of the parameters that one segment of [from, to) uses, where gradients are
  /// clipped.
  Gradients own_gradients(std::int32_t from, std::int32_t to) const;
  /// Bytes of the gradient of each of shared_parameters().
  const std::vector<Bytes>& shared_gradients() const { return shared_gradients_; }
  /// Forward and backward together: the load that bounds and branching speak of.
  const std::vector<double>& load(std::size_t kind) const { return load_[kind]; }
  std::size_t kinds() const { return load_.size(); }

  /// Lower bounds of what a stage holds, as prefix sums (bytes): for the whole step, per microbatch
  /// from F to B or I, and from I to W. A storage that several stages keep goes to the first.
  const std::vector<double>& held(Hold what) const { return held_[static_cast<std::size_t>(what)]; }
  /// Lower bound of StageCost::temporary of [from, to) in F, B, I or W, together with held():
  /// what lies above what the microbatch itself has saved or weight-saved. 0 if empty.
  double temporary(Op op, std::int32_t from, std::int32_t to) const;
  /// What temporary() counts from, where the stage ends: the sum of both never falls with `to`, and
  /// temporary() never rises with `from`.
  const std::vector<double>& settled(Op op) const { return temporary_[pass(op)].held; }
  /// No temporary and no settled() of any stage is larger, nor is their sum.
  double most_temporary(Op op) const { return temporary_[pass(op)].highest; }

  /// A value that crosses a position q: made in segment `producer` < q, read next in segment
  /// `next` >= q (segment j = layers between positions j and j + 1).
  struct Crossing {
    std::int32_t producer, next, value;
  };
  std::span<const Crossing> crossing(std::int32_t q) const {
    const auto at = static_cast<std::size_t>(q);
    return {crossing_.data() + begin_[at], crossing_.data() + begin_[at + 1]};
  }
  /// Smallest producer, largest next reader and largest last reader over crossing(q).
  struct Extent {
    std::int32_t first_producer, last_next, last_reader;
  };
  const Extent& extent(std::int32_t q) const { return extent_[static_cast<std::size_t>(q)]; }
  /// Every segment reads what the one before it has made and sends a gradient back: so do all
  /// stages, however the cuts lie.
  bool all_linked() const;
  /// Segments that read a value, sorted.
  const std::vector<std::int32_t>& readers(std::size_t value) const { return readers_[value]; }
  std::int32_t segment(LayerId layer) const { return segment_[layer.index()]; }

  /// Parameters with gradients that more than one segment uses: may need a reduction.
  const std::vector<std::vector<std::int32_t>>& shared_parameters() const { return shared_; }

  const Layers& layers() const { return layers_; }
  const SummedLayers& sums() const { return sums_; }
  const Cluster& cluster() const { return cluster_; }

 private:
  void sum_times(bool recompute);
  void copy_narrow_times();
  void sum_reductions();
  void sum_gradients();
  void sum_memory(MemoryRule rule);
  void sum_temporary(MemoryRule rule);
  void list_crossings();

  const Layers& layers_;
  SummedLayers sums_;
  const Cluster& cluster_;
  StepNorm norm_;
  std::vector<std::int32_t> layer_;                            // [position] layers before it
  std::vector<std::int32_t> segment_;                          // [layer]
  std::vector<std::array<std::vector<double>, kWorks>> time_;  // [kind]
  std::vector<std::vector<std::array<Program::Narrow, kWorks>>> narrow_times_;  // [kind]
  std::vector<std::vector<double>> load_;                                       // [kind]
  std::array<std::vector<double>, kHolds> held_;
  /// Reductions of a stage from `from` on end at latest_ - ahead_[from] behind its last backward.
  std::vector<std::vector<double>> latest_;  // [log2 of the width][segment]
  std::vector<double> ahead_, reduced_;      // [position]
  /// One pass: a layer's temporary above what layers up to it hold; a stage lets go of, or does
  /// not have yet, what its later layers hold.
  struct Temporary {
    std::vector<std::vector<double>> most;  // [log2 of the width][segment] temporary + held so far
    std::vector<double> held;               // [position]
    double highest = 0;                     // most_temporary
  };
  static constexpr std::size_t pass(Op op) { return static_cast<std::size_t>(op); }
  std::array<Temporary, kPasses> temporary_;  // [pass]
  std::vector<Crossing> crossing_;
  std::vector<std::size_t> begin_;
  std::vector<Extent> extent_;
  std::vector<std::vector<std::int32_t>> readers_;
  std::vector<std::vector<std::int32_t>> shared_;
  std::vector<Bytes> shared_gradients_;  // [shared parameter]
  std::vector<Gradients> gradients_;     // [position] of parameters that one segment uses
};

/// Prefix sums over the positions (ns): the works of each segment on the one of `kinds` of devices
/// that is fastest at them together.
std::vector<double> fastest_times(const CutModel& model, const std::vector<std::size_t>& kinds,
                                  const std::vector<Work>& works);

}  // namespace pfeife
