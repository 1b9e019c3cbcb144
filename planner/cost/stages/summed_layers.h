// Layers prepared for the costs of many partitions: sums up to every layer, what passes over the
// place of a cut, and what touches a layer. Linear in layers, values and what these pass over.
#pragma once

#include <cstdint>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "planner/ir/basics/borrowed.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

/// For each layer a list of numbers, side by side.
class ListOfLayer {
 public:
  std::span<const std::uint32_t> operator[](std::size_t layer) const {
    return {items_.data() + begin_[layer], items_.data() + begin_[layer + 1]};
  }
  /// `visit(add)` calls add(layer, item) in the same order each time it is asked.
  template <class Visit>
  static ListOfLayer of(std::size_t layers, const Visit& visit) {
    ListOfLayer lists;
    lists.begin_.assign(layers + 1, 0);
    visit([&](std::size_t layer, std::size_t) { ++lists.begin_[layer + 1]; });
    for (std::size_t l = 0; l < layers; ++l) lists.begin_[l + 1] += lists.begin_[l];
    lists.items_.resize(lists.begin_.back());
    std::vector<std::uint32_t> at(lists.begin_.begin(), lists.begin_.end() - 1);
    visit([&](std::size_t layer, std::size_t item) {
      lists.items_[at[layer]++] = static_cast<std::uint32_t>(item);
    });
    return lists;
  }

 private:
  std::vector<std::uint32_t> begin_, items_;
};

/// A stage's StageCost::temporary and unkept_forward.
struct StageTemporary {
  PassBytes kept;
  Bytes unkept_forward{0};
};

class SummedLayers {
 public:
  /// Keeps a reference to `layers`, which all have times for as many kinds of devices. Layers are
  /// summed up for a single call, where a function takes sums.
  SummedLayers(const Layers& layers);
  SummedLayers(Borrowed<Layers> layers) : SummedLayers(*layers) {}  // a Problem's
  const Layers& layers() const { return layers_; }

  /// Sums over layers. A storage counts where it is saved first, a parameter where it is used
  /// first.
  struct Held {
    Bytes saved{0}, weight_saved{0}, model_input{0};
    Bytes parameters{0}, gradients{0}, optimizer_state{0};
    Nanoseconds forward_collectives{0}, backward_collectives{0};
  };
  /// What the layers [begin, end) hold.
  Held held(std::size_t begin, std::size_t end) const;
  /// The same, on a kind of device; of parameters only `optimizer`.
  LayerTimes times(std::size_t kind, std::size_t begin, std::size_t end) const;

  /// stage_temporary() of the layers [begin, end), remembered: searches ask for the same stages
  /// again and again. May be asked by several threads.
  StageTemporary temporary(std::size_t begin, std::size_t end) const;

  /// Values, storages and parameters (their numbers in Layers, rising) that lie on both sides of
  /// the place before a layer: made, saved or used before it, and read, saved or used from it on.
  std::span<const std::uint32_t> values_over(std::size_t layer) const {
    return values_over_[layer];
  }
  std::span<const std::uint32_t> storages_over(std::size_t layer) const {
    return storages_over_[layer];
  }
  std::span<const std::uint32_t> parameters_over(std::size_t layer) const {
    return parameters_over_[layer];
  }
  /// Storages of a value.
  std::span<const std::uint32_t> storages_of(std::size_t value) const {
    return storages_of_value_[value];
  }

  /// Values that a layer makes or reads, storages that it saves, parameters that it uses.
  std::span<const std::uint32_t> values_at(std::size_t layer) const { return values_at_[layer]; }
  std::span<const std::uint32_t> storages_at(std::size_t layer) const {
    return storages_at_[layer];
  }
  std::span<const std::uint32_t> parameters_at(std::size_t layer) const {
    return parameters_at_[layer];
  }

 private:
  void sum_times();
  void sum_held();
  void list_items();

  const Layers& layers_;
  std::vector<std::vector<LayerTimes>> times_;  // [kind][layers before]
  std::vector<Held> held_;                      // [layers before]
  ListOfLayer values_over_, storages_over_, parameters_over_;
  ListOfLayer values_at_, storages_at_, parameters_at_, storages_of_value_;
  mutable std::shared_mutex mutex_;
  mutable std::unordered_map<std::uint64_t, StageTemporary> temporaries_;  // begin, end
};

}  // namespace pfeife
