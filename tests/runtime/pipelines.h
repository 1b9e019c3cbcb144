// Pipelines of the small models, run on threads: for tests.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "planner/io/model/pt2_reader.h"
#include "planner/ir/basics/error.h"
#include "planner/schedules/families.h"
#include "runtime/device/device.h"
#include "runtime/execute/rank_pipeline.h"
#include "runtime/launch/rank_threads.h"
#include "tests/support/source_folder.h"

namespace pfeife::testing {

/// The models of configs/models that are small enough to execute: long skips, tied and shared
/// weights, batch norm, operators in place, dropout, integers and booleans over cuts.
inline const std::vector<std::string>& tiny_models() {
  static const std::vector<std::string> kNames{"tiny_mlp", "tiny_gpt", "tiny_unet", "tiny_convnet",
                                               "tiny_shared"};
  return kNames;
}

inline std::filesystem::path model_path(const std::string& name,
                                        const std::string& folder = "configs/models") {
  return source_folder() / folder / (name + ".pt2");
}

/// A model with what all its pipelines share.
struct Model {
  explicit Model(const std::string& name, const std::string& folder = "configs/models")
      : graph(read_pt2(model_path(name, folder))),
        source(model_path(name, folder), 1),
        legal(legal_cuts(graph, effects_of(graph))) {
    at::set_num_threads(1);  // one a rank, and sums inside kernels are in one order
  }

  /// Cuts that make `stages` stages of about equally many nodes, each legal.
  std::vector<NodeId> even_cuts(std::size_t stages) const {
    std::vector<NodeId> cuts;
    for (std::size_t s = 1; s < stages; ++s) cuts.push_back(legal.at(s * legal.size() / stages));
    return cuts;
  }
  Pipeline pipeline(const ScheduleSpec& spec) const {
    const Placement placement = placement_for(spec);
    return make_pipeline(graph, even_cuts(placement.stages()), generate(spec), placement,
                         family(spec.family).mode);
  }
  Pipeline unsplit(std::size_t microbatches) const { return unsplit_pipeline(graph, microbatches); }

