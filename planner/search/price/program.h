// A schedule compiled for the search: the order of its compute actions, fixed once, with messages
// between neighbouring stages in a few reused slots, so that a new candidate for the cuts only
// changes durations.
//
// Transfers are latencies added when the producer stores its value. The scalar form knows all of a
// candidate: skip transfers, between stages that are not neighbours, hold up the rank that receives
// them, and gradient reductions come last. The lanes know neither.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "planner/ir/result/certificate.h"
#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// Kinds of work of a stage that a path counts.
enum class Work : std::uint8_t { Forward, BackwardInput, BackwardWeight, Optimizer };
inline constexpr std::size_t kWorks = 4;
/// What a stage holds: for the step; per microbatch between F and B or I; per microbatch from I to
/// W.
enum class Hold : std::uint8_t { Fixed, Saved, WeightSaved };
inline constexpr std::size_t kHolds = 3;
/// F, B, I, W: the first of Op.
inline constexpr std::size_t kPasses = 4;

/// A longest path, or a weighted sum of several, as counts: its length is
/// sum count[work][stage] * duration + sum forward[i] * latency of boundary i + .... `held` counts
/// bytes instead, where such sums also speak of memory.
template <class Number>
struct PathCounts {
  std::array<std::vector<Number>, kWorks> work;  ///< [stage]
  std::array<std::vector<Number>, kHolds> held;  ///< [stage]
  std::vector<Number> forward, backward;  ///< [boundary i]: transfers stage i-1 -> i, i -> i-1
  /// [stage] temporaries of its F, B, I, W; empty = of none.
  std::vector<std::array<Number, kPasses>> temporary;

  explicit PathCounts(std::size_t stages = 0) : forward(stages), backward(stages) {
    for (auto& counts : work) counts.assign(stages, Number{});
    for (auto& counts : held) counts.assign(stages, Number{});
  }
  friend bool operator==(const PathCounts&, const PathCounts&) = default;
};

/// Gradient reductions of one candidate: which stages meet, and for how long (ns); and those of
/// replicas.
struct ReductionTail {
  struct Group {
    std::vector<std::size_t> stages;
    double time = 0;
  };
  std::vector<Group> groups;
  std::vector<double> extra_optimizer;  ///< [stage] ns; copies of shared parameters
  struct Replicas {                     ///< StageCosts::ReplicaReduction
    double beside = 0, behind = 0;
  };
  std::vector<Replicas> replicas;  ///< [stage]; empty = none
  /// What follows all gradients and reductions of all ranks (ns): a norm and optimizer steps, which
  /// are then no part of the durations.
  std::optional<double> behind_all;
};

/// What passes over the stages between `from` and `to`, a message of every microbatch each way.
struct SkipTransfer {
  std::size_t from, to;
  double forward, backward;  ///< latencies (ns); kNever where nothing is sent
};

class Program {
 public:
  static constexpr std::size_t kLanes = 16;
  /// Latency of a transfer that does not exist: nothing waits for it.
  static constexpr double kNever = -1e18;
  /// Durations of makespans() in 32 bits: the largest stands for all that are larger as well, the
  /// least for kNever.
  using Narrow = std::int32_t;
  static Narrow narrow(double duration) {
    constexpr double least = std::numeric_limits<Narrow>::min(), most = kNarrowMost;
    return static_cast<Narrow>(std::clamp(duration, least, most));
  }
  static constexpr Narrow kNarrowMost = std::numeric_limits<Narrow>::max();
  static constexpr Narrow kNarrowNever = std::numeric_limits<Narrow>::min();

  /// `compute_only` must be free of deadlock on a chain of stages. `last_apart`: B and I of the
  /// microbatch that a stage runs forward last take a time of their own, last_input().
  Program(const Schedule& compute_only, const Placement& placement, bool last_apart = false);

  /// Bytes that the program of so many actions holds, nearly.
  static Bytes memory(std::size_t actions) {
    return Bytes{static_cast<std::int64_t>(actions * (sizeof(Step) + sizeof(Origin)))};
  }

  std::size_t stages() const { return stages_; }
  std::size_t ranks() const { return stages_of_rank_.size(); }
  std::size_t compute_nodes() const { return steps_.size() - joins_; }

  // Indices into a vector of durations; values in ns, whole numbers below 2^53 in total.
  std::size_t durations() const { return sums_begin_ + sums_.size(); }
  std::size_t work(Work w, std::size_t stage) const {
    return static_cast<std::size_t>(w) * stages_ + stage;
  }
  /// BackwardInput of the microbatch that the stage runs forward last.
  std::size_t last_input(std::size_t stage) const {
    return last_apart_ ? 6 * stages_ + 1 + stage : work(Work::BackwardInput, stage);
  }
  std::size_t forward_latency(std::size_t boundary) const { return 4 * stages_ + boundary; }
  std::size_t backward_latency(std::size_t boundary) const { return 5 * stages_ + boundary; }
  /// Fills what follows from the work of stages: full backwards and overlap cells.
  /// `stride` = distance of neighbouring durations, all `stride` lanes are filled.
  template <class Number>
  void complete(Number* durations, std::size_t stride) const;

