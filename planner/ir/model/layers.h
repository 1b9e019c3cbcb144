// The model as the planner sees it: a linear order of layers with costs, and the values that pass
// between them. A layer is what lies between two neighbouring cut candidates: a group of graph
// nodes, a row of a layer table, a node of a published profile. Cut candidate i lies after layer i.
//   const LayerTimes times{.forward = Nanoseconds{1000}, .backward_input = Nanoseconds{2000}};
//   Layers two{.name = "two", .digest = std::string(64, '0')};
//   two.layers = {{.name = "first", .times = {times}}, {.name = "second", .times = {times}}};
//   plan(model_of(two), uniform_cluster(2, {.memory = kGiB}, {1e9}, Nanoseconds{0}));
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/units.h"
#include "planner/ir/model/microbatch_scale.h"
#include "planner/ir/model/pass_steps.h"
#include "planner/ir/model/profile.h"

namespace pfeife {

/// Time of a layer on one device kind for one microbatch.
struct LayerTimes {
  Nanoseconds forward{0};
  Nanoseconds backward_input{0};
  Nanoseconds backward_weight{0};
  Nanoseconds optimizer{0};  ///< besides the parameters' own (layer tables)
  friend bool operator==(const LayerTimes&, const LayerTimes&) = default;
};

struct Layer {
  std::string name;
  std::string module_path;        ///< of its last node; "" for tables
  std::vector<LayerTimes> times;  ///< [device kind of the cluster]
  Bytes saved{0};                 ///< F to B or I, besides Layers::storages
  Bytes weight_saved{0};          ///< I to W, besides Layers::storages
  /// Held while it runs, besides all that is saved and weight-saved: the gradients of what it reads
  /// and makes included. Of those that pass over it, see LayerValue::waiting_gradient.
  PassBytes temporary;
  Bytes model_input{0};       ///< the model's inputs that it is the first layer to read
  std::string no_cut_after;   ///< why the model must not be cut after this layer; "" = it may
  std::vector<NodeId> nodes;  ///< of the graph, if there is one
  /// Outermost submodule whose only call ends, or begins, with the layer; "" = none.
  std::string ends_module, begins_module;
  friend bool operator==(const Layer&, const Layer&) = default;
};

/// A value that later layers read. Sent once to each stage that reads it.
struct LayerValue {
  std::string name;
  LayerId producer;
  std::vector<LayerId> consumers;            ///< sorted, unique, all > producer
  Bytes bytes{0};                            ///< forward
  Bytes gradient_bytes{0};                   ///< backward, from each consumer stage
  std::optional<Nanoseconds> transfer_time;  ///< as published; replaces the link's
  /// Bytes the gradient occupies after the last reader's backward (possibly a larger storage it
  /// views). 0: Layer::temporary of the layers in between contains the gradient.
  Bytes waiting_gradient{0};
  /// The layer whose W needs that gradient, too: once its I has run, Layer::weight_saved of it has
  /// the gradient, and Layer::temporary.input of the layers before it has not.
  std::optional<LayerId> kept_for_weight = std::nullopt;
  /// Whether W of the producer needs the gradient, so that its Layer::weight_saved has it.
  bool producer_keeps_gradient = false;
  /// Whether a gradient comes back, for which the producer's backward waits: of no bytes, too.
  bool has_gradient = true;

