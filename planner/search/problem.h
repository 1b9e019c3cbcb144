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

/// What is to be planned. Layers and cluster must outlive it.
struct Problem {
  Borrowed<Layers> layers;
  Borrowed<Cluster> cluster;
  std::vector<ScheduleSpec>
      schedules;  ///< those to choose among; all of the same ranks and microbatches
  std::vector<DeviceId> device_of_rank;
  /// [rank] The most bytes that may be allocated, and that `allocator`, if it is set, may reserve.
  std::vector<Bytes> memory_limit;
  std::optional<Partition> cuts;  ///< given cuts: only schedules are chosen
  MemoryRule memory_rule = MemoryRule::Lifetimes;
  Recompute recompute = Recompute::None;
  /// With Recompute::Blocks: ranges of layers that may each be recomputed alone; sorted, none
  /// overlaps another. A cut inside of a range makes two of it. If the ranges cover all layers,
  /// whole stages may be recomputed, as Recompute::Choose allows. Empty = the blocks of the model.
  std::vector<LayerRange> blocks = {};
  /// Plans that recompute anything keep what the last microbatch saves (Activations::except_last).
  bool recompute_except_last = false;

  /// AtNeed: a plan that does not fit may take each message right before it is read.
  Receives receives = Receives::AtNeed;

  /// The norm of all gradients, if any, that every optimizer step waits for.
  StepNorm norm = StepNorm::None;

  /// Set: what PyTorch's allocator reserves for a plan must fit, too (planner/cost/allocator).
  /// Bounds and proofs count allocated bytes alone, which are never more than reserved ones.
  std::optional<AllocatorSettings> allocator = std::nullopt;

  /// Where microbatches differ, the search also finds which one stands where in a schedule.
  bool order_microbatches = false;

  /// Stages may send what they save to the host. Some device of the problem must have a host_link.
  bool offload = false;

  /// Stages may run on any ranks, beside the places that the listed schedules give them.
  bool search_placement = false;

  /// Every plan recomputes every microbatch on every stage, so that the times of layers may include
  /// recomputation.
  bool recomputes_all() const { return recompute == Recompute::Full && !recompute_except_last; }
};

/// A copy that refers to other layers, or to another cluster. These must outlive the copy.
inline Problem with_layers(Problem problem, Borrowed<Layers> layers) {
  problem.layers = layers;
  return problem;
}
inline Problem with_cluster(Problem problem, Borrowed<Cluster> cluster) {
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
  /// Effort: about as many ms of branch and bound on one core; 0 = 500.
  std::size_t iterations = 0;
  std::size_t effort() const { return iterations == 0 ? 500 : iterations; }
  std::size_t threads = 1;
  bool certificate = false;                       ///< record the proof: costs memory
  std::function<void(double fraction)> progress;  ///< called with the share done; may be empty
  /// Called after every step, by any thread where several problems are searched; may be empty.
  std::function<void(const SearchStepDone&)> after_step = {};
  /// Better step times than the estimates, [plan]: those of a simulator. Decides between problems
  /// that do the same work, since estimates do not know how long transfers wait for one another.
  /// May be empty.
  std::function<std::vector<Nanoseconds>(const Problem&, std::span<const Priced>)> times = {};
  Semantics semantics = {};  ///< how `times` models transfers that share queues and links
  /// Names of search_steps() that are skipped, to measure what each step contributes.
  std::vector<std::string> left_out = {};
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
