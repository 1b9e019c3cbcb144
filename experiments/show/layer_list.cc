#include <fmt/format.h>

#include <algorithm>

#include "experiments/show/texts.h"
#include "planner/io/files/csv_table.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/printable.h"
#include "planner/ir/model/layer_title.h"

namespace pfeife {
namespace {

/// Bytes of a layer by itself.
struct LayerBytes {
  Bytes sent{0};        ///< by a cut after it, forward
  Bytes parameters{0};  ///< of those that it uses first
  Bytes saved{0};       ///< from F to B or I, of those that it saves first
};

std::vector<LayerBytes> bytes_of(const Layers& layers) {
  std::vector<LayerBytes> bytes(layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) bytes[l].saved = layers.layers[l].saved;
  for (const LayerValue& value : layers.values)
    for (std::size_t l = value.producer.index(); l < value.consumers.back().index(); ++l)
      bytes[l].sent += value.bytes;
  for (const LayerParameter& parameter : layers.parameters)
    bytes[parameter.users.front().index()].parameters += parameter.bytes;
  for (const LayerStorage& storage : layers.storages)
    if (!storage.savers.empty()) bytes[storage.savers.front().index()].saved += storage.bytes;
  return bytes;
}

std::string title_of(const Layer& layer) { return printable_line(layer_title(layer)); }

}  // namespace

std::string layer_table(const Layers& layers, const Cluster& cluster) {
  const std::vector<LayerBytes> bytes = bytes_of(layers);
  std::size_t width = 17;
  for (const Layer& layer : layers.layers) width = std::max(width, title_of(layer).size());
  const auto mib = [](Bytes amount) {
    return fixed(static_cast<double>(amount.value) / static_cast<double>(kMiB.value), 3);
  };
  std::string text = fmt::format(
      "{} layers of {}, {} on a {}; a cut has the number of the layer that it lies after\n\n",
      layers.size(), layers.name.empty() ? "the model" : printable_line(layers.name),
      layers.microbatch_size == 1 ? "1 sample" : fmt::format("{} samples", layers.microbatch_size),
      printable_line(cluster.kinds.front().name));
  text += fmt::format("{:>6}  {:<{}}  {:>10}  {:>10}  {:>10}  {:>12}  {:>14}  {:>12}\n", "layer",
                      "module (operator)", width, "F, ms", "I, ms", "W, ms", "sent, MiB",
                      "parameters, MiB", "saved, MiB");
  bool forbidden = false;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const Layer& layer = layers.layers[l];
    const LayerTimes& times = layer.times.front();
    const bool no_cut = !layer.no_cut_after.empty();
    forbidden = forbidden || no_cut;
    text += fmt::format("{:>6}  {:<{}}  {:>10}  {:>10}  {:>10}  {:>12}  {:>15}  {:>12}\n",
                        fmt::format("{}{}", l, no_cut ? "!" : ""), title_of(layer), width,
                        fixed(milliseconds(times.forward), 4),
                        fixed(milliseconds(times.backward_input), 4),
                        fixed(milliseconds(times.backward_weight), 4), mib(bytes[l].sent),
                        mib(bytes[l].parameters), mib(bytes[l].saved));
  }
  return forbidden ? text + "\n! no cut may lie after it; --layers=csv says why\n" : text;
}

std::string layers_csv(const Layers& layers, const Cluster& cluster) {
  const std::vector<LayerBytes> bytes = bytes_of(layers);
  std::string text =
      "layer,name,module,device_kind,forward_ns,backward_input_ns,backward_weight_ns,sent_bytes,"
      "parameter_bytes,saved_bytes,weight_saved_bytes,temporary_bytes,no_cut_after\n";
  for (std::size_t l = 0; l < layers.size(); ++l)
    for (std::size_t k = 0; k < cluster.kinds.size(); ++k) {
      const Layer& layer = layers.layers[l];
      const LayerTimes& times = layer.times[k];
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", l, csv_cell(layer.name),
                          csv_cell(layer.module_path), csv_cell(cluster.kinds[k].name),
                          times.forward.count(), times.backward_input.count(),
                          times.backward_weight.count(), bytes[l].sent.value,
                          bytes[l].parameters.value, bytes[l].saved.value, layer.weight_saved.value,
                          layer.temporary.largest().value, csv_cell(layer.no_cut_after));
    }
  return text;
}

}  // namespace pfeife
