//   plan(model, cluster, {.precision = Precision::Bf16Amp});  // how a step is done; costs of nodes
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/units.h"
#include "planner/ir/model/microbatch_scale.h"
#include "planner/ir/model/mode.h"
#include "planner/ir/model/optimizer.h"
#include "planner/ir/model/pass_bytes.h"

namespace pfeife {

enum class Precision { Fp32, Tf32, Bf16Amp, Fp16Amp };
/// "fp32", "tf32", "bf16_amp", "fp16_amp".
std::string to_string(Precision precision);

/// How a training step is done; part of what a profile is valid for.
struct Training {
  Precision precision = Precision::Fp32;
  Optimizer optimizer = Optimizer::Adam;
  std::int64_t microbatch_size = 1;  ///< samples
  Mode mode = Mode::Train;
  /// [microbatch] of a plan whose microbatches differ; else empty
  std::vector<MicrobatchScale> microbatch_costs = {};
  friend bool operator==(const Training&, const Training&) = default;
};

enum class FigureSource { Measured, Roofline, Imported };
std::string to_string(FigureSource source);

/// Cost of one node for one microbatch on the profile's device kind.
struct NodeProfile {
  Nanoseconds forward{0};
  Nanoseconds backward_input{0};   ///< gradients of activations
  Nanoseconds backward_weight{0};  ///< gradients of parameters
  Bytes saved{0};         ///< kept from F to B or I besides `Profile::storages` (masks, statistics)
  Bytes weight_saved{0};  ///< kept from I to W besides `Profile::storages` (incoming gradients)
  PassBytes temporary;    ///< at most this much more while the node runs
  Nanoseconds forward_spread{0}, backward_input_spread{0},
      backward_weight_spread{0};  ///< measured only
  friend bool operator==(const NodeProfile&, const NodeProfile&) = default;
};

/// A value's storage that autograd keeps, once however many nodes save it.
struct SavedStorage {
  ValueId value;  ///< the value that allocated it
  Bytes bytes{0};
  std::vector<NodeId> savers;         ///< keep it from their F to their B or I; sorted, unique
  std::vector<NodeId> weight_savers;  ///< ... from I to W as well; a subset of savers
  friend bool operator==(const SavedStorage&, const SavedStorage&) = default;
};

struct ParameterProfile {
  Nanoseconds optimizer{0};
  Bytes state{0};  ///< optimizer state
  friend bool operator==(const ParameterProfile&, const ParameterProfile&) = default;
};

/// How measured times vary: coefficients of variation of the two factors of
/// planner/ir/schedule/jitter.h.
struct MeasuredVariation {
  double cv = 0;     ///< of an F, B, I or W by itself, within a step
  double drift = 0;  ///< of steps as a whole
  friend bool operator==(const MeasuredVariation&, const MeasuredVariation&) = default;
};

/// What an action of a stage takes beyond its nodes in a pipeline: values set up, autograd entered,
/// caches that other stages have used, messages that are moved meanwhile.
struct StageOverheads {
  Nanoseconds forward{0}, backward_input{0}, backward_weight{0};
  friend bool operator==(const StageOverheads&, const StageOverheads&) = default;
};
/// The overhead as a device kind's stage_overhead, which F and B (or I) have alike: half of the sum
/// of all three, since a microbatch runs F, I and W of a stage once.
Nanoseconds each_action(const StageOverheads& overheads);

struct Profile {
  std::string graph_digest;
  std::string device_kind;
  Training training;
  FigureSource source = FigureSource::Roofline;
  std::string origin;              ///< date and machine, or rule and constants
  std::vector<NodeProfile> nodes;  ///< [node]
  std::vector<SavedStorage> storages;
  std::vector<ParameterProfile> parameters;       ///< [parameter]
  Nanoseconds executor_overhead{0};               ///< per action, measured
  std::optional<StageOverheads> stage_overheads;  ///< measured
  std::optional<Nanoseconds> message_overhead;    ///< per message, beyond the link; measured
  std::optional<MeasuredVariation> variation;
  std::vector<std::string> warnings;  ///< operators charged by bytes only, and the like
  friend bool operator==(const Profile&, const Profile&) = default;
};

}  // namespace pfeife
