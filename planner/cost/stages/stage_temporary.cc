#include "planner/cost/stages/stage_temporary.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace pfeife {
namespace {

/// Layers, each with what its own F, B, I and W change.
class Changes {
 public:
  Changes(const Layers& layers, std::span<const StageId> stage_of, std::size_t stages)
      : layers_(layers),
        stage_of_(stage_of),
        own_(layers.size()),
        waiting_(layers.size()),
        passing_(layers.size()),
        made_(layers.size()),
        consumed_(layers.size()),
        read_(layers.size()),
        returning_(layers.size()),
        kept_for_weight_(layers.size()),
        alive_(layers.size() + 1),
        leaving_later_(layers.size()),
        leaving_(stages),
        counted_(layers.values.size() * stages) {
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const Layer& layer = layers.layers[l];
      own_[l] = {layer.saved, layer.saved, layer.saved - layer.weight_saved, layer.weight_saved};
      keep_alive(l, l, layer.saved);
    }
    for (const LayerStorage& storage : layers.storages) add(storage);
    for (std::size_t v = 0; v < layers.values.size(); ++v) add(v);
    for (const LayerParameter& parameter : layers.parameters) add(parameter);
    std::partial_sum(alive_.begin(), alive_.end(), alive_.begin());
  }

  std::vector<StageTemporary> highest() const {
    std::vector<StageTemporary> found(leaving_.size());
    PassBytes later;                                      // changes of the layers after l
    Bytes entering{0}, returning{0}, not_yet_leaving{0};  // gradients of what they read and make
    Bytes kept{0};        // gradients received that W needs, and so weight_saved has
    Bytes to_be_made{0};  // of what leaves the stage, by them
    for (std::size_t l = layers_.size(); l-- > 0;) {
      if (l + 1 == layers_.size() || stage_of_[l] != stage_of_[l + 1])
        later = {}, entering = returning = kept = not_yet_leaving = to_be_made = Bytes{0};
      const Layer& layer = layers_.layers[l];
      const std::size_t s = stage_of_[l].index();
      entering += read_[l];
      kept += kept_for_weight_[l];
      // Of what is received, layer.temporary speaks, too; not of what waits to be handed back.
      const Bytes difference = returning - (leaving_[s] - not_yet_leaving);
      const auto beside = [&](Bytes PassBytes::*pass, Bytes counted) {
        const Bytes own = layer.temporary.*pass + difference - consumed_[l].*pass;
        return std::max(own, entering) - counted + passing_[l].*pass;
      };
      const PassBytes& more = layer.temporary;
      found[s].unkept_forward =
          std::max(found[s].unkept_forward, more.forward + alive_[l] - to_be_made);
      found[s].kept = larger(found[s].kept,
                             {more.forward - later.forward,
                              beside(&PassBytes::backward, Bytes{0}) + waiting_[l] - later.backward,
                              beside(&PassBytes::input, kept) + layer.weight_saved - later.input,
                              more.weight - later.weight});
      later += own_[l];
      to_be_made += leaving_later_[l];
      not_yet_leaving += made_[l];
      returning += returning_[l];
    }
    return found;
  }

 private:
  StageId stage(LayerId l) const { return stage_of_[l.index()]; }
  /// While the layers from `first` to `last` run.
  void keep_alive(std::size_t first, std::size_t last, Bytes bytes) {
    alive_[first] += bytes, alive_[last + 1] -= bytes;
  }
  std::uint8_t& counted(std::size_t value, StageId by) {
    return counted_[value * leaving_.size() + by.index()];
  }
  bool leaves(const LayerValue& value) const {
    return !value.consumers.empty() && stage(value.consumers.back()) != stage(value.producer);
  }
  /// The last of the sorted `layers` that is in the stage.
  LayerId last_in(StageId s, const std::vector<LayerId>& layers) const {
    const auto behind = std::ranges::find_if(layers, [&](LayerId l) { return stage(l) > s; });
    return *std::prev(behind);
  }

