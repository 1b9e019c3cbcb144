// What a search is asked: values only; it answers with an Answer. search.h is the door.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "planner/cost/estimate/reference_memory.h"
#include "planner/ir/basics/borrowed.h"
#include "planner/ir/machine/allocator_settings.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/answer.h"
#include "planner/ir/result/step_norm.h"
#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// What is to be planned.
struct Problem {
  Borrowed<Layers> layers;
  Borrowed<Cluster> cluster;
  std::vector<ScheduleSpec>
      schedules;  ///< those to choose among; all of the same ranks and microbatches
  std::vector<DeviceId> device_of_rank;
  std::vector<Bytes>
      memory_limit;               ///< [rank] of what is allocated and, with an allocator, reserved
  std::optional<Partition> cuts;  ///< given cuts: only schedules are chosen
  MemoryRule memory_rule = MemoryRule::Lifetimes;
  Recompute recompute = Recompute::None;
  /// With Recompute::Blocks: what may be recomputed by itself; sorted, none overlaps another. A cut
  /// inside of one makes two of it. If every layer is in one, stages may be recomputed as a whole,
  /// as with Choose. Empty = the blocks of the model.
  std::vector<LayerRange> blocks = {};
  /// Recomputed::except_last of plans that recompute anything.
  bool recompute_except_last = false;

  /// AtNeed: plans may receive late, where they do not fit otherwise.
  Receives receives = Receives::AtNeed;

  /// What all optimizer steps wait for.
  StepNorm norm = StepNorm::None;

  /// What it reserves for a plan must fit as well (planner/cost/allocator). Bounds and proofs know
  /// what is allocated, which is never more.
  std::optional<AllocatorSettings> allocator = std::nullopt;

  /// Where microbatches differ, which one stands where in a schedule is to be found.
  bool order_microbatches = false;

  /// Stages may send what they save to the host. Some device of the problem must have a host_link.
  bool offload = false;

  /// Stages may run on any ranks, beside the places that the listed schedules give them.
  bool search_placement = false;

  /// Every microbatch is recomputed on every stage, whatever the plan: the times of layers may say
  /// so.
  bool recomputes_all() const { return recompute == Recompute::Full && !recompute_except_last; }
};

/// The problem of other layers, or on another cluster, which must live as long.
inline Problem with_layers(Problem problem, const Layers& layers) {
  problem.layers = layers;
  return problem;
}
inline Problem with_cluster(Problem problem, const Cluster& cluster) {
  problem.cluster = cluster;
  return problem;
}

/// The problem where devices have memory for everything, so that nothing is recomputed or
/// offloaded: no plan of `problem` is faster than the bound of this one.
Problem without_limits(Problem problem);

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
  std::size_t effort() const { return iterations == 0 ? 500 : iterations; }
  std::size_t threads = 1;
  bool certificate = false;                       ///< record the proof: costs memory
  std::function<void(double fraction)> progress;  ///< by about the time; may be empty
  /// Is told of every step, by any thread where several problems are searched; may be empty.
  std::function<void(const SearchStepDone&)> after_step = {};
  /// How long these plans of a problem really take, [plan]; may be empty. Decides between problems
  /// that do the same work: their best estimates may be of plans that wait for links.
  std::function<std::vector<Nanoseconds>(const Problem&, std::span<const Priced>)> times = {};
  Semantics semantics = {};                ///< how transfers hinder one another in `times`
  std::vector<std::string> left_out = {};  ///< of search_steps(): what is a step worth?
};

/// Estimated length of a search, in units of effort; what comes before its first span counts as 20.
/// Progress alone is computed from it.
inline double search_work(std::size_t effort) { return 20 + static_cast<double>(effort); }

/// Progress of a piece of work as that of the part from `begin` to `end` of a larger one.
SearchOptions part_of(SearchOptions options, double begin, double end);

/// `search` of search.h without offload and placements, for steps that search another problem with
/// it.
using SearchFunction = std::function<Answer(const Problem&, const SearchOptions&)>;

}  // namespace pfeife
