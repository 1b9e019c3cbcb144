#include <cmath>

#include "planner/ir/basics/error.h"
#include "runtime/model/loss.h"

namespace pfeife {
namespace {

constexpr StageId kStage{0};

Placing on_host(Placing placing) {
  placing.device = at::kCPU;
  return placing;
}

}  // namespace

LossWeights::LossWeights(const Graph& graph, const std::vector<NodeEffects>& effects,
                         const WeightSource& source, const Placing& placing, RandomTurns& turns)
    : graph_(graph),
      effects_(effects),
      split_(loss_weight_graph(graph, effects)),
      tensors_(load_tensors(graph, split_, {&kStage, 1}, source, on_host(placing))),
      stage_(graph, effects, split_, kStage, tensors_, turns,
             StageOptions{.placing = on_host(placing), .training = false}) {}

std::vector<double> LossWeights::of(const StepInputs& inputs,
                                    const std::function<const Graph&(std::int64_t)>& resized) {
  StepInputs read;
  read.step = inputs.step;
  read.samples = inputs.samples;
  for (const auto& given : inputs.microbatches) {
    auto& microbatch = read.microbatches.emplace_back();
    for (const ValueId input : split_.stages[0].inputs)
      microbatch[input] = given.at(input).to(at::kCPU).contiguous();
  }
  stage_.begin(read);
  std::vector<double> weights;
  for (std::size_t i = 0; i < read.microbatches.size(); ++i) {
    const MicrobatchId m{i};
    double weight = 0;
    if (const std::int64_t samples = read.samples_of(m, graph_); samples > 0) {
      stage_.add_size(resized(samples), effects_);
      stage_.forward(m, {});
      weight = stage_.output(m, *graph_.loss_weight).item<double>();
    }
    if (!(weight >= 0 && std::isfinite(weight)))
      throw RuntimeFault(stream_all("the loss's weight '", graph_.value(*graph_.loss_weight).name,
                                    "' of microbatch ", i, " is ", weight,
                                    "; it must be a number of at least 0, such as a count of "
                                    "labels"));
    weights.push_back(weight);
  }
  return weights;
}

}  // namespace pfeife
