#include "planner/cost/stages/recomputed_layers.h"

#include <algorithm>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

class Rewriter {
 public:
  Rewriter(Layers layers, const Partition& partition, const std::vector<LayerRange>& blocks)
      : layers_(std::move(layers)),
        blocks_(blocks),
        block_of_(layers_.size(), kNone),
        made_again_(layers_.size()),
        freed_again_(layers_.size()),
        alive_(layers_.size()),
        for_weight_(layers_.size()) {
    for (std::size_t s = 0; s < partition.stages(); ++s)
      stages_.push_back(
          {LayerId{partition.begin(s)}, LayerId{partition.end(s, layers_.size()) - 1}});
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      PFEIFE_CHECK(blocks[b].last.index() < layers_.size() &&
                       stage_of(blocks[b].first) == stage_of(blocks[b].last) &&
                       (b == 0 || blocks[b - 1].last < blocks[b].first),
                   "blocks are ", to_string(blocks));
      for (LayerId l = blocks[b].first; l <= blocks[b].last; ++l.value) block_of_[l.index()] = b;
    }
  }

  Layers rewritten() {
    for (std::size_t l = 0; l < layers_.size(); ++l)
      if (block_of_[l] != kNone) rewrite(layers_.layers[l], l);
    for (LayerStorage& storage : layers_.storages) rewrite(storage);
    keep_inputs();
    const std::vector<Bytes> gradients = waiting_gradients();
    for (std::size_t b = 0; b < blocks_.size(); ++b) add_temporaries(b, gradients[b]);
    for (const LayerValue* value : let_go_) hold_until_read(*value);
    for (LayerValue& value : layers_.values) hold_gradient(value), copy_gradient(value);
    std::erase_if(layers_.storages, [](const LayerStorage& storage) {
      return storage.savers.empty() && storage.weight_savers.empty();
    });
    return std::move(layers_);
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  LayerRange stage_of(LayerId l) const {
    return *std::ranges::lower_bound(stages_, l, {}, &LayerRange::last);
  }
  static bool holds(const LayerRange& range, LayerId l) {
    return range.first <= l && l <= range.last;
  }
  void rewrite(Layer& layer, std::size_t l) {
    for (LayerTimes& times : layer.times) times.backward_input += times.forward;
    made_again_[l] += layer.saved, freed_again_[l] += layer.saved;
    alive_[l] += layer.saved;
    layer.saved = layer.model_input;
  }

  /// What blocks save of it and do not receive, they make again: each a copy of its own.
  void rewrite(LayerStorage& storage) {
    if (std::ranges::all_of(storage.savers,
                            [&](LayerId l) { return block_of_[l.index()] == kNone; }))
      return;
    const std::vector<LayerId> savers = storage.savers;
    std::size_t done = kNone;
    for (const LayerId first : savers) {
      const std::size_t b = block_of_[first.index()];
      if (b == kNone || b == done) continue;
      done = b;
      const LayerRange& block = blocks_[b];
      const LayerValue* const value = storage.value ? &layers_.values[*storage.value] : nullptr;
      if (value != nullptr && value->producer < block.first) continue;
      const LayerId maker = value != nullptr && holds(block, value->producer)
                                ? std::min(first, value->producer)
                                : first;
      made_again_[maker.index()] += storage.bytes, freed_again_[first.index()] += storage.bytes;
      const auto inside = [&](LayerId l) { return holds(block, l); };
      LayerId read = *std::find_if(savers.rbegin(), savers.rend(), inside);
      if (value != nullptr && inside(value->producer))
        read = std::max(read, std::min(value->consumers.back(), block.last));
      for (LayerId l = maker; l <= read; ++l.value) alive_[l.index()] += storage.bytes;
      if (std::erase_if(storage.weight_savers, inside) > 0) {
        layers_.layers[first.index()].weight_saved += storage.bytes;
        for_weight_[first.index()] += storage.bytes;
      }
      std::erase_if(storage.savers, inside);
      if (value != nullptr && inside(value->producer)) let_go_.push_back(value);
    }
  }

  /// Whatever enters a block is kept until the block's first layer has run backward.
  void keep_inputs() {
    storages_of_.resize(layers_.values.size());
    for (std::size_t i = 0; i < layers_.storages.size(); ++i)
      if (const auto value = layers_.storages[i].value) storages_of_[*value].push_back(i);
    for (std::size_t v = 0; v < layers_.values.size(); ++v) {
      const LayerValue& value = layers_.values[v];
      std::size_t done = kNone;
      for (const LayerId reader : value.consumers) {
        const std::size_t b = block_of_[reader.index()];
        if (b == kNone || b == done || value.producer >= blocks_[b].first) continue;
        done = b;
        if (storages_of_[v].empty()) {
          storages_of_[v].push_back(layers_.storages.size());
          layers_.storages.push_back({value.bytes, {}, {}, v});
        }
        std::vector<LayerId>& savers = layers_.storages[storages_of_[v].front()].savers;
        const auto at = std::ranges::lower_bound(savers, blocks_[b].first);
        if (at == savers.end() || *at != blocks_[b].first) savers.insert(at, blocks_[b].first);
      }
    }
  }

  /// [block] The gradients of what leaves it, which Layer::temporary of its last layer has in it.
  std::vector<Bytes> waiting_gradients() const {
    std::vector<Bytes> sums(blocks_.size());
    for (const LayerValue& value : layers_.values) {
      const LayerId behind =
          std::min(value.consumers.back(), LayerId{stage_of(value.producer).last.value + 1});
      for (auto block = std::ranges::lower_bound(blocks_, value.producer, {}, &LayerRange::last);
           block != blocks_.end() && block->last < behind; ++block) {
        Bytes& sum = sums[static_cast<std::size_t>(block - blocks_.begin())];
        if (value.waiting_gradient == Bytes{0})
          sum += value.gradient_bytes;
        else if (value.producer == block->last)
          sum += value.waiting_at(block->last);
      }
    }
    return sums;
  }

  /// A block's gradients are there until its backward is done; those that the stage receives are so
  /// anyway, and those that W needs.
  void hold_gradient(const LayerValue& value) {
    const std::size_t b = block_of_[value.producer.index()];
    if (b == kNone) return;
    const LayerRange& block = blocks_[b];
    const auto reader = std::ranges::upper_bound(value.consumers, block.last);
    if (reader == value.consumers.end() || *reader > stage_of(block.last).last) return;
    for (LayerId l = block.first; l < value.producer; ++l.value) {
      PassBytes& more = layers_.layers[l.index()].temporary;
      more.backward += value.gradient_bytes;
      if (!value.producer_keeps_gradient) more.input += value.gradient_bytes;
    }
  }

  void add_temporaries(std::size_t b, Bytes waiting_gradients) {
    const LayerRange& block = blocks_[b];
    Bytes remade{0}, not_freed{0}, forward{0};
    for (LayerId l = block.first; l <= block.last; ++l.value) {
      const std::size_t at = l.index();
      PassBytes& more = layers_.layers[at].temporary;
      remade += made_again_[at], not_freed += freed_again_[at];
      forward = std::max(forward, more.forward + remade);
      more.forward += alive_[at];
      more.backward += not_freed;
      more.input += not_freed - for_weight_[at];  // weight_saved has these
    }
    Layer& last = layers_.layers[block.last.index()];
    forward += waiting_gradients;
    last.temporary.backward = std::max(last.temporary.backward, forward);
    last.temporary.input = std::max(last.temporary.input, forward - last.weight_saved);
  }

  /// What a block has made and kept lives on in F until the stage's last layer behind the block has
  /// read it. If it is sent, or kept by someone else, that is counted anyway.
  void hold_until_read(const LayerValue& value) {
    const LayerRange stage = stage_of(value.producer);
    if (value.consumers.back() > stage.last) return;
    const std::size_t v = static_cast<std::size_t>(&value - layers_.values.data());
    for (const std::size_t i : storages_of_[v])
      if (std::ranges::any_of(layers_.storages[i].savers,
                              [&](LayerId l) { return holds(stage, l); }))
        return;
    const LayerId from = blocks_[block_of_[value.producer.index()]].last;
    for (LayerId l{from.value + 1}; l <= value.consumers.back(); ++l.value)
      layers_.layers[l.index()].temporary.forward += value.bytes;
  }

  /// A block hands back a gradient for each value that enters it: what W keeps is another tensor,
  /// and this one waits, also in the producer, whose temporaries have none of it.
  void copy_gradient(LayerValue& value) {
    const LayerId reader = value.consumers.back();
    const std::size_t b = block_of_[reader.index()];
    if (!value.kept_for_weight || b == kNone || value.producer >= blocks_[b].first ||
        !holds(stage_of(reader), value.producer))
      return;
    value.kept_for_weight.reset();
    layers_.layers[value.producer.index()].temporary.input += value.gradient_bytes;
  }

  Layers layers_;
  const std::vector<LayerRange>& blocks_;
  std::vector<LayerRange> stages_;
  std::vector<std::size_t> block_of_;  // [layer]
  // [layer] bytes that come up again with its forward, and go with its backward; those that are
  // there while it runs in a forward that keeps nothing
  std::vector<Bytes> made_again_, freed_again_, alive_;
  std::vector<Bytes> for_weight_;  // [layer] of those, what W needs, as Layer::weight_saved has it
  std::vector<const LayerValue*> let_go_;
  std::vector<std::vector<std::size_t>> storages_of_;  // [value]
};

}  // namespace

Layers recomputed_layers(Layers layers, const Partition& partition,
                         const std::vector<LayerRange>& blocks) {
  if (blocks.empty()) return layers;
  return Rewriter(std::move(layers), partition, blocks).rewritten();
}

std::string illegal_because(const Layers& layers, const Partition& partition,
                            const std::vector<LayerRange>& blocks) {
  const auto border = [&](std::int32_t l) {
    return l < 0 || static_cast<std::size_t>(l) + 1 == layers.size() ||
           layers.layers[static_cast<std::size_t>(l)].no_cut_after.empty();
  };
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const LayerRange& block = blocks[b];
    const std::string name = "the block of layers " + to_string(std::vector{block});
    if (block.first.value < 0 || block.last < block.first || block.last.index() >= layers.size())
      return stream_all(name, " is outside 0..", layers.size() - 1);
    if (b > 0 && block.first <= blocks[b - 1].last)
      return name + " is not behind the one before it";
    if (!border(block.first.value - 1) || !border(block.last.value))
      return name + " begins or ends where the model must not be cut";
    for (const std::int32_t cut : partition.cuts)
      if (block.first.value <= cut && cut < block.last.value) return name + " is in two stages";
  }
  return "";
}

}  // namespace pfeife
