#include "planner/cost/layers/forward_layers.h"

namespace pfeife {

Layers forward_layers(Layers layers) {
  layers.mode = Mode::Forward;
  for (Layer& layer : layers.layers) {
    for (LayerTimes& times : layer.times) times = {.forward = times.forward};
    layer.weight_saved = Bytes{0};
    layer.temporary = {.forward = layer.temporary.forward};
  }
  for (LayerValue& value : layers.values) {
    value.gradient_bytes = value.waiting_gradient = Bytes{0};
    value.kept_for_weight.reset();
    value.producer_keeps_gradient = false;
  }
  for (LayerStorage& storage : layers.storages) storage.weight_savers.clear();
  for (LayerParameter& parameter : layers.parameters) {
    parameter.gradient = parameter.state = parameter.exchanged = Bytes{0};
    parameter.optimizer.clear();
  }
  layers.reductions.clear();
  for (LayerCollectives& waited : layers.collectives) waited.backward = Nanoseconds{0};
  return layers;
}

}  // namespace pfeife
