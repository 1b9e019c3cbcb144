// One schedule of the search and everything that a candidate for its cuts is asked: its step time,
// its memory, its longest path.
#pragma once

#include <optional>
#include <set>

#include "planner/search/price/block_choice.h"
#include "planner/search/price/cut_costs.h"
#include "planner/search/price/known_stages.h"
#include "planner/search/price/live_memory.h"
#include "planner/search/price/price.h"
#include "planner/search/price/recomputation.h"
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

  const CutModel& model() const { return model_; }
  const ScheduleSpec& spec() const { return spec_; }
  const Placement& placement() const { return placement_; }
  /// Its compute-only order; made anew where it is large.
  Schedule schedule() const;
  const Program& program() const { return program_; }
  const CutCosts& costs() const { return costs_; }
  const LiveMemory& live() const { return live_; }
  const std::vector<Bytes>& memory_limit() const { return problem_.memory_limit; }
  std::size_t stages() const { return placement_.stages(); }

  /// Step time (ns), exact; of Recompute::Choose and Blocks, and of Full except the last, without
  /// any recomputation.
  double time(const Cuts& cuts);
  /// The same for many; out[i] belongs to cuts[i]. Times of `enough` or more may be too small: only
  /// that they are not below it is sure.
  void times(std::span<const Cuts> cuts, std::vector<double>& out, double enough);
  /// The same at once, to search by: where exact[i] is 0, time(cuts[i]) may be more than out[i],
  /// never less. Of large schedules all are exact, but where a skip may bind they may be too large,
  /// or infinite.
  void search_times(std::span<const Cuts> cuts, std::vector<double>& out, std::vector<char>& exact);
  double search_time(const Cuts& cuts);
  bool is_large() const { return program_.compute_nodes() > kLarge; }
  /// Most of the work on a proof may be theirs.
  bool is_slow() const { return is_large() || recomputation_ || block_choice_ || !all_.empty(); }
  /// The path that makes time(cuts) as long as it is (reductions and skips left out).
  PathCounts<std::int32_t> critical_path(const Cuts& cuts);
  /// The turns of the path that critical_path has just given.
  CertifiedPath last_turns() const { return program_.critical_turns(durations_, ends_); }
  /// Objective in ns: step time, recomputation included, if the cuts probably fit; else kTooFull
  /// plus the excess bytes. `time` = time(cuts), or less.
  static constexpr double kTooFull = 1e15;
  double weigh(const Cuts& cuts, double time);
  /// Bytes by which ranks are too full, all together, by LiveMemory and what the exact rule was
  /// found to add; <= 0 = probably fits: what the fullest has left.
  double excess(const Cuts& cuts) const;
  /// Surely too full: a lower bound of some rank's peak is above its limit.
  bool surely_too_full(const Cuts& cuts) const;

  /// Judges cuts by the exact memory rule and keeps them if they are feasible and faster than the
  /// best so far (ties: smaller cuts). True if they were kept. Remembers what it refused.
  bool offer(const Cuts& cuts, double time);
  const std::optional<Priced>& best() const { return best_; }
  const Cuts& best_cuts() const { return best_cuts_; }
  /// Time of the best feasible cuts; infinite if there are none yet.
  double best_time() const { return best_time_; }
  /// The refused cuts that lack least.
  const std::optional<Infeasible>& closest() const { return closest_; }
  /// Recompute::Choose and Blocks: no choice for cuts that were offered is faster than this, or
  /// than best_time(); infinite if what was chosen is known to be best.
  double unsure() const { return unsure_; }

  /// A copy works for another thread. Takes what it has found since it was made, or since the last
  /// follow().
  void join(Candidates& copy);
  /// Of a copy: takes what is known of the same schedule now.
  void follow(const Candidates& original);
  std::size_t evaluated() const { return evaluated_; }
  /// About how many ns of one core all calls together have taken: counted, not measured.
  double work() const;

 private:
  static constexpr std::size_t kLarge = 4096;  ///< compute nodes
  CutCosts::Priced price(const Cuts& cuts, const std::vector<bool>* recompute = nullptr,
                         const std::vector<double>* again = nullptr);
  void lane_times(std::span<const Cuts> cuts, std::vector<double>& out, std::vector<char>& exact,
                  bool link);
  template <class Number>
  void price_lanes(std::span<const Cuts> cuts, Program::Lanes<Number>& lanes, char* exact,
                   char* hopeless, bool link);
  double time_with(const Cuts& cuts, const std::vector<bool>* recompute,
                   const std::vector<double>* again = nullptr);
  double weigh_stages(const Cuts& cuts, double time);
  double weigh_blocks(const Cuts& cuts, double time);
  std::vector<double>& above_stages();
  Recomputation::Choice choose_stages(const Cuts& cuts);
  Recomputed recomputed(std::vector<bool> stages, std::vector<LayerRange> blocks = {}) const;
  Prices evaluated(const Cuts& cuts, const Recomputed& recomputed);
  Prices in_memory(Prices prices);
  StageCosts stage_costs_of(const Cuts& cuts, const Recomputed& recomputed) const;
  Schedule lowered(const StageCosts& costs) const;
  bool fits(const std::vector<Bytes>& peak_memory) const {
    return pfeife::fits(peak_memory, problem_.memory_limit);
  }
  bool keep(const Cuts& cuts, Prices plan, Recomputed recomputed);
  bool refuse(const Cuts& cuts, const std::vector<Bytes>& peak_memory);
  bool refuse_known(const Cuts& cuts);
  bool offer_recomputed(const Cuts& cuts);
  bool try_all_choices(const Cuts& cuts, const std::vector<bool>& forced);
  bool offer_blocks(const Cuts& cuts, double time);
  bool try_all_blocks(const Cuts& cuts, const std::vector<LayerRange>& blocks);

  const CutModel& model_;
  const Problem& problem_;
  ScheduleSpec spec_;
  Placement placement_;
  std::optional<Schedule> schedule_;  // compute-only; empty = large, and follows from spec_
  Program program_;
  CutCosts costs_;
  LiveMemory live_;
  mutable PeakMemo peaks_;
  KnownStages known_;
  mutable std::optional<std::pair<Cuts, StageCosts>> collected_;  // of the cuts last judged
  std::vector<bool> all_;  // [stage] of Full except the last microbatch: true; else empty
  std::optional<Recomputation> recomputation_;  // of Recompute::Choose, and of Blocks that are all
  std::optional<BlockChoice> block_choice_;     // of Recompute::Blocks
  std::vector<double> above_choice_;            // [rank] exact peak - BlockChoice's, last judged
  std::vector<double> above_stages_;            // [rank] of Blocks: the same of Recomputation's
  std::vector<double> durations_, ends_;
  Program::Lanes<double> lanes_;
  Program::Lanes<Program::Narrow> narrow_lanes_;
  std::vector<char> exact_;
  std::vector<double> above_bound_;  // [rank] exact peak - LiveMemory's, where last judged too full
  double unsure_;
  std::set<Cuts> refused_;
  std::optional<Priced> best_;
  Cuts best_cuts_;
  double best_time_;
  std::optional<Infeasible> closest_;
  std::size_t evaluated_ = 0;
  mutable std::size_t judged_ = 0;   // in full
  mutable std::size_t weighed_ = 0;  // by excess()
  std::size_t chosen_ = 0;           // blocks of cuts
};

}  // namespace pfeife
