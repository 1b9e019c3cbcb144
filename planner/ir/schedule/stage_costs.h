// What each stage of a partition costs on the rank it is placed on: times, memory, messages.
// Made by planner/cost/stages/stage_costs.h; read by every engine.
#pragma once

#include <optional>
#include <vector>

#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/units.h"
#include "planner/ir/model/pass_bytes.h"
#include "planner/ir/schedule/schedule.h"

namespace pfeife {

struct StageCost {
  Nanoseconds forward{0};
  Nanoseconds backward_input{0};
  Nanoseconds backward_weight{0};
  Nanoseconds optimizer{0};
  /// What of forward and of backward_input is waited for collectives: actions side by side hide it.
  /// The waits of a forward that is run again count as its compute.
  Nanoseconds forward_collectives{0}, backward_collectives{0};
  Bytes parameters{0}, gradients{0}, optimizer_state{0};  ///< held for the whole step
  Bytes saved{0};  ///< per microbatch, from F to B or I, received values that are kept included
  Bytes weight_saved{0};  ///< per microbatch, from I to W
  /// At most this much more within an action than with all in place that the microbatch has saved
  /// (F, B, I) or weight-saved (W): early layers run before later ones save, and after they let go.
  PassBytes temporary;
  /// Per microbatch, part of what the stage saves alone (saved_alone): what OFFLOAD takes to the
  /// host and RELOAD brings back, and how long each takes alone.
  Bytes offloaded{0};
  Nanoseconds offload{0}, reload{0};
  /// S and T of the rank's share of an output layer that all ranks share.
  Nanoseconds head_share{0}, head_rest{0};
  Bytes head_saved{0};      ///< per microbatch, from S to T
  Bytes head_temporary{0};  ///< at most this much more within S or T
  Bytes unkept_forward{0};  ///< of a stage that keeps what F makes: temporary.forward if it did not
  Bytes recomputed{0};      ///< within a B or I of a recomputed stage, besides: what F would save
  Bytes forward_again{0};   ///< temporary, besides, of the F that such a B or I begins with
  Bytes model_input{
      0};  ///< per microbatch, the model's inputs that its layers are the first to read

  Nanoseconds backward() const { return backward_input + backward_weight; }
  Bytes fixed() const { return parameters + gradients + optimizer_state; }
  friend bool operator==(const StageCost&, const StageCost&) = default;
};

/// All that goes from one stage to another for one microbatch, as one message each way.
struct StagePair {
  StageId from, to;
  Bytes bytes{0};                                 ///< forward
  Bytes gradient_bytes{0};                        ///< backward
  Nanoseconds forward_time{0}, backward_time{0};  ///< contention-free; 0 on the same rank
  bool has_gradient = true;  ///< whether a message, if only an empty one, is sent back
  friend bool operator==(const StagePair&, const StagePair&) = default;
};

/// A value that leaves its stage; for the memory rule, which counts a storage once.
struct StageValue {
  StageId from;
  std::vector<StageId> to;  ///< sorted
  Bytes bytes{0}, gradient_bytes{0};
  bool saved_by_sender = false;         ///< part of the sender's `saved` already
  std::vector<bool> saved_by_receiver;  ///< [to]: part of that stage's `saved`
  friend bool operator==(const StageValue&, const StageValue&) = default;
};

/// Is receiver i the only stage on its rank that has the value?
bool receives_alone(const StageValue& value, std::size_t i, const Placement& placement);
/// [stage] Part of `saved` that nothing else on its rank holds from its F to its B: all but values
/// that it sends or shares with other stages there.
std::vector<Bytes> saved_alone(const std::vector<StageCost>& stages,
                               const std::vector<StageValue>& values, const Placement& placement);

/// Gradient reduction of stages linked by tied parameters, as one operation.
struct StageReduction {
  std::vector<StageId> stages;  ///< sorted, size >= 2
  Bytes bytes{0};
  Nanoseconds time{0};
  friend bool operator==(const StageReduction&, const StageReduction&) = default;
};

/// What the replicas of a stage reduce of its gradients, layer by layer, on a link that its rank's
/// stages share: one after another, in the order of their last weight gradients.
struct ReplicaReduction {
  Nanoseconds beside{0};  ///< of it, beside the stage's own last backward if the link is free
  Nanoseconds behind{0};  ///< the rest
  Nanoseconds wire{0};    ///< of both, what the bytes need of the whole of a ring's narrowest link
  /// The share of that link that the ring takes while it runs.
  double share() const {
    return wire == Nanoseconds{0}
               ? 0
               : static_cast<double>(wire.count()) / static_cast<double>((beside + behind).count());
  }
  friend bool operator==(const ReplicaReduction&, const ReplicaReduction&) = default;
};

/// The collectives of an output layer that all ranks share, of one microbatch: alone on the links,
/// beside what the ranks compute.
struct SharedHead {
  std::size_t barriers = 1;  ///< StageGraph::head_barriers
  Nanoseconds broadcast{0}, after_share{0}, after_rest{0};

