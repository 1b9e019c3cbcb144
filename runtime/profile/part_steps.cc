#include "runtime/profile/part_steps.h"

#include <algorithm>
#include <optional>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::uint32_t kPartTask = ~std::uint32_t{0} - 23;
/// Nodes on each side of an even cut among which the best one is looked for: a layer or so.
constexpr std::size_t kNearby = 16;

/// What crosses a cut; nullopt if it is not legal.
std::optional<Bytes> crossing_bytes(const Graph& graph, const std::vector<NodeEffects>& effects,
                                    NodeId cut) {
  try {
    Bytes sum{0};
    for (const Crossing& crossing : split_graph(graph, effects, {&cut, 1}).crossings)
      sum += graph.value(crossing.value).type.bytes();
    return sum;
  } catch (const ConfigError&) {  // the answer to the question asked
    return std::nullopt;
  }
}

}  // namespace

std::vector<NodeId> part_cuts(const Graph& graph, const std::vector<NodeEffects>& effects,
                              std::size_t parts) {
  std::vector<NodeId> cuts;
  const std::size_t nodes = graph.nodes.size();
  for (std::size_t part = 1; part < parts; ++part) {
    const std::size_t even = part * nodes / parts;
    const std::size_t first = std::max(even, kNearby + 1) - kNearby;
    const std::size_t begin = cuts.empty() ? first : std::max(first, cuts.back().index() + 2);
    std::optional<std::pair<Bytes, NodeId>> best;
    for (std::size_t n = begin; n <= even + kNearby && n + 1 < nodes; ++n)
      if (const auto bytes = crossing_bytes(graph, effects, NodeId{n - 1}))
        if (!best || *bytes < best->first) best = {*bytes, NodeId{n - 1}};
    if (best) cuts.push_back(best->second);
  }
  return cuts;
}

PartSteps::PartSteps(const Graph& graph, const std::vector<NodeEffects>& effects, std::size_t parts,
                     RankTensors& tensors, RandomTurns& turns, const StageOptions& options,
                     Transport* together)
    : split_(split_graph(graph, effects, part_cuts(graph, effects, parts))), together_(together) {
  for (std::size_t s = 0; s < split_.stages.size(); ++s)
    stages_.push_back(
        std::make_unique<GraphStage>(graph, effects, split_, StageId{s}, tensors, turns, options));
}

void PartSteps::begin(const StepInputs& inputs) {
  step_ = inputs.step;
  microbatches_ = inputs.microbatches.size();
  for (const auto& stage : stages_) stage->begin(inputs);
}

void PartSteps::end() {
  for (const auto& stage : stages_) stage->end();
}

void PartSteps::run(const StepInputs& inputs, const Time& time) {
  begin(inputs);
  const auto pass = [&](std::size_t s, std::size_t m, bool forward) {
    GraphStage& stage = *stages_[s];
    const StageId here{s};
    const MicrobatchId microbatch{m};
    PerStage in;
    for (const StageId other : forward ? stage.sources() : stage.destinations())
      in.push_back(take({other, here, microbatch, forward}));
    time(forward ? Forward : BackwardInput, s, [&] {
      PerStage out = forward ? stage.forward(microbatch, in) : stage.backward_input(microbatch, in);
      const std::vector<StageId>& others = forward ? stage.destinations() : stage.sources();
      for (std::size_t i = 0; i < others.size(); ++i)
        hand_on({here, others[i], microbatch, forward}, std::move(out[i]));
    });
  };
  for (std::size_t s = 0; s < parts(); ++s)
    for (std::size_t m = 0; m < microbatches_; ++m) pass(s, m, true);
  for (std::size_t s = parts(); s-- > 0;)
    for (std::size_t m = 0; m < microbatches_; ++m) pass(s, m, false);
  for (std::size_t s = parts(); s-- > 0;)
    for (std::size_t m = 0; m < microbatches_; ++m)
      time(BackwardWeight, s, [&] { stages_[s]->backward_weight(MicrobatchId{m}); });
  end();
}

Tag PartSteps::tag(const Route& route) const {
  const auto parts = static_cast<std::uint32_t>(stages_.size());
  const auto number = [](auto id) { return static_cast<std::uint32_t>(id.value); };
  const std::uint32_t pair = number(route.from) * parts + number(route.to);
  return {step_, kPartTask,
          (pair * static_cast<std::uint32_t>(microbatches_)) + number(route.microbatch)};
}

void PartSteps::hand_on(const Route& route, Tensors tensors) {
  if (alone()) {
    handed_[route] = std::move(tensors);
    return;
  }
  const RankId next{(together_->rank().index() + 1) % together_->ranks()};
  together_->send(next, tag(route), std::move(tensors));
}

Tensors PartSteps::take(const Route& route) {
  if (alone()) return std::move(handed_.extract(route).mapped());
  const RankId before{(together_->rank().index() + together_->ranks() - 1) % together_->ranks()};
  return std::move(together_->receive(before, tag(route)).tensors);
}

}  // namespace pfeife
