// Pipelines of the small models, run on threads: for tests.
#pragma once

#include <filesystem>
#include <string>

#include "planner/io/pt2_reader.h"
#include "planner/schedules/families.h"
#include "runtime/pipeline.h"

namespace pfeife::testing {

inline std::filesystem::path model_path(const std::string& name) {
  return std::filesystem::path(PFEIFE_SOURCE_DIR) / "configs/models" / (name + ".pt2");
}

/// Cuts that make `stages` stages of about equally many nodes, each legal.
inline std::vector<NodeId> even_cuts(const Graph& graph, std::size_t stages) {
  const auto legal = legal_cuts(graph, effects_of(graph));
  std::vector<NodeId> cuts;
  for (std::size_t s = 1; s < stages; ++s) cuts.push_back(legal.at(s * legal.size() / stages));
  return cuts;
}

struct Outcome {
  std::vector<double> losses;                   ///< of the last step
  std::map<ParameterId, at::Tensor> gradients;  ///< after the last step, if not updated
  std::map<ParameterId, at::Tensor> parameters;
  std::map<ValueId, at::Tensor> buffers;
  std::vector<std::vector<TaskRecord>> records;  ///< of the last step
  /// Largest difference between the copies that ranks hold of one parameter.
  double replica_difference = 0;
};

struct RunOptions {
  RankOptions rank{.placing = {.double_precision = true}, .seed = 7, .update = false};
  int steps = 1;
};

inline StepInputs inputs_of(const Pipeline& pipeline, std::uint64_t step, const Placing& placing) {
  StepInputs inputs{step, {}, equal_scale(pipeline.microbatches)};
  for (std::size_t m = 0; m < pipeline.microbatches; ++m)
    inputs.microbatches.push_back(synthetic_inputs(
        pipeline.graph, 1000 + step, MicrobatchId{static_cast<std::int64_t>(m)}, placing));
  return inputs;
}

inline Outcome run(const Pipeline& pipeline, const WeightSource& source,
                   const RunOptions& options = {}) {
  Outcome outcome;
  outcome.records.resize(pipeline.ranks());
  std::mutex mutex;
  RandomTurns turns;
  run_ranks(pipeline.ranks(), [&](RankId rank, Transport& transport) {
    RankPipeline own(pipeline, rank, source, options.rank, turns, transport);
    std::vector<TaskRecord> records;
    for (int step = 0; step < options.steps; ++step)
      records =
          own.step(inputs_of(pipeline, static_cast<std::uint64_t>(step), options.rank.placing));
    const std::lock_guard lock(mutex);
    outcome.records[rank.index()] = records;
    if (const auto losses = own.losses(); !losses.empty()) outcome.losses = losses;
    for (const auto& [p, tensor] : own.tensors().parameters) {
      if (const auto known = outcome.parameters.find(p); known != outcome.parameters.end())
        outcome.replica_difference =
            std::max(outcome.replica_difference,
                     (tensor.detach() - known->second).abs().max().template item<double>());
      outcome.parameters[p] = tensor.detach();
      if (tensor.grad().defined()) outcome.gradients[p] = tensor.grad();
    }
    for (const auto& [b, tensor] : own.tensors().buffers) outcome.buffers[b] = tensor;
  });
  return outcome;
}

/// Largest |a - b| / |b| over the tensors of both, norms in double; infinity if one is missing.
template <class Key>
double largest_difference(const std::map<Key, at::Tensor>& a, const std::map<Key, at::Tensor>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (const auto& [key, expected] : b) {
    const auto found = a.find(key);
    if (found == a.end()) return std::numeric_limits<double>::infinity();
    const double norm = expected.to(at::kDouble).norm().template item<double>();
    const double difference =
        (found->second.to(at::kDouble) - expected.to(at::kDouble)).norm().template item<double>();
    largest = std::max(largest, norm > 0 ? difference / norm : difference);
  }
  return largest;
}

}  // namespace pfeife::testing
