// Passes node by node: their times and their memory; each is in a source of its name.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "planner/ir/basics/units.h"
#include "planner/ir/model/graph.h"
#include "planner/ir/model/profile.h"
#include "runtime/device/aten.h"
#include "runtime/model/graph_stage.h"
#include "runtime/model/stage_observer.h"
#include "runtime/transport/device_clock.h"

namespace pfeife {

// Told of every function that autograd runs backward on this thread.

/// While it lives, `begins` is called before each backward function with the number that autograd
/// gave it in the forward (at::sequence_number), or with a negative one for the functions that add
/// to a parameter's gradient. One at a time on a thread.
class BackwardWatch {
 public:
  explicit BackwardWatch(std::function<void(std::int64_t)> begins);
  ~BackwardWatch();
  BackwardWatch(const BackwardWatch&) = delete;
  BackwardWatch& operator=(const BackwardWatch&) = delete;

 private:
  std::function<void(std::int64_t)> begins_;
  std::uint64_t callback_ = 0;
};

// Times a stage node by node while it runs.
//
// A node is charged from the end of the node before it to its own end, so that nothing between two
// nodes is lost: the freeing of values, autograd's walk, gradients added up where paths join. A
// backward function belongs to the node whose forward made it and lasts until the next one begins;
// those that add to a parameter's gradient belong to the function that completed the gradient. What
// lies before the first and after the last node of a pass is kept apart.
//
// On an accelerator the marks between nodes are events in its stream. Nothing is taken off for them
// there: one costs the device far less than a kernel, and what it costs the host counts only where
// the device waits for the host.

/// Times of one pass (F, B, I or W).
struct PassTimes {
  std::vector<Nanoseconds> nodes;  ///< [node]
  std::vector<bool> ran;           ///< [node]
  Nanoseconds outside{0};          ///< before the first and after the last node
  Nanoseconds whole{0};
  bool interrupted = false;  ///< others had the core meanwhile
};

/// Which graph node a backward function belongs to, by the numbers autograd counts with.
class BackwardNodes {
 public:
  void clear() { ranges_.clear(); }
  /// To be called around each node's forward, on the thread that runs it.
  void before(NodeId node);
  void after();
  /// The node of a function, or nullopt: not one of the forward's.
  std::optional<NodeId> find(std::int64_t number) const;

 private:
  struct Range {
    std::uint64_t begin, end;
    NodeId node;
  };
  std::vector<Range> ranges_;
};

class NodeClock final : public StageObserver {
 public:
  explicit NodeClock(std::size_t nodes, at::Device device = at::kCPU);

  /// Runs `pass` and answers with its times.
  PassTimes forward(const std::function<void()>& pass);
  PassTimes backward(const std::function<void()>& pass);  ///< after forward(): B or I
  PassTimes weight(const std::function<void()>& pass);

  void before_node(NodeId node) override;
  void computed(NodeId, const std::vector<ValueId>&, const std::vector<at::Tensor>&) override {}
  void after_node(NodeId node) override;
  void before_weight(NodeId node) override;
  void after_weight(NodeId node) override;

  /// What a mark adds to the time it measures: forward and W; backward.
  static Nanoseconds mark_cost();
  static Nanoseconds backward_mark_cost();

 private:
  struct Mark {
    Nanoseconds at;     // of clock_
    std::int64_t what;  // node, or number of a backward function
  };
  PassTimes timed(const std::function<void()>& pass);
  void read_marks();
  void charge(PassTimes& times, std::size_t node, Nanoseconds time, Nanoseconds cost) const;
  PassTimes by_ends(PassTimes times) const;

  std::size_t nodes_;
  DeviceClock clock_;
  std::vector<Mark> marks_;
  BackwardNodes functions_;
  Nanoseconds begin_{0}, end_{0}, first_{0};
};

// What a graph's nodes keep and take of memory, as counted while they run.

/// Measured counterparts of the fields of a Profile.
struct NodeMemory {
  std::vector<SavedStorage> storages;      ///< in order of their first saver
  std::vector<Bytes> saved, weight_saved;  ///< [node]
  std::vector<PassBytes> temporary;        ///< [node]
  Bytes kept_after_forward{0};             ///< by the allocator alone: to compare with
  Bytes kept_after_input{0};               ///< likewise between I and W

  Bytes all_saved() const;         ///< storages and `saved`
  Bytes all_weight_saved() const;  ///< likewise from I to W
};

/// Runs two microbatches through `joint` (F, B) and one through `split` (F, I, W), whole-model
/// stages over the same tensors whose gradients must be there already. `begin` of both must have
/// been called with a microbatch 0. Needs count_allocations().
///
/// Saved: storages that autograd keeps in the joint stage, parameters and buffers left out; one
/// that a value of the graph allocated is a SavedStorage of that value, all others belong to the
/// node. Weight-saved: what the split stage's pending weight gradients hold. Temporary: allocated
/// and freed again within the pass; in F, above what it and earlier nodes have kept by its end; in
/// I, all that it allocates but for what the node and later ones keep for W.
NodeMemory measure_memory(const Graph& graph, const RankTensors& tensors, const StepInputs& inputs,
                          GraphStage& joint, GraphStage& split);

}  // namespace pfeife
