// One schedule of the search and everything that a candidate for its cuts is asked: its step time,
// its memory, its longest path.
#pragma once

#include <optional>
#include <span>

#include "planner/search/price/candidate_parts.h"
#include "planner/search/price/recompute_policy.h"
#include "planner/search/problem.h"

namespace pfeife {

class Candidates {
 public:
  /// `spec` must be a valid point with no more stages than the model has segments. Keeps
  /// references to `model` and `problem`.
  Candidates(const CutModel& model, const Problem& problem, const ScheduleSpec& spec);
  /// The same with a compute-only order that does not follow from `spec`.
  Candidates(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
             Schedule compute_only);

  const CutModel& model() const { return parts_.model; }
  const ScheduleSpec& spec() const { return parts_.judge.spec(); }
  const Placement& placement() const { return parts_.judge.placement(); }
  /// Its compute-only order; made anew where it is large.
  Schedule schedule() const { return parts_.judge.schedule(); }
  const Program& program() const { return parts_.times.program(); }
  const CutCosts& costs() const { return parts_.times.costs(); }
  const LiveMemory& live() const { return parts_.memory.live(); }
  const std::vector<Bytes>& memory_limit() const { return parts_.problem.memory_limit; }
  std::size_t stages() const { return parts_.stages(); }

  /// Step time (ns), exact; of Recompute::Choose and Blocks, and of Full except the last, without
  /// any recomputation.
  double time(const Cuts& cuts) { return parts_.times.time(cuts); }
  /// The same for many; out[i] belongs to cuts[i]. Times of `enough` or more may be too small: only
  /// that they are not below it is sure.
  void times(std::span<const Cuts> cuts, std::vector<double>& out, double enough) {
    parts_.times.times(cuts, out, enough);
  }
  /// The same at once, to search by: where exact[i] is 0, time(cuts[i]) may be more than out[i],
  /// never less. Of large schedules all are exact, but where a skip may bind they may be too large,
  /// or infinite.
  void search_times(std::span<const Cuts> cuts, std::vector<double>& out,
                    std::vector<char>& exact) {
    parts_.times.search_times(cuts, out, exact);
  }
  double search_time(const Cuts& cuts) { return parts_.times.search_time(cuts); }
  bool is_large() const { return parts_.times.is_large(); }
  /// Most of the work on a proof may be theirs.
  bool is_slow() const;
  /// The path that makes time(cuts) as long as it is (reductions and skips left out).
  PathCounts<std::int32_t> critical_path(const Cuts& cuts) {
    return parts_.times.critical_path(cuts);
  }
  /// The turns of the path that critical_path has just given.
  CertifiedPath last_turns() const { return parts_.times.last_turns(); }
  /// Objective in ns: step time, recomputation included, if the cuts probably fit; else kTooFull
  /// plus the excess bytes. `time` = time(cuts), or less.
  static constexpr double kTooFull = CandidateParts::kTooFull;
  double weigh(const Cuts& cuts, double time);
  /// Bytes by which ranks are too full, all together, by LiveMemory and what the exact rule was
  /// found to add; <= 0 = probably fits: what the fullest has left.
  double excess(const Cuts& cuts) { return parts_.memory.excess(cuts); }
  /// Surely too full: a lower bound of some rank's peak is above its limit.
  bool surely_too_full(const Cuts& cuts) const { return parts_.memory.surely_too_full(cuts); }

  /// Judges cuts by the exact memory rule and keeps them if they are feasible and faster than the
  /// best so far (ties: smaller cuts). True if they were kept. Remembers what it refused.
  bool offer(const Cuts& cuts, double time);
  const std::optional<Priced>& best() const { return parts_.found.best(); }
  /// best() and what is nearly as fast with less memory, the fastest first.
  const std::vector<Priced>& front() const { return parts_.found.front(); }
  const Cuts& best_cuts() const { return parts_.found.best_cuts(); }
  /// Time of the best feasible cuts; infinite if there are none yet.
  double best_time() const { return parts_.found.best_time(); }
  /// The refused cuts that lack least.
  const std::optional<Infeasible>& closest() const { return parts_.found.closest(); }
  /// Recompute::Choose and Blocks: no choice for cuts that were offered is faster than this, or
  /// than best_time(); infinite if what was chosen is known to be best.
  double unsure() const { return parts_.found.unsure(); }

  /// A copy works for another thread. Takes what it has found since it was made, or since the last
  /// follow().
  void join(Candidates& copy);
  /// A copy takes what is known of the same schedule now.
  void follow(const Candidates& original);
  std::size_t evaluated() const { return parts_.times.counts().priced; }
  /// About how many ns of one core all calls together have taken: counted, not measured.
  double work() const;
  /// The same of cuts that were judged in full and refused for what is reserved alone: bounds know
  /// what is allocated and leave them all to be judged.
  double work_on_reserved() const;

 private:
  Candidates(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
             const Placement& placement, Schedule compute_only);
  double judging() const;  ///< ns for cuts that are judged in full
  /// Cuts judged in full, or priced with their skips: both take much longer than all else.
  std::size_t judged() const {
    return parts_.judge.counts().judged + parts_.times.counts().with_skips;
  }

  RecomputePolicy policy_;
  CandidateParts parts_;
};

}  // namespace pfeife
