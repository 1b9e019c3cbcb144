// Published runs of pipelines whose ranks share the output layer, with the measured times of their
// stages: data/vocabulary_parallelism.csv, and the costs that these times are.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "planner/ir/machine/network.h"
#include "planner/ir/schedule/stage_costs.h"
#include "planner/mesh/mesh_price.h"

namespace pfeife::shared_head {

/// A run. Times by stage, in us.
struct PublishedStages {
  std::string name;    ///< of the published file's row
  std::string method;  ///< baseline, redistributed, vocab_1, vocab_2 or interlaced
  std::size_t sequence = 0, vocabulary = 0, microbatches = 0, layers_of_last_stage = 0;
  double step_ms = 0;  ///< measured
  std::vector<double> forward, backward;
  std::vector<double> output;  ///< the rank's share of the output layer, S and T together
  std::vector<double> embedding_forward, embedding_backward;  ///< its share of the input embedding
  double message_and_answer =
      0;  ///< a value to the next stage and a gradient back; 0 = not measured

  std::size_t ranks() const { return forward.size(); }
  std::string family() const;  ///< of its schedule
};

/// Errors: ConfigError with the cell.
std::vector<PublishedStages> read_runs(const std::filesystem::path& file);

/// The measured times as costs. S and T divide the output layer's time as they divide its three
/// products of equal size: S has one of them with two barriers, two with one barrier. The shares of
/// the input embedding, whose place in a row the times do not depend on, are part of T. Collectives
/// take no time: they were not measured by themselves, those of interlaced runs are in S and T.
StageCosts measured_costs(const PublishedStages& run);

/// The schedule of the run under its measured times, and how long it takes without contention.
struct Replay {
  Schedule lowered;
  Placement placement;
  StageCosts costs;
  Nanoseconds step{0};  ///< estimated
};
Replay replay(const PublishedStages& run);

/// GPT as the authors' script trains it (pretrain_gpt.sh): Megatron-LM, fp16, fused attention, no
/// dropout, no recomputation, output layer and embedding untied. `redistributed` runs have the cuts
/// that this project finds for whole layers.
MeshRun mesh_run(const PublishedStages& run);

/// Estimated: the step and the memory of every rank. Nothing of the measured times is used.
MeshPrice from_shapes(const PublishedStages& run, const Network& network);

}  // namespace pfeife::shared_head
