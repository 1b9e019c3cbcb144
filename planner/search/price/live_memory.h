// What a schedule keeps in flight, and from it a lower bound of every rank's peak memory.
//
// Transfers' buffers, values on their way and gradients come on top of it, so it never decides that
// a plan fits (planner/cost/estimate/memory.h does), only that it cannot.
#pragma once

#include <span>

#include "planner/search/price/cut_model.h"

namespace pfeife {

/// One moment of a rank: microbatches in flight of each of its stages, and what runs.
struct LiveMoment {
  std::vector<double> saved;         ///< [local stage] between F and B or I
  std::vector<double> weight_saved;  ///< [local stage] between I and W
  std::int32_t running = -1;         ///< local stage
  Op op = Op::Forward;               ///< its F, B, I or W
  std::uint32_t action = 0;          ///< what it does: number in the rank's row
  bool restores = false;             ///< Stages::Either: B or I, when a recomputed stage has all
  friend bool operator==(const LiveMoment&, const LiveMoment&) = default;
};

class LiveMemory {
 public:
  /// Kept: nothing is recomputed. Recomputed: whatever stages are, it is no less than this.
  /// Either: asked with peak(..., recompute). Blocks: no less than this, whatever layers are
  /// recomputed.
  enum class Stages { Kept, Recomputed, Either, Blocks };
  LiveMemory(const Schedule& compute_only, const Placement& placement, Stages which = Stages::Kept);

  std::size_t ranks() const { return stages_.size(); }
  const std::vector<std::size_t>& stages(std::size_t rank) const { return stages_[rank]; }
  /// Moments of which none holds at most as much as another.
  const std::vector<LiveMoment>& moments(std::size_t rank) const { return moments_[rank]; }

  /// Numbers of microbatches in flight that peak() of all ranks together looks at.
  std::size_t numbers() const;

  /// Bytes that local stage `at` of `moment` holds if it covers [from, to): fixed included.
  static double held(const CutModel& model, const LiveMoment& moment, std::size_t at,
                     std::int32_t from, std::int32_t to);
  /// Bytes that `rank` holds at `moment`: a lower bound.
  double held(const CutModel& model, const LiveMoment& moment, const Cuts& cuts,
              std::size_t rank) const;
  /// Lower bound of the peak of `rank`.
  double peak(const CutModel& model, const Cuts& cuts, std::size_t rank) const;
  /// The same if the stages of `recompute` ([stage]) are recomputed; of Stages::Either only.
  double peak(const CutModel& model, const Cuts& cuts, std::size_t rank,
              const std::vector<bool>& recompute) const;

 private:
  /// Moments of a rank at which the same runs: what they keep in flight lies side by side.
  struct Running {
    std::size_t at = 0;  // local stage
    Op op = Op::Forward;
    std::vector<double> kept;  // [moment][local stage][saved, weight-saved]
  };
  double highest(const CutModel& model, const Cuts& cuts, std::size_t rank,
                 std::span<double> held) const;

  std::vector<std::vector<std::size_t>> stages_;  // [rank]
  std::vector<std::vector<LiveMoment>> moments_;  // [rank]
  std::vector<std::vector<Running>> running_;     // [rank] the same moments
};

/// LiveMemory::peak of cuts that differ little from each other: what a rank has is known if its
/// stages were alike before.
class PeakMemo {
 public:
  /// Keeps no reference, but is asked about the same memory and model always.
  explicit PeakMemo(const LiveMemory& live);
  double peak(const LiveMemory& live, const CutModel& model, const Cuts& cuts, std::size_t rank);

 private:
  static constexpr std::size_t kKept = 16;  // of a rank
  struct Rank {
    std::vector<std::int32_t> positions;  // [kept][local stage][begin, end]; -1 = nothing known
    std::vector<double> peak;             // [kept]
  };
  std::vector<Rank> ranks_;
  std::vector<std::int32_t> key_;
};

}  // namespace pfeife
