#include "planner/cost/stages/stage_temporary.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace pfeife {
namespace {

/// The layers of a stage, each with what its own F, B, I and W change.
class Changes {
 public:
  Changes(const SummedLayers& sums, std::size_t begin, std::size_t end)
      : layers_(sums.layers()),
        begin_(static_cast<std::int32_t>(begin)),
        end_(static_cast<std::int32_t>(end)),
        of_(end - begin),
        alive_(end - begin + 1),
        saved_(layers_.values.size(), 0) {
    for (std::int32_t l = begin_; l < end_; ++l) {
      const Layer& layer = layers_.layers[static_cast<std::size_t>(l)];
      at(LayerId{l}).own = {layer.saved, layer.saved, layer.saved - layer.weight_saved,
                            layer.weight_saved};
      keep_alive(LayerId{l}, LayerId{l}, layer.saved);
    }
    for (const std::uint32_t i : items([&](std::size_t l) { return sums.storages_at(l); }))
      add(layers_.storages[i]);
    for (const std::uint32_t v : items([&](std::size_t l) { return sums.values_at(l); })) add(v);
    for (const std::uint32_t p : items([&](std::size_t l) { return sums.parameters_at(l); }))
      add(layers_.parameters[p]);
    std::partial_sum(alive_.begin(), alive_.end(), alive_.begin());
  }

  StageTemporary highest() const {
    StageTemporary found;
    PassBytes later;                                      // changes of the layers after l
    Bytes entering{0}, returning{0}, not_yet_leaving{0};  // gradients of what they read and make
    Bytes kept{0};        // gradients received that W needs, and so weight_saved has
    Bytes to_be_made{0};  // of what leaves the stage, by them
    for (std::size_t l = of_.size(); l-- > 0;) {
      const Layer& layer = layers_.layers[static_cast<std::size_t>(begin_) + l];
      const Change& change = of_[l];
      entering += change.read;
      kept += change.kept_for_weight;
      // layer.temporary speaks of what is received, too; not of what waits to be handed back.
      const Bytes difference = returning - (leaving_ - not_yet_leaving);
      const auto beside = [&](Bytes PassBytes::*pass, Bytes counted) {
        const Bytes own = layer.temporary.*pass + difference - change.consumed.*pass;
        return std::max(own, entering) - counted + change.passing.*pass;
      };
      const PassBytes& more = layer.temporary;
      found.unkept_forward = std::max(found.unkept_forward, more.forward + alive_[l] - to_be_made);
      found.kept = larger(found.kept,
                          {more.forward - later.forward,
                           beside(&PassBytes::backward, Bytes{0}) + change.waiting - later.backward,
                           beside(&PassBytes::input, kept) + layer.weight_saved - later.input,
                           more.weight - later.weight});
      later += change.own;
      to_be_made += change.leaving_later;
      not_yet_leaving += change.leaving_gradients;
      returning += change.returning;
    }
    return found;
  }

 private:
  struct Change {
    PassBytes own;      // saves in F; frees in B, I (less what W needs), W
    Bytes waiting{0};   // gradients of parameters that later layers used
    PassBytes passing;  // gradients of the stage's own values that pass over it, in B and in I
    // Gradients of values to and from other stages: those that layer.temporary of all layers in
    // between contains, and those that only that of the producer and the readers does.
    Bytes leaving_gradients{0};
    PassBytes consumed;
    Bytes read{0}, returning{0};
    Bytes kept_for_weight{0};  // gradients received that weight_saved of it has
    Bytes leaving_later{0};    // what leaves the stage, with its maker
  };

