#include "experiments/plans/baseline_cuts.h"

#include <algorithm>

#include "planner/cost/stages/blocks.h"
#include "planner/search/cuts/min_max.h"

namespace pfeife {
namespace {

using CutsSetting = BaselineSettings::Cuts;

/// Behind every block but the last.
Partition block_borders(const std::vector<LayerRange>& blocks) {
  Partition borders;
  for (std::size_t b = 0; b + 1 < blocks.size(); ++b)
    borders.cuts.push_back(static_cast<std::int32_t>(blocks[b].last.value));
  return borders;
}

/// A parameter counts in every stage that uses it.
std::optional<Partition> equal_parameter_cuts(const Layers& layers, std::size_t stages) {
  return min_max_partition(
      layers, stages,
      [&](std::size_t, std::size_t begin, std::size_t end) -> std::optional<double> {
        Bytes sum;
        for (const LayerParameter& parameter : layers.parameters) {
          const auto user = std::ranges::lower_bound(parameter.users, LayerId{begin});
          if (user != parameter.users.end() && user->index() < end) sum += parameter.bytes;
        }
        return static_cast<double>(sum.value);
      });
}

/// Cuts into equally many of the numbered blocks; of all where none has a number.
std::optional<Partition> equal_layer_cuts(const Layers& layers, std::size_t stages) {
  const std::vector<LayerRange> blocks = model_blocks(layers);
  const auto numbered = [&](const LayerRange& block) {
    return in_numbered_module(layers.layers[block.first.index()]);
  };
  const bool any_numbered = std::ranges::any_of(blocks, numbered);
  std::vector<double> counts(layers.size(), 0);  // [layer] 1 where a block that counts ends
  for (const LayerRange& block : blocks)
    if (!any_numbered || numbered(block)) counts[block.last.index()] = 1;
  return cuts_by_share(cut_only_at(block_borders(blocks), layers), stages,
                       [&](std::size_t layer) { return counts[layer]; });
}

BaselineCuts given_cuts(const Partition& cuts, const Layers& layers, std::size_t stages) {
  if (cuts.stages() != stages)
    return {{},
            "these cuts make " + std::to_string(cuts.stages()) + " stages; the schedule has " +
                std::to_string(stages)};
  return {cuts, illegal_because(layers, cuts)};
}

}  // namespace

Layers cut_where(const BaselineSettings& settings, const Layers& layers) {
  return settings.at_blocks ? cut_only_at(block_borders(model_blocks(layers)), layers) : layers;
}

BaselineCuts baseline_cuts(const BaselineSettings& settings, const Layers& layers,
                           const Placement& placement, const Cluster& cluster) {
  if (settings.cuts == CutsSetting::Given)
    return given_cuts({settings.given_cuts}, layers, placement.stages());
  const auto cuts = settings.cuts == CutsSetting::EqualParameters
                        ? equal_parameter_cuts(layers, placement.stages())
                    : settings.cuts == CutsSetting::EqualLayers
                        ? equal_layer_cuts(layers, placement.stages())
                        : equal_time_cuts(layers, placement, cluster);
  if (cuts) return {*cuts, ""};
  return {{},
          "the model cannot be cut into " + std::to_string(placement.stages()) + " stages" +
              (settings.at_blocks ? " at its blocks" : "")};
}

std::string cuts_in_words(const BaselineSettings& settings) {
  std::string text = settings.cuts == CutsSetting::Search ? "searched" : to_string(settings.cuts);
  std::ranges::replace(text, '_', '-');
  return text + " cuts" + (settings.at_blocks ? " between blocks" : "");
}

}  // namespace pfeife
