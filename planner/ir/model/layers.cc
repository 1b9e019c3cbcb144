#include "planner/ir/model/layers.h"

#include <algorithm>

#include "planner/ir/basics/error.h"
#include "planner/ir/model/layer_title.h"

namespace pfeife {

std::string to_string(const std::vector<LayerRange>& ranges) {
  std::string text;
  for (const LayerRange& range : ranges) {
    text += (text.empty() ? "" : " ") + to_string(range.first);
    if (range.last != range.first) text += "-" + to_string(range.last);
  }
  return text;
}

std::string illegal_because(const Layers& layers, const Partition& partition) {
  for (std::size_t i = 0; i < partition.cuts.size(); ++i) {
    const std::int32_t cut = partition.cuts[i];
    if (cut < 0 || static_cast<std::size_t>(cut) + 1 >= layers.size())
      return stream_all("cut ", cut, " is outside 0..",
                        static_cast<std::int64_t>(layers.size()) - 2,
                        ": a cut lies between two of the ", layers.size(), " layers");
    if (i > 0 && cut <= partition.cuts[i - 1])
      return stream_all("cut ", cut, " after cut ", partition.cuts[i - 1], ": cuts must increase");
    const Layer& layer = layers.layers[static_cast<std::size_t>(cut)];
    if (!layer.no_cut_after.empty())
      return stream_all("cut ", cut, " (after layer '", layer_title(layer),
                        "') is not allowed: ", layer.no_cut_after);
  }
  return "";
}

Nanoseconds exposed_reduction(const std::vector<LayerReduction>& reductions, std::size_t begin,
                              std::size_t end) {
  Nanoseconds left{0};  // to be reduced when the backward of a layer ends
  for (std::size_t l = std::min(end, reductions.size()); l-- > begin;) {
    const LayerReduction& reduction = reductions[l];
    left = std::max(left - reduction.beside, Nanoseconds{0}) + reduction.time;
  }
  return left;
}

Nanoseconds whole_reduction(const std::vector<LayerReduction>& reductions, std::size_t begin,
                            std::size_t end) {
  Nanoseconds sum{0};
  for (std::size_t l = begin; l < end && l < reductions.size(); ++l) sum += reductions[l].time;
  return sum;
}

Layers without_collectives(Layers layers) {
  for (std::size_t l = 0; l < layers.collectives.size(); ++l)
    for (LayerTimes& times : layers.layers[l].times) {
      times.forward -= layers.collectives[l].forward;
      times.backward_input -= layers.collectives[l].backward;
    }
  for (std::size_t l = 0; l < layers.reductions.size() && !layers.collectives.empty(); ++l)
    layers.reductions[l].beside -= layers.collectives[l].backward;
  layers.collectives.clear(), layers.steps.clear();
  layers.overlap_factor = 1;  // nothing takes a part of the device
  return layers;
}

Layers cut_only_at(const Partition& cuts, Layers layers) {
  for (std::size_t l = 0; l < layers.size(); ++l)
    if (std::ranges::find(cuts.cuts, static_cast<std::int32_t>(l)) == cuts.cuts.end())
      layers.layers[l].no_cut_after = "cuts are given";
  return layers;
}

}  // namespace pfeife
