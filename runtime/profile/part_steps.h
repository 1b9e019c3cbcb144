// Steps of the model in parts, as ranks of a pipeline run their stages: what an action costs beyond
// its nodes.
//
// Each process runs all parts; what one part hands to the next goes to the next process, which does
// the same and so has the same to send. All microbatches pass a part before the next one: while a
// message is moved, both processes compute, and all microbatches are in flight, as in a pipeline
// without bubbles.
#pragma once

#include <functional>
#include <map>
#include <memory>
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

 private:
  struct Route {
    StageId from, to;
    MicrobatchId microbatch;
    bool forward;
    friend auto operator<=>(const Route&, const Route&) = default;
  };
  void hand_on(const Route& route, Tensors tensors);
  Tensors take(const Route& route);
  Tag tag(const Route& route) const;

  GraphSplit split_;
  std::vector<std::unique_ptr<GraphStage>> stages_;
  Transport* together_;
  std::uint64_t step_ = 0;
  std::size_t microbatches_ = 0;
  std::map<Route, Tensors> handed_;
};

}  // namespace pfeife