  void add(const LayerStorage& storage) {
    for (std::size_t i = 0; i < storage.savers.size(); ++i) {
      const LayerId first = storage.savers[i];
      if (i > 0 && stage(storage.savers[i - 1]) == stage(first)) continue;
      if (storage.value && std::exchange(counted(*storage.value, stage(first)), true)) continue;
      const bool for_weight = std::ranges::any_of(
          storage.weight_savers, [&](LayerId l) { return stage(l) == stage(first); });
      LayerId made = first;
      if (storage.value) made = std::min(made, layers_.values[*storage.value].producer);
      if (stage(made) != stage(first)) continue;  // received: there from the begin to the end
      if (!storage.value || !leaves(layers_.values[*storage.value])) {
        const LayerId last = storage.value ? layers_.values[*storage.value].consumers.back()
                                           : last_in(stage(first), storage.savers);
        keep_alive(made.index(), std::max(first, last).index(), storage.bytes);
      }
      own_[made.index()].forward += storage.bytes;
      own_[first.index()].backward += storage.bytes;
      if (!for_weight) own_[first.index()].input += storage.bytes;
    }
    for (std::size_t i = 0; i < storage.weight_savers.size(); ++i)
      if (const LayerId first = storage.weight_savers[i];
          i == 0 || stage(storage.weight_savers[i - 1]) != stage(first))
        own_[first.index()].weight += storage.bytes;
  }

  void add(std::size_t v) {
    const LayerValue& value = layers_.values[v];
    const StageId from = stage(value.producer);
    const bool waits = value.waiting_gradient > Bytes{0};
    for (std::size_t i = 0; i < value.consumers.size(); ++i) {
      const LayerId reader = value.consumers[i];
      const bool last =
          i + 1 == value.consumers.size() || stage(value.consumers[i + 1]) != stage(reader);
      if (!last) continue;
      if (stage(reader) == from) {
        pass(value, reader);
        continue;
      }
      read_[reader.index()] += value.gradient_bytes;
      if (waits) returning_[reader.index()] += value.gradient_bytes;
    }
    if (!leaves(value)) return;
    leaving_later_[value.producer.index()] += value.bytes;
    if (value.producer_keeps_gradient)
      kept_for_weight_[value.producer.index()] += value.gradient_bytes;
    if (waits) {
      consumed_[value.producer.index()].backward += value.waiting_at(value.producer);
      consumed_[value.producer.index()].input += value.waiting_in_input(value.producer);
    } else {
      made_[value.producer.index()] += value.gradient_bytes;
      leaving_[from.index()] += value.gradient_bytes;
    }
    if (!counted(v, from)) own_[value.producer.index()].forward += value.bytes;
  }

  /// From the last reader in the producer's stage to the producer.
  void pass(const LayerValue& value, LayerId reader) {
    if (value.waiting_gradient == Bytes{0}) return;
    const bool last = reader == value.consumers.back();
    for (LayerId l{value.producer.value + 1}; l < reader; ++l.value) {
      passing_[l.index()].backward += last ? value.waiting_at(l) : value.gradient_bytes;
      passing_[l.index()].input += last ? value.waiting_in_input(l) : value.gradient_bytes;
    }
  }

  /// Autograd adds up the gradients of a stage's users before it hands them on.
  void add(const LayerParameter& parameter) {
    if (!parameter.gradients_wait) return;
    for (std::size_t i = 1; i < parameter.users.size(); ++i)
      if (stage(parameter.users[i - 1]) == stage(parameter.users[i]))
        for (LayerId l = parameter.users[i - 1]; l < parameter.users[i]; ++l.value)
          waiting_[l.index()] += parameter.gradient;
  }

  const Layers& layers_;
  std::span<const StageId> stage_of_;
  std::vector<PassBytes> own_;  // [layer] saves in F; frees in B, I (less what W needs), W
  std::vector<Bytes> waiting_;  // [layer] gradients of parameters that later layers used
  // [layer] gradients of the stage's own values that pass over it, in B and in I
  std::vector<PassBytes> passing_;
  // [layer] gradients of values to and from other stages: those that layer.temporary of all layers
  // in between contains, and those that only that of the producer and the readers does
  std::vector<Bytes> made_;
  std::vector<PassBytes> consumed_;
  std::vector<Bytes> read_, returning_;
  std::vector<Bytes> kept_for_weight_;  // [layer] gradients received that weight_saved of it has
  // [layer] of what would be saved: there while the layer runs, as a change until all is added; and
  // what leaves the stage, with its maker
  std::vector<Bytes> alive_, leaving_later_;
  std::vector<Bytes> leaving_;         // [stage] sum of made_
  std::vector<std::uint8_t> counted_;  // [value x stage] whether the stage saves its storage
};

}  // namespace

std::vector<StageTemporary> stage_temporary(const Layers& layers, std::span<const StageId> stage_of,
                                            std::size_t stages) {
  return Changes(layers, stage_of, stages).highest();
}

}  // namespace pfeife