  /// Bytes of the gradient that wait while layer `l` of [producer, last reader) runs backward,
  /// where producer and readers share a stage. Once a second reader has added to it, the gradient
  /// has the value's own size.
  Bytes waiting_at(LayerId l) const {
    if (waiting_gradient == Bytes{0}) return Bytes{0};
    return waits_alone(l) ? waiting_gradient : gradient_bytes;
  }
  /// The part of these bytes that is not kept for W anyway while layer `l` runs I.
  Bytes waiting_in_input(LayerId l) const {
    const bool kept = kept_for_weight && l <= *kept_for_weight && waits_alone(l);
    return kept ? Bytes{0} : waiting_at(l);
  }
  /// Whether no other reader than the last has handed a gradient back when layer `l` runs backward.
  bool waits_alone(LayerId l) const {
    return consumers.size() < 2 || l >= consumers[consumers.size() - 2];
  }
  friend bool operator==(const LayerValue&, const LayerValue&) = default;
};

/// A storage that several layers may keep for backward; counted once a stage.
struct LayerStorage {
  Bytes bytes{0};
  std::vector<LayerId> savers;         ///< sorted, unique
  std::vector<LayerId> weight_savers;  ///< sorted, unique
  std::optional<std::size_t>
      value;  ///< index into Layers::values if it is one that may cross a cut
  friend bool operator==(const LayerStorage&, const LayerStorage&) = default;
};

struct LayerParameter {
  std::string name;
  Bytes bytes{0};
  Bytes gradient{0};
  Bytes state{0};              ///< optimizer state
  std::vector<LayerId> users;  ///< sorted, unique; more than one stage of users = tied over stages
  std::vector<Nanoseconds> optimizer;  ///< [device kind]
  /// Bytes of its gradient, as ranks that share the parameter exchange it; 0 = as many as
  /// `gradient`.
  Bytes exchanged{0};
  /// Whether the gradients of its users wait within a backward until they are added up (as autograd
  /// does it), and are not added to the parameter's one by one.
  bool gradients_wait = true;
  friend bool operator==(const LayerParameter&, const LayerParameter&) = default;
};

/// What replicas reduce of a layer's gradients, one layer after another, from the layer's own
/// backward of the last microbatch on, beside that of the layers before it.
struct LayerReduction {
  Nanoseconds time{0};
  Nanoseconds beside{0};  ///< the layer's backward, beside which later layers' reductions run
  Nanoseconds wire{0};    ///< of `time`, what the bytes need of the whole narrowest link
  friend bool operator==(const LayerReduction&, const LayerReduction&) = default;
};

/// What of a layer's times the ranks of a mesh wait for collectives among themselves.
struct LayerCollectives {
  Nanoseconds forward{0};
  Nanoseconds backward{0};  ///< in backward_input
  friend bool operator==(const LayerCollectives&, const LayerCollectives&) = default;
};

/// What is known of the sequence of a microbatch whose attention is causal and seen, and whose
/// other operators do not mix positions: what slices of it cost.
struct Sequence {
  std::int64_t tokens = 0;         ///< positions; 0 = not known
  std::vector<double> attention;   ///< [layer] share of its times, of the first device kind
  std::vector<Bytes> keys_values;  ///< [layer] of keys and values, which later slices read
  friend bool operator==(const Sequence&, const Sequence&) = default;
};

/// What each rank of a pipeline does and holds of the layers with words, the input embedding and
/// the output layer, where all ranks divide the words (vocabulary parallelism): for one microbatch,
/// on the first kind of device.
struct WordShare {
  std::size_t ranks = 0;        ///< that divide the words; 0 = any number: figures of all words
  std::vector<LayerId> layers;  ///< that are divided, sorted
  LayerTimes output;            ///< products of the output layer; the optimizer's time of the share
  Nanoseconds input{0};         ///< the lookup and its backward
  Bytes saved{0};               ///< from the forward of the output layer to its backward
  Bytes temporary{0};           ///< at most this much more while any of it runs
  Bytes parameters{0}, gradients{0}, optimizer_state{0};
  /// Collectives among the ranks: the output layer's input to all, maximum, sum and label's score
  /// of each token, and the gradient of that input.
  Nanoseconds broadcast{0}, scalars{0}, gradient{0};
  friend bool operator==(const WordShare&, const WordShare&) = default;
};

struct Layers {
  std::string name;
  std::string digest;              ///< SHA-256 of what it was made from, hexadecimal
  std::string order = "captured";  ///< name of the linear order
  /// [position] number of the graph's node as captured; empty = that order, or no graph.
  std::vector<NodeId> node_order;
  std::int64_t microbatch_size = 1;
  /// [microbatch] What each of a step costs beside what the layers say; empty = that.
  std::vector<MicrobatchScale> microbatches = {};
  Mode mode = Mode::Train;  ///< Forward: nothing is kept for a backward (forward_layers.h)
  std::vector<Layer> layers;
  std::vector<LayerValue> values;
  std::vector<LayerStorage> storages;
  std::vector<LayerParameter> parameters;
  /// [layer] Empty = none, or all in optimizer times.
  std::vector<LayerReduction> reductions;
  std::vector<LayerCollectives> collectives;  ///< [layer] in its times; empty = none
  /// [layer] Its steps, if actions side by side are priced step by step. The layer's times and
  /// collectives say how long all of them take together; what steps lack of that is a step of its
  /// own before them. Empty = they take the longer of compute and collectives.
  std::vector<std::vector<PassStep>> steps = {};
  /// Actions side by side (OVERLAP_F_B) compute this much longer than one after the other, as
  /// collectives take a part of the device.
  double overlap_factor = 1;
  std::vector<std::string> notes;     ///< where the figures come from; shown in the report
  std::vector<std::string> uncosted;  ///< a sentence for each operator without a cost
  std::optional<Sequence> sequence;   ///< none: microbatches cannot be cut into slices
  std::string whole_because;          ///< why, in words; "" = nobody looked
  std::optional<WordShare> words;     ///< none: the output layer runs where the layers have it
  std::string undivided_because;      ///< why, in words

