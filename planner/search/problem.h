// What a search is asked and what it answers: values only. search.h is the door.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/cost/estimate/reference_memory.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/certificate.h"
#include "planner/ir/result/covered.h"
#include "planner/ir/result/plan.h"
#include "planner/ir/result/priced.h"
#include "planner/ir/result/result.h"
#include "planner/ir/result/step_norm.h"
#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// What is to be planned. Borrowed for the call.
struct Problem {
  const Layers& layers;
  const Cluster& cluster;
  std::vector<ScheduleSpec>
      schedules;  ///< those to choose among; all of the same ranks and microbatches
  std::vector<DeviceId> device_of_rank;
  std::vector<Bytes> memory_limit;  ///< [rank]
  std::optional<Partition> cuts;    ///< given cuts: only schedules are chosen
  MemoryRule memory_rule = MemoryRule::Lifetimes;
  Recompute recompute = Recompute::None;
  /// Of Recompute::Blocks: what may be recomputed by itself; sorted, none overlaps another. A cut
  /// inside of one makes two of it. If every layer is in one, stages may be recomputed as a whole,
  /// as with Choose. Empty = the blocks of the model.
  std::vector<LayerRange> blocks = {};
  /// Recomputed::except_last of plans that recompute anything.
  bool recompute_except_last = false;

  /// AtNeed: plans may receive late, where they do not fit otherwise.
  Receives receives = Receives::AtNeed;

  /// What all optimizer steps wait for.
  StepNorm norm = StepNorm::None;

  /// Every microbatch is recomputed on every stage, whatever the plan: the times of layers may say
  /// so.
  bool recomputes_all() const { return recompute == Recompute::Full && !recompute_except_last; }
};

/// The problem of other layers, or on another cluster, which must live as long.
inline Problem with_layers(const Problem& problem, const Layers& layers) {
  return {layers,
          problem.cluster,
          problem.schedules,
          problem.device_of_rank,
          problem.memory_limit,
          problem.cuts,
          problem.memory_rule,
          problem.recompute,
          problem.blocks,
          problem.recompute_except_last,
          problem.receives,
          problem.norm};
}
inline Problem with_cluster(const Problem& problem, const Cluster& cluster) {
  return {problem.layers,       cluster,
          problem.schedules,    problem.device_of_rank,
          problem.memory_limit, problem.cuts,
          problem.memory_rule,  problem.recompute,
          problem.blocks,       problem.recompute_except_last,
          problem.receives,     problem.norm};
}

/// A step of a search that has just been done, and what is known then.
struct SearchStepDone {
  std::string_view name;  ///< one of search_steps()
  double seconds = 0;
  std::optional<Nanoseconds> best, bound;
};

struct SearchOptions {
  std::size_t keep = 5;  ///< plans to return at most
  std::uint64_t seed = 1;
  std::size_t iterations = 0;  ///< effort: about ms of branch and bound on one core; 0 = 500
  std::size_t threads = 1;
  bool certificate = false;                       ///< record the proof: costs memory
  std::function<void(double fraction)> progress;  ///< may be empty
  /// Is told of every step, by any thread where several problems are searched; may be empty.
  std::function<void(const SearchStepDone&)> after_step = {};
  std::vector<std::string> left_out = {};  ///< of search_steps(): what is a step worth?
};

/// Progress of a piece of work as that of the part from `begin` to `end` of a larger one.
SearchOptions part_of(SearchOptions options, double begin, double end);

/// Why nothing fits: the rank that lacks most in the least bad case.
struct Infeasible {
  RankId rank;
  Bytes needed{0}, available{0};
  ScheduleSpec spec;  ///< of the least bad case
  Partition partition;
  bool proven = false;  ///< no cuts of any listed schedule fit; false: none was found

  Bytes lacking() const { return needed - available; }
};

/// Why a schedule is not among the plans.
struct Rejected {
  ScheduleSpec spec;
  Reason reason;
  std::optional<Nanoseconds> bound = std::nullopt;  ///< no cuts of it have a smaller estimate
};

struct SearchOutcome {
  std::vector<Priced> plans;  ///< best first; empty if infeasible
  /// The best of every schedule that has a plan; best first. `plans` are the first of them.
  std::vector<Priced> all;
  /// Of the best plans of the listed schedules, and all that were judged of those whose order is
  /// built, those that are both slower and larger than none; the fastest first.
  std::vector<Priced> front;
  std::optional<Infeasible>
      infeasible;  ///< set iff plans is empty and some schedule could be built
  std::vector<Rejected> rejected;
  std::vector<SearchStep> history;  ///< best time and bound after each step of the search
  std::optional<Bound> bound;       ///< of the estimate of any plan; of the given cuts, if they are
  std::vector<Covered> covered;     ///< what it holds for
  Uncertified uncertified;          ///< and besides, without a certificate
  /// An order built for its costs may be below the bound, of this problem or another that was open.
  bool orders_left_out = false;
  Recompute recompute = Recompute::None;  ///< Problem::recompute: what bound and plans are of
  /// Proves the bound, or that nothing fits, to those who do not trust the search. Where the bound
  /// is one that certificates cannot say, it proves less: Certificate::bound. Empty unless asked
  /// for, if neither is proven, or under the reference memory rule.
  std::shared_ptr<const Certificate> certificate;
  std::size_t candidates = 0;  ///< evaluated
  std::size_t effort = 0;      ///< of SearchOptions::iterations, spent; 0 = of given cuts
};

/// `search` of search.h, for steps below that search a smaller problem with it.
using SearchFunction = std::function<SearchOutcome(const Problem&, const SearchOptions&)>;

}  // namespace pfeife