  Nanoseconds time(Op collective) const;
  friend bool operator==(const SharedHead&, const SharedHead&) = default;
};

struct StageCosts {
  std::vector<StageCost> stages;
  std::vector<StagePair> pairs;  ///< sorted by (from, to), unique
  std::vector<StageValue> values;
  std::vector<StageReduction> reductions;
  std::vector<ReplicaReduction> replicas;  ///< [stage]; empty = none
  std::optional<Nanoseconds> norm;         ///< of REDUCE_NORM, if steps need it
  bool one_copy_engine = false;    ///< OFFLOAD and RELOAD of a rank take turns: one way at a time
  std::optional<SharedHead> head;  ///< none: the last stage has the output layer
  double overlap_factor = 1;       ///< actions side by side compute this times the sum of both
  /// A forward beside a backward of the same rank.
  struct SideBySide {
    StageId forward, backward;
    Nanoseconds with_backward{0}, with_input{0};  ///< until both have ended: beside B, beside I
    friend bool operator==(const SideBySide&, const SideBySide&) = default;
  };
  /// Sorted by (forward, backward); empty = side_by_side_time() takes the longer of compute and
  /// collectives. (add_side_by_side() of planner/cost/stages/stage_steps.h)
  std::vector<SideBySide> side_by_side = {};
  /// What a stage is to the microbatch that it runs forward last, where that one is not recomputed
  /// and others are; its F and W last as long as theirs. Empty = all microbatches are alike.
  struct Last {
    std::vector<StageCost> stages;
    std::vector<StageValue> values;             ///< those of StageCosts, saved by others
    std::vector<SideBySide> side_by_side = {};  ///< of its backwards
    friend bool operator==(const Last&, const Last&) = default;
  };
  Last last = {};
  /// What a slice of a microbatch's sequence costs, where schedules cut it (slice_costs.h): as the
  /// members above of a whole microbatch, parameters and their gradients included.
  struct Slice {
    std::vector<StageCost> stages;
    std::vector<StagePair> pairs;
    std::vector<StageValue> values;
    std::vector<Bytes> key_gradients;  ///< [stage] gradients of its keys and values, to which later
                                       ///< slices add: from the first of their backwards to its own
    friend bool operator==(const Slice&, const Slice&) = default;
  };
  std::vector<Slice> slices = {};  ///< empty = microbatches are whole
  /// Where microbatches differ (microbatch_costs.h): what those of each kind cost, as the members
  /// above of any, and [microbatch] the kind of each. Empty = all cost the same.
  std::vector<Slice> kinds = {};
  std::vector<std::uint32_t> kind_of = {};
  Mode mode = Mode::Train;  ///< Forward: costs of F alone, and nothing is saved

  friend bool operator==(const StageCosts&, const StageCosts&) = default;
};

/// Does any stage offload?
bool offloads(const StageCosts& costs);
/// What the costs have for that slice, or for that microbatch where microbatches differ; nullptr =
/// what they have for any.
const StageCosts::Slice* part_of(const StageCosts& costs, MicrobatchId microbatch);
/// The pattern without the figures.
StageGraph stage_graph(const StageCosts& costs);
/// Its optimizer step and, where each rank has one stage, what its replicas reduce behind its last
/// backward: the step waits for that. (Of several stages a rank's link has to be asked.)
Nanoseconds step_of(const StageCosts& costs, const Placement& placement, StageId stage);
/// The pair (from, to), or nullptr; as it is for that microbatch or slice.
const StagePair* find_pair(const StageCosts& costs, StageId from, StageId to,
                           std::optional<MicrobatchId> microbatch = {});
/// The pairs as they are for a microbatch or slice.
const std::vector<StagePair>& pairs_of(const StageCosts& costs,
                                       std::optional<MicrobatchId> microbatch);
/// What an action's stage is to its microbatch or slice. `last`: see StageCosts::last.
const StageCost& stage_cost(const StageCosts& costs, const Action& action, bool last);
/// Every stage F, I, W as given, a chain with the given transfer time: the textbooks' pipeline, for
/// tests and tools.
StageCosts uniform_costs(std::size_t stages, Nanoseconds forward, Nanoseconds backward_input,
                         Nanoseconds backward_weight, Nanoseconds transfer);
/// What is left of the costs of training where stages run forward only (Mode::Forward).
StageCosts without_backward(StageCosts costs);

}  // namespace pfeife