  /// Numbers that the stage's layers list, each once, rising.
  template <class List>
  std::vector<std::uint32_t> items(const List& list) const {
    std::vector<std::uint32_t> found;
    for (std::int32_t l = begin_; l < end_; ++l) {
      const auto here = list(static_cast<std::size_t>(l));
      found.insert(found.end(), here.begin(), here.end());
    }
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }
  bool inside(LayerId l) const { return l.value >= begin_ && l.value < end_; }
  Change& at(LayerId l) { return of_[static_cast<std::size_t>(l.value - begin_)]; }
  /// The stage's part of sorted layers.
  std::span<const LayerId> own(const std::vector<LayerId>& layers) const {
    const auto from = std::ranges::lower_bound(layers, LayerId{begin_});
    return {from, std::lower_bound(from, layers.end(), LayerId{end_})};
  }
  /// While the layers from `first` to `last` run.
  void keep_alive(LayerId first, LayerId last, Bytes bytes) {
    alive_[static_cast<std::size_t>(first.value - begin_)] += bytes;
    alive_[static_cast<std::size_t>(last.value - begin_ + 1)] -= bytes;
  }
  /// A value of the stage's own.
  bool leaves(const LayerValue& value) const {
    return !value.consumers.empty() && value.consumers.back().value >= end_;
  }

  void add(const LayerStorage& storage) {
    if (const auto for_weight = own(storage.weight_savers); !for_weight.empty())
      at(for_weight.front()).own.weight += storage.bytes;
    const auto savers = own(storage.savers);
    if (savers.empty()) return;
    const LayerId first = savers.front();
    if (storage.value && std::exchange(saved_[*storage.value], true)) return;
    LayerId maker = first;
    if (storage.value) maker = std::min(maker, layers_.values[*storage.value].producer);
    if (!inside(maker)) return;  // received: there from the begin to the end
    if (!storage.value || !leaves(layers_.values[*storage.value])) {
      const LayerId last =
          storage.value ? layers_.values[*storage.value].consumers.back() : savers.back();
      keep_alive(maker, std::max(first, last), storage.bytes);
    }
    at(maker).own.forward += storage.bytes;
    at(first).own.backward += storage.bytes;
    if (own(storage.weight_savers).empty()) at(first).own.input += storage.bytes;
  }

  void add(std::size_t v) {
    const LayerValue& value = layers_.values[v];
    const bool waits = value.waiting_gradient > Bytes{0};
    if (const auto readers = own(value.consumers); !readers.empty()) {
      const LayerId reader = readers.back();
      if (inside(value.producer)) {
        pass(value, reader);
      } else {
        at(reader).read += value.gradient_bytes;
        if (waits) at(reader).returning += value.gradient_bytes;
      }
    }
    if (!inside(value.producer) || !leaves(value)) return;
    Change& maker = at(value.producer);
    maker.leaving_later += value.bytes;
    if (value.producer_keeps_gradient) maker.kept_for_weight += value.gradient_bytes;
    if (waits) {
      maker.consumed.backward += value.waiting_at(value.producer);
      maker.consumed.input += value.waiting_in_input(value.producer);
    } else {
      maker.leaving_gradients += value.gradient_bytes;
      leaving_ += value.gradient_bytes;
    }
    if (!saved_[v]) maker.own.forward += value.bytes;
  }

  /// From the last reader in the producer's stage to the producer.
  void pass(const LayerValue& value, LayerId reader) {
    if (value.waiting_gradient == Bytes{0}) return;
    const bool last = reader == value.consumers.back();
    for (LayerId l{value.producer.value + 1}; l < reader; ++l.value) {
      at(l).passing.backward += last ? value.waiting_at(l) : value.gradient_bytes;
      at(l).passing.input += last ? value.waiting_in_input(l) : value.gradient_bytes;
    }
  }

  /// Autograd adds up the gradients of a stage's users before it hands them on.
  void add(const LayerParameter& parameter) {
    if (!parameter.gradients_wait) return;
    const auto users = own(parameter.users);
    for (std::size_t i = 1; i < users.size(); ++i)
      for (LayerId l = users[i - 1]; l < users[i]; ++l.value) at(l).waiting += parameter.gradient;
  }

  const Layers& layers_;
  const std::int32_t begin_, end_;
  std::vector<Change> of_;  // [layer of the stage]
  // [layer of the stage] of what would be saved: there while the layer runs, as a change until all
  // is added
  std::vector<Bytes> alive_;
  Bytes leaving_{0};                 // sum of Change::made
  std::vector<std::uint8_t> saved_;  // [value] the stage saves its storage
};

}  // namespace

StageTemporary stage_temporary(const SummedLayers& sums, std::size_t begin, std::size_t end) {
  return Changes(sums, begin, end).highest();
}

}  // namespace pfeife
