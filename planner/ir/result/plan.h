// A plan: everything needed to run a pipeline, as a plain value.
//   for (const auto cut : planned.best().plan.partition.cuts) std::printf("cut after %d\n", cut);
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/machine/replicas.h"
#include "planner/ir/model/model_files.h"
#include "planner/ir/result/choice.h"

namespace pfeife {

/// Nodes of a recomputed block, by their positions in the order: those behind `before` (-1 = from
/// the first on) up to `last`.
struct NodeRange {
  std::int32_t before = -1, last = -1;
  friend bool operator==(const NodeRange&, const NodeRange&) = default;
};

/// A lower bound on the estimate, and the plans that it holds for: all that fit, of these schedules
/// and cuts, in the order of the plan's layers and on its devices.
struct Bound {
  Nanoseconds time{0};
  /// The plan's own cuts alone; else all that the model allows.
  bool given_cuts = false;
  /// Only those cuts whose stages all take at least this share of the mean time for F and B of
  /// a microbatch, each on its own device.
  double least_share = 0;
  /// If true, the bound holds only for cuts by which every two neighbouring stages on different
  /// ranks exchange values and gradients.
  bool linked = false;
  Recompute recompute = Recompute::None;  ///< what plans may choose to recompute
  /// A schedule that is built for costs stands for every order of its stages.
  std::vector<ScheduleSpec> schedules = {};
  std::vector<Bytes> memory_limit = {};  ///< [rank] that plans must keep to
  /// Other problems that were open and that `time` holds for as well, in words ("the other
  /// microbatch sizes of the global batch: 1, 2, 4"). They have no certificate. "" = none.
  std::string uncertified = {};
  friend bool operator==(const Bound&, const Bound&) = default;
};

/// The files that the costs of a plan are made of, by their paths from the plan's folder.
struct PlanFiles {
  ModelFiles model;
  std::string profile_digest;  ///< of the model's profile, if there is one
  std::string cluster;
  Replicas replicas;  ///< of the pipeline
  friend bool operator==(const PlanFiles&, const PlanFiles&) = default;
};

/// Choices, and what follows from them: `order` is empty, for `schedule` has it.
struct Plan : Choice {
  std::string model;  ///< file the layers came from
  std::string model_digest;
  std::string cluster;
  std::string cluster_digest;
  std::string linear_order = "captured";  ///< its name
  /// [position] number of the graph's node as captured; empty = that order, or no graph.
  std::vector<NodeId> node_order;
  Training training;
  double clip_norm = 0;                  ///< largest norm of all gradients together; 0 = any
  std::vector<std::string> cut_modules;  ///< [cut] module path (or layer name) after which it lies
  /// [cut] the last node before it, by its position in the order: what executing needs. Empty
  /// without a graph.
  std::vector<std::int32_t> cut_nodes;
  Schedule schedule;                   ///< lowered
  std::vector<NodeRange> block_nodes;  ///< [recomputed block] for executing; empty without a graph
  Nanoseconds estimate{0};             ///< predicted step
  std::vector<Bytes> peak_memory;      ///< [rank] predicted
  std::optional<Bound> bound;
  std::optional<PlanFiles> files;
  std::map<std::string, std::string> found;  ///< how: versions, seed, candidates

  friend bool operator==(const Plan&, const Plan&) = default;
};

/// They do the same in the same order, whatever their schedules are called.
inline bool runs_alike(const Plan& a, const Plan& b) {
  return a.schedule == b.schedule && a.partition == b.partition && a.activations == b.activations;
}

/// An update needs a number of all gradients: their norm, or whether they are finite (fp16, if the
/// stages are of a graph, which can be run).
inline bool needs_norm(const Plan& plan) {
  if (plan.training.mode == Mode::Forward) return false;
  return plan.clip_norm > 0 ||
         (plan.training.precision == Precision::Fp16Amp && !plan.cut_nodes.empty());
}

}  // namespace pfeife