  std::size_t size() const { return layers.size(); }
  friend bool operator==(const Layers&, const Layers&) = default;
};

/// Where the order is cut: stage s = layers (cuts[s-1], cuts[s]], i.e. cut c lies after layer c.
/// Strictly increasing, each in [0, layers - 2]; S - 1 of them.
struct Partition {
  std::vector<std::int32_t> cuts;

  std::size_t stages() const { return cuts.size() + 1; }
  /// First layer of stage s, and one past its last.
  std::size_t begin(std::size_t s) const {
    return s == 0 ? 0 : static_cast<std::size_t>(cuts[s - 1]) + 1;
  }
  std::size_t end(std::size_t s, std::size_t layers) const {
    return s == cuts.size() ? layers : static_cast<std::size_t>(cuts[s]) + 1;
  }
  friend auto operator<=>(const Partition&, const Partition&) = default;
};

/// The storages that stay after F for a backward: none where the layers run forward only.
inline std::span<const LayerStorage> kept_storages(const Layers& layers) {
  if (layers.mode == Mode::Forward) return {};
  return layers.storages;
}

/// How long the reductions of a stage of layers [begin, end) go on after its last backward if no
/// other stage's are in their way: no shorter than the first one's. 0 if layers have none.
Nanoseconds exposed_reduction(const std::vector<LayerReduction>& reductions, std::size_t begin,
                              std::size_t end);

/// How long the link of a stage of layers [begin, end) is busy reducing.
Nanoseconds whole_reduction(const std::vector<LayerReduction>& reductions, std::size_t begin,
                            std::size_t end);

/// The layers as if their collectives took no time.
Layers without_collectives(Layers layers);

/// Neighbouring layers, `last` one of them.
struct LayerRange {
  LayerId first, last;
  friend auto operator<=>(const LayerRange&, const LayerRange&) = default;
};
/// "3-9 12": ranges as text, for people.
std::string to_string(const std::vector<LayerRange>& ranges);

/// Why `partition` is not a legal one of `layers`: out of order, out of range, through an in-place
/// pair. "" = it is.
std::string illegal_because(const Layers& layers, const Partition& partition);

/// The layers with no legal cuts but these: what is said of all legal cuts is then said of these.
Layers cut_only_at(const Partition& cuts, Layers layers);

}  // namespace pfeife
