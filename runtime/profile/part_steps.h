// Steps of the model in parts, as ranks of a pipeline run their stages: what an action costs beyond
// its nodes, and a message beyond its link.
//
// Each process runs all parts; what one part hands to the next goes to the next process, which does
// the same and so has the same to send. All microbatches pass a part before the next one: while a
// message is moved, both processes compute, and all microbatches are in flight, as in a pipeline
// without bubbles. The time of a pass includes handing over what it makes.
//
// And in turns, one microbatch part by part, each part on the next process: the message that each
// hands on is waited for, as those are that a pipeline's step consists of. Before, core and caches
// were at rest for as long as a part takes; that makes a message, and what is done with it first,
// slower than a message that goes back and forth between idle processes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/model/graph_stage.h"
#include "runtime/transport/transport.h"

namespace pfeife {

/// Cuts of `graph` into `parts` at most, near equal numbers of nodes, each where the fewest bytes
/// cross of the legal ones nearby. Empty if there is none.
std::vector<NodeId> part_cuts(const Graph& graph, const std::vector<NodeEffects>& effects,
                              std::size_t parts);

class PartSteps {
 public:
  enum Pass { Forward, BackwardInput, BackwardWeight, kPasses };
  /// Told what to run as a pass of a part, which it is to time.
  using Time =
      std::function<void(Pass pass, std::size_t part, const std::function<void()>& action)>;

  /// All arguments must outlive it; `together` may be null: then messages are handed over.
  PartSteps(const Graph& graph, const std::vector<NodeEffects>& effects, std::size_t parts,
            RankTensors& tensors, RandomTurns& turns, const StageOptions& options,
            Transport* together);

  /// Fewer than asked for where the model has too few cuts.
  std::size_t parts() const { return stages_.size(); }
  /// A step without its update: F of all parts, I of all, W of all.
  void run(const StepInputs& inputs, const Time& time);

  /// What is timed in turns, by the process that does it.
  enum Turn {
    Arrival,      ///< from handing it over, there, to going on with it, here
    Sending,      ///< the call that hands a message over
    AfterWait,    ///< a pass that a message was waited for
    WithoutWait,  ///< such a pass, with the same input and after the same one, without waiting
    Echo,         ///< a message of mean size that goes back and forth between two idle processes
    kTurns
  };
  /// The first microbatch in turns: F of all parts, I and W of all; then each process its own
  /// passes again. Nothing where there is one process or one part. Echoes are timed by rank 0.
  using Keep = std::function<void(Turn, Nanoseconds)>;
  void take_turns(const StepInputs& inputs, const Keep& keep);

 private:
  struct Route {
    StageId from, to;
    MicrobatchId microbatch;
    bool forward;
    friend auto operator<=>(const Route&, const Route&) = default;
  };
  bool alone() const { return together_ == nullptr || together_->ranks() == 1; }
  void begin(const StepInputs& inputs);
  void end();
  void hand_on(const Route& route, Tensors tensors);
  Tensors take(const Route& route);
  Tag tag(const Route& route) const;
  /// In turns, of the first microbatch: whose part it is, what it computes, what it waits for (the
  /// message that comes last, if any does), what it hands on.
  RankId owner(StageId part) const { return RankId{part.index() % together_->ranks()}; }
  PerStage compute(StageId part, bool forward, const PerStage& in);
  std::optional<Message> take_turn(StageId part, bool forward, PerStage& in);
  void hand_on_turn(StageId part, bool forward, PerStage out, const Keep& keep);
  void echo(Bytes bytes, const Keep& keep);

  GraphSplit split_;
  std::vector<std::unique_ptr<GraphStage>> stages_;
  Transport* together_;
  std::uint64_t step_ = 0;
  std::size_t microbatches_ = 0;
  std::map<Route, Tensors> handed_;
};

}  // namespace pfeife
