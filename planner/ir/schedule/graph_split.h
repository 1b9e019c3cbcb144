// Which stage executes which nodes, and what it needs and hands on: a graph cut into stages.
//
// A value goes straight from the stage that makes it to each stage that reads it, once. The model's
// inputs are at hand on every rank. Free nodes are executed by every stage that reads them and
// never sent: those that depend on no input, parameter, random number or buffer that is written
// (positions, masks, rotary tables), and views of the model's inputs that nothing writes into.
//   const PlannedStages cut = stages_of(planned);
//   for (const StageSlice& stage : cut.split.stages) std::printf("%zu nodes\n",
//   stage.nodes.size());
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/ir/model/graph.h"
#include "planner/ir/model/node_effects.h"
#include "planner/ir/schedule/schedule.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// A value that another stage reads.
struct Crossing {
  ValueId value;
  StageId from, to;
  bool gradient = false;  ///< the reader sends a gradient back
  friend auto operator<=>(const Crossing&, const Crossing&) = default;
};

/// What one stage executes and holds; all lists sorted.
struct StageSlice {
  std::vector<NodeId> nodes;    ///< in order of execution
  std::vector<ValueId> inputs;  ///< of the model
  std::vector<ParameterId> parameters;
  std::vector<ValueId> buffers;          ///< buffers and constants
  std::vector<ValueId> written_buffers;  ///< those it updates
  /// The written_buffers whose contents a node of the graph reads that is neither their only
  /// reader nor a batch norm: each microbatch has a tensor of its own for them.
  std::vector<ValueId> microbatch_buffers;
  std::vector<ValueId> outputs;  ///< of the model, made here
  friend bool operator==(const StageSlice&, const StageSlice&) = default;
};

struct GraphSplit {
  std::vector<StageSlice> stages;
  std::vector<Crossing> crossings;  ///< sorted by (from, to, value)

  /// The crossings from one stage to another, in order.
  std::vector<Crossing> between(StageId from, StageId to) const;
};

/// [value] A number that values have in common which may share a storage.
std::vector<std::size_t> storage_classes(const Graph& graph,
                                         const std::vector<NodeEffects>& effects);

/// Cuts the captured order after the given nodes (strictly increasing): stage s = the nodes after
/// cut s - 1 up to cut s. ConfigError if a cut goes through a storage that is written in place on
/// its far side, or separates the users of a buffer that one of them updates; names both nodes.
GraphSplit split_graph(const Graph& graph, const std::vector<NodeEffects>& effects,
                       std::span<const NodeId> cuts);
/// The whole model as one stage.
GraphSplit whole_graph(const Graph& graph, const std::vector<NodeEffects>& effects);

/// [node] true if every stage that reads its results runs it for itself: the one answer for what
/// the planner prices and what a runtime sends. Operators that read only a tensor's shape do not
/// depend on it.
std::vector<bool> free_nodes(const Graph& graph, const std::vector<NodeEffects>& effects);

/// For a model that names a loss weight: one stage that computes the weight alone, from the
/// model's inputs. ConfigError naming what the weight depends on besides: parameters, buffers that
/// are written, random numbers.
GraphSplit loss_weight_graph(const Graph& graph, const std::vector<NodeEffects>& effects);

/// Nodes after which split_graph accepts a single cut.
std::vector<NodeId> legal_cuts(const Graph& graph, const std::vector<NodeEffects>& effects);

/// What lowering and validation need to know of it: tied = stages that share a trainable parameter,
/// unless all are on one rank, which then has one gradient for it.
StageGraph stage_graph(const Graph& graph, const GraphSplit& split, const Placement& placement);
/// The same with times of one unit and the true sizes of messages: to lower schedules with.
StageCosts unit_costs(const Graph& graph, const GraphSplit& split, const Placement& placement);

}  // namespace pfeife