  /// Longest path including optimizer steps, and what the candidate has of reductions and skips.
  /// `ends` is scratch.
  double makespan(std::span<const double> durations, std::vector<double>& ends,
                  const ReductionTail* tail = nullptr,
                  std::span<const SkipTransfer> skips = {}) const;
  /// What one duration is for sixteen candidates.
  template <class Number>
  struct alignas(64) Row {
    std::array<Number, kLanes> lane;
  };
  /// Durations of sixteen candidates, [index], and then memory for makespans(): lane_rows() in all.
  template <class Number>
  using Lanes = std::vector<Row<Number>>;
  std::size_t lane_rows() const { return durations() + ranks() + slots_; }
  /// The same as makespan() for sixteen candidates, without reductions.
  void makespans(Lanes<double>& lanes, double* out) const;
  /// The same, much faster; of durations that are not negative, but for kNarrowNever. False, and
  /// `out` left alone, where some sum might be 2^32 ns or more (2^31 if a transfer does not exist).
  bool makespans(Lanes<Narrow>& lanes, double* out) const;
  /// The longest path that `makespan` has just found in `ends` (reductions left out), as counts.
  PathCounts<std::int32_t> critical_path(std::span<const double> durations,
                                         const std::vector<double>& ends) const;
  /// The same path as its rank and turns.
  CertifiedPath critical_turns(std::span<const double> durations,
                               const std::vector<double>& ends) const;
  /// All that `rank` does, as a path.
  PathCounts<std::int32_t> rank_path(std::size_t rank) const;
  CertifiedPath rank_turns(std::size_t rank) const;

 private:
  struct Step {
    std::uint32_t rank, duration, in, latency, out;
  };
  struct Origin {
    std::uint32_t rank_before;  ///< step before on the rank, or kNone
    std::uint32_t producer;     ///< step that sends what this one waits for, or kNone
    std::uint32_t cell;         ///< of the schedule; several steps may share one
  };
  friend class ProgramBuilder;

  /// Walks from the last step of a rank to the first of all: at a step, `over` says whether to go
  /// over the transfer that it waits for.
  template <class Over, class Visit>
  void walk(std::size_t rank, const Over& over, const Visit& visit) const;
  template <class Over>
  PathCounts<std::int32_t> counts(std::size_t rank, const Over& over) const;
  template <class Over>
  CertifiedPath turns(std::size_t rank, const Over& over) const;
  std::size_t last_rank(std::span<const double> durations, const std::vector<double>& ends) const;
  bool waits(std::uint32_t step, std::span<const double> durations,
             const std::vector<double>& ends) const;
  double rank_end(std::size_t rank, std::span<const double> durations,
                  const std::vector<double>& ends) const;
  double tail_end(std::span<const double> durations, const std::vector<double>& ends,
                  const ReductionTail& tail) const;
  double replicas_end(std::size_t rank, const std::vector<double>& ends,
                      const ReductionTail& tail) const;
  /// A step that waits for another one, besides what it reads.
  struct SkipWait {
    std::uint32_t step, source;
    double latency;
  };
  /// In the order of the steps.
  std::vector<SkipWait> skip_waits(std::span<const SkipTransfer> skips) const;
  void count_longest();
  template <class Number>
  Row<Number> run_lanes(Lanes<Number>& lanes, Number start) const;

  std::size_t stages_ = 0, slots_ = 2, joins_ = 0, sums_begin_ = 0;
  bool last_apart_ = false;
  std::vector<Step> steps_;
  std::vector<Origin> origins_;
  std::vector<std::vector<std::uint32_t>> sums_;          ///< derived durations: sums of base ones
  std::vector<std::vector<std::size_t>> stages_of_rank_;  ///< in the order of their last gradients
  std::vector<std::uint32_t> last_step_;                  ///< [rank]
  std::vector<std::uint32_t> last_gradient_;              ///< [stage] step of its last B or W
  /// [F; B or I][stage * microbatches + microbatch] the step that lasts as long as the action.
  std::array<std::vector<std::uint32_t>, 2> step_of_;
  std::vector<std::uint32_t> rank_of_stage_;
  std::array<double, kWorks> most_works_{};  ///< of each kind on one path, at most
  double most_transfers_ = 0;                ///< on one path, at most
};

}  // namespace pfeife
