// From the files of a model to its layers with costs: the one way there, for those who plan and for
// the judge who computes it all again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/machine/network.h"
#include "planner/ir/machine/replicas.h"
#include "planner/ir/model/graph.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/model/model_files.h"
#include "planner/ir/model/profile.h"

namespace pfeife {

/// How a model is trained: what its layers follow from besides its files.
struct ModelUse {
  std::string order = "captured";  ///< of an archive's nodes
  Precision precision = Precision::Fp32;
  Optimizer optimizer = Optimizer::Adam;
  std::optional<std::int64_t> microbatch_size;  ///< none: the archive's own; 1 for the others
  Replicas replicas;                            ///< of the pipeline
  Mode mode = Mode::Train;
  /// [microbatch] Beside one of the layers' own size, by scales or by documents; empty = alike.
  std::vector<MicrobatchScale> microbatch_costs = {};
  DocumentLengths lengths = {};
  friend bool operator==(const ModelUse&, const ModelUse&) = default;
};

/// What a microbatch of an archive is, whatever runs it.
struct ModelWork {
  /// Forward and, where it is trained, backward; what backward computes again does not count.
  Flops flops;
  /// [Layers::storages] true: autocast's 16-bit copies of a parameter.
  std::vector<bool> autocast_copy;
};
/// An archive in a linear order, and what its nodes cost on one kind of device.
struct GraphProfile {
  Graph graph;
  std::vector<NodeId> node_order;  ///< numbers as captured; empty = that order
  Profile profile;
};
/// The profile of an archive's graph. Errors: as read_layers.
GraphProfile graph_profile(const ModelFiles& files, const ModelUse& use, const DeviceKind& kind);
/// The layers of a cluster of this one kind; `order` is the name of the linear order.
Layers layers_of(const GraphProfile& of, const std::string& order);

/// The distinct products of an archive on a device. Errors: ConfigError, also of files that bring
/// their own times.
std::vector<ProductUse> archive_products(const ModelFiles& files, const ModelUse& use,
                                         const DeviceKind& kind);

/// What the files' profile has measured that a message takes beyond its link; 0 if it has not.
/// Errors: ConfigError of the profile.
Nanoseconds message_overhead(const ModelFiles& files);
/// The cluster, its actions longer by the overheads of stages that the files' profile has measured:
/// what goes with the layers that are read from them, whose times are without (profiled_stage.h);
/// and its latencies by message_overhead(). Errors: ConfigError of the profile.
Cluster with_measured_overheads(Cluster cluster, const ModelFiles& files);

/// The layers with the times of every device kind of the cluster. Where no profile has the times of
/// operators without a known cost, those that may matter are among the notes. Errors: ConfigError
/// of the file, also if more than 1 % of the work may be in such operators; one without a place for
/// `operators` that do not fit the model.
Layers read_layers(const ModelFiles& files, const Cluster& cluster, const ModelUse& use = {});

/// The layers of one pipeline of a mesh. A microbatch is that of all replicas together. Errors:
/// ConfigError without a place for a run that cannot be divided.
Layers pipeline_layers(const MeshRun& run, const Network& network);

/// The layers with no other cuts than their use allows: of plans for frameworks, between numbered
/// modules. Errors: RefusedWish of plan.for where there are none.
Layers cut_as_used(Layers layers, const ModelUse& use);

/// The layers of one pipeline, of `use.replicas`, in the mode and with the microbatches of `use`.
/// Errors: RefusedWish of training.lengths if the layers do not say what documents cost.
Layers as_used(Layers layers, const ModelUse& use, const Cluster& cluster);

struct LayersAndWork {
  Layers layers;
  std::optional<ModelWork> work;  ///< of an archive
};
/// The same, and what an archive computes: the file is read once. Errors: as read_layers.
LayersAndWork read_layers_and_work(const ModelFiles& files, const Cluster& cluster,
                                   const ModelUse& use);

}  // namespace pfeife