  Graph graph;
  WeightSource source;
  std::vector<NodeId> legal;
};

inline std::string name_of(const ScheduleSpec& spec) {
  return spec.family + stream_all(" D=", spec.ranks, " N=", spec.microbatches,
                                  " V=", spec.stages_per_rank, " ", knobs(spec));
}

/// One accepted point of every family for each D, N and V of the lists.
inline std::vector<ScheduleSpec> accepted_points(
    std::initializer_list<std::size_t> ranks, std::initializer_list<std::size_t> microbatches,
    std::initializer_list<std::size_t> stages_per_rank) {
  std::vector<ScheduleSpec> found;
  for (const std::size_t n : microbatches)
    for (const std::size_t d : ranks)
      for (const Family& family : families())
        for (const std::size_t v : stages_per_rank) {
          ScheduleSpec spec{std::string(family.name), d, n, v, {}, {}};
          if (!refusal(spec)) found.push_back(spec);
        }
  return found;
}

struct Outcome {
  std::vector<double> losses;                   ///< of the last step
  std::map<ParameterId, at::Tensor> gradients;  ///< after the last step, if not updated
  std::map<ParameterId, at::Tensor> parameters;
  std::map<ValueId, at::Tensor> buffers;
  std::vector<std::vector<TaskRecord>> records;  ///< of the last step
  /// Largest difference between the copies that ranks hold of one parameter or of its gradient.
  double replica_difference = 0;
};

struct RunOptions {
  RankOptions rank{.placing = {.double_precision = true}, .seed = 7, .update = false};
  int steps = 1;
};

inline StepInputs inputs_of(const Pipeline& pipeline, std::uint64_t step, const Placing& placing) {
  StepInputs inputs{step, {}, equal_shares(pipeline.microbatches)};
  for (std::size_t m = 0; m < pipeline.microbatches; ++m)
    inputs.microbatches.push_back(
        synthetic_inputs(pipeline.graph, 1000 + step, MicrobatchId{m}, placing));
  return inputs;
}

/// Notes a rank's tensors; copies of the same tensor on several ranks are compared.
template <class Key>
void note(std::map<Key, at::Tensor>& all, const Key& key, const at::Tensor& tensor,
          double& replica_difference) {
  const auto [known, fresh] = all.try_emplace(key, tensor);
  if (!fresh)
    replica_difference =
        std::max(replica_difference, (tensor - known->second).abs().max().template item<double>());
}

inline void collect(RankPipeline& own, Outcome& outcome) {
  if (const auto losses = own.losses(); !losses.empty()) outcome.losses = losses;
  for (const auto& [p, tensor] : own.tensors().parameters) {
    note(outcome.parameters, p, tensor.detach(), outcome.replica_difference);
    if (tensor.grad().defined())
      note(outcome.gradients, p, tensor.grad(), outcome.replica_difference);
  }
  for (const auto& [b, tensor] : own.tensors().buffers) outcome.buffers[b] = tensor;
}

/// The mean loss of the last step, over all replicas, on every rank. Every rank must call it, once
/// for each `number`.
inline double mean_loss_everywhere(const RankPipeline& own, RankId rank, Transport& transport,
                                   std::uint64_t number) {
  const Tag tag{number, ~std::uint32_t{0} - 91, 0};
  const double share = own.mean_loss().value_or(0);
  double mean = 0;
  for (std::size_t r = 0; r < transport.ranks(); ++r)
    if (RankId{r} != rank) transport.send(RankId{r}, tag, {at::scalar_tensor(share, at::kDouble)});
  for (std::size_t r = 0; r < transport.ranks(); ++r)
    mean +=
        RankId{r} == rank ? share : transport.receive(RankId{r}, tag).tensors.at(0).item<double>();
  return mean;
}

/// Every rank on a thread does what `body` says, then its tensors are collected.
inline Outcome run_with(const Pipeline& pipeline, const WeightSource& source,
                        const RankOptions& options,
                        const std::function<std::vector<TaskRecord>(RankPipeline&)>& body) {
  Outcome outcome;
  outcome.records.resize(pipeline.ranks());
  std::mutex mutex;
  RandomTurns turns;
  run_ranks(pipeline.ranks(), options.placing.device, [&](RankId rank, Transport& transport) {
    RankPipeline own(pipeline, rank, source, options, turns, transport);
    const std::vector<TaskRecord> records = body(own);
    finish(options.placing.device);
    const std::lock_guard lock(mutex);
    outcome.records[rank.index()] = records;
    collect(own, outcome);
  });
  return outcome;
}

inline Outcome run(const Pipeline& pipeline, const WeightSource& source,
                   const RunOptions& options = {}) {
  return run_with(pipeline, source, options.rank, [&](RankPipeline& own) {
    std::vector<TaskRecord> records;
    for (int step = 0; step < options.steps; ++step)
      records =
          own.step(inputs_of(pipeline, static_cast<std::uint64_t>(step), options.rank.placing));
    return records;
  });
}

inline double norm_of(const at::Tensor& tensor) {
  return tensor.to(at::kDouble).norm().item<double>();
}
inline double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>();
}

/// For every parameter the sum of the norms of its gradients of single microbatches.
inline std::map<ParameterId, double> norms_of_microbatches(const Model& model, std::size_t n,
                                                           const RunOptions& options) {
  const Pipeline whole = model.unsplit(n);
  std::map<ParameterId, double> sums;
  for (std::size_t only = 0; only < n; ++only) {
    const Outcome one = run_with(whole, model.source, options.rank, [&](RankPipeline& own) {
      StepInputs inputs = inputs_of(whole, 0, options.rank.placing);
      for (std::size_t m = 0; m < n; ++m)
        if (m != only) inputs.shares[m] = 0;
      return own.step(inputs);
    });
    for (const auto& [p, gradient] : one.gradients) sums[p] += norm_of(gradient);
  }
  return sums;
}

/// Largest |a - b| / |b| over the tensors of both, norms in double; infinity if one is missing.
template <class Key>
double largest_difference(const std::map<Key, at::Tensor>& a, const std::map<Key, at::Tensor>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (const auto& [key, expected] : b) {
    const auto found = a.find(key);
    if (found == a.end()) return std::numeric_limits<double>::infinity();
    const double norm = norm_of(expected), difference = distance(found->second, expected);
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, norm > 0 ? difference / norm : difference);
  }
  return largest;
}

}  // namespace pfeife::testing
