#include "planner/cost/layers/microbatch_layers.h"

#include <algorithm>
#include <cmath>

namespace pfeife {
namespace {

double attention_of(const Layers& layers, std::size_t l) {
  return layers.sequence ? std::min(1.0, layers.sequence->attention[l]) : 0;
}

double compute_scale(const MicrobatchScale& scale, double attention) {
  if (scale.linear == scale.attention) return scale.linear;
  return (1 - attention) * scale.linear + attention * scale.attention;
}

std::int64_t scaled(std::int64_t value, double factor) {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(value) * factor));
}
void scale(Nanoseconds& time, double factor) { time = Nanoseconds{scaled(time.count(), factor)}; }
void scale(Bytes& bytes, double factor) { bytes = Bytes{scaled(bytes.value, factor)}; }

}  // namespace

Layers layers_of_scale(Layers layers, const MicrobatchScale& size) {
  layers.microbatches.clear();
  const double linear = size.linear;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    Layer& layer = layers.layers[l];
    const double compute = compute_scale(size, attention_of(layers, l));
    for (LayerTimes& times : layer.times)
      scale(times.forward, compute), scale(times.backward_input, compute),
          scale(times.backward_weight, compute);
    scale(layer.saved, linear), scale(layer.weight_saved, linear);
    scale(layer.model_input, linear);
    PassBytes& temporary = layer.temporary;
    scale(temporary.forward, linear), scale(temporary.backward, linear);
    scale(temporary.input, linear), scale(temporary.weight, linear);
    if (!layers.collectives.empty())
      scale(layers.collectives[l].forward, compute), scale(layers.collectives[l].backward, compute);
    if (!layers.reductions.empty()) scale(layers.reductions[l].beside, compute);
  }
  for (LayerValue& value : layers.values) {
    scale(value.bytes, linear), scale(value.gradient_bytes, linear);
    scale(value.waiting_gradient, linear);
    if (value.transfer_time) scale(*value.transfer_time, linear);
  }
  for (LayerStorage& storage : layers.storages) scale(storage.bytes, linear);
  return layers;
}

Layers mean_microbatch(const Layers& layers) {
  MicrobatchScale mean{0, 0};
  const auto count = static_cast<double>(layers.microbatches.size());
  for (const MicrobatchScale& scale : layers.microbatches)
    mean.linear += scale.linear / count, mean.attention += scale.attention / count;
  return layers_of_scale(layers, mean);
}

Layers least_microbatch(const Layers& layers) {
  double least = layers.microbatches.front().least();
  for (const MicrobatchScale& scale : layers.microbatches) least = std::min(least, scale.least());
  return layers_of_scale(layers, {least, least});
}

double least_work(const Layers& layers, std::size_t l, bool alike) {
  double sum = 0;
  for (const MicrobatchScale& scale : layers.microbatches)
    sum += alike ? compute_scale(scale, attention_of(layers, l)) : scale.least();
  return sum;
}

}  // namespace pfeife
