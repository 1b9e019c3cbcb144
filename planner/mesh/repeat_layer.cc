#include "planner/mesh/repeat_layer.h"

#include <algorithm>
#include <map>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// "layers.7.x" for "layers.3.x" and layer 7.
std::string renamed(std::string name, std::size_t layer) {
  constexpr std::string_view kWord = "layers.";
  const std::size_t at = name.find(kWord);
  if (at == std::string::npos) return name;
  const std::size_t begin = at + kWord.size(), end = name.find('.', begin);
  return name.replace(begin, end - begin, std::to_string(layer));
}

/// Places: 0 the embedding, then a place for each transformer layer, the last one the head.
class Repeater {
 public:
  Repeater(const Layers& few, std::span<const std::size_t> sources) : few_(few) {
    const std::size_t layers = (few.size() - 2) / kPiecesOfLayer;
    PFEIFE_CHECK(few.size() == 2 + layers * kPiecesOfLayer, few.size());
    sources_.push_back(0);
    for (const std::size_t source : sources) sources_.push_back(1 + source);
    sources_.push_back(layers + 1);
  }

  Layers repeated() {
    made_ = few_;
    made_.layers.clear(), made_.collectives.clear(), made_.steps.clear(), made_.values.clear(),
        made_.storages.clear(), made_.parameters.clear();
    if (made_.sequence) made_.sequence->attention.clear(), made_.sequence->keys_values.clear();
    each(
        few_.layers.size(), [](std::size_t l) { return l; },
        [&](std::size_t l, std::size_t to) { add_layer(l, to); });
    each(
        few_.values.size(), [&](std::size_t v) { return few_.values[v].producer.index(); },
        [&](std::size_t v, std::size_t to) { add_value(v, to); });
    each(
        few_.storages.size(), [&](std::size_t s) { return first_of(few_.storages[s]); },
        [&](std::size_t s, std::size_t to) { add_storage(few_.storages[s], to); });
    each(
        few_.parameters.size(),
        [&](std::size_t p) { return few_.parameters[p].users.front().index(); },
        [&](std::size_t p, std::size_t to) { add_parameter(few_.parameters[p], to); });
    return std::move(made_);
  }

 private:
  /// The place of a layer of `few`.
  std::size_t place_of(std::size_t l) const {
    if (l == 0) return 0;
    return l + 1 == few_.size() ? sources_.back() : 1 + (l - 1) / kPiecesOfLayer;
  }
  /// Calls `add(i, to)` for each copy, at place `to`, of each of `count` things, of which thing i
  /// begins in layer `layer_of(i)`.
  template <class LayerOf, class Add>
  void each(std::size_t count, const LayerOf& layer_of, const Add& add) {
    std::vector<std::vector<std::size_t>> things(sources_.back() + 1);  // [place in few]
    for (std::size_t i = 0; i < count; ++i) things[place_of(layer_of(i))].push_back(i);
    for (std::size_t to = 0; to < sources_.size(); ++to)
      for (const std::size_t i : things[sources_[to]]) add(i, to);
  }
  std::size_t first_of(const LayerStorage& storage) const {
    if (storage.value) return few_.values[*storage.value].producer.index();
    std::size_t first = few_.size() - 1;
    for (const LayerId saver : storage.savers) first = std::min(first, saver.index());
    return first;
  }
  /// Where layer `l` is, as what is copied to place `to` sees it.
  LayerId moved(LayerId l, std::size_t to) const {
    const std::size_t at = l.index();
    if (at == 0) return l;
    if (at + 1 == few_.size()) return LayerId{1 + (sources_.size() - 2) * kPiecesOfLayer};
    return LayerId{at + to * kPiecesOfLayer - sources_[to] * kPiecesOfLayer};
  }
  std::vector<LayerId> moved(std::vector<LayerId> all, std::size_t to) const {
    for (LayerId& l : all) l = moved(l, to);
    return all;
  }

  void add_layer(std::size_t l, std::size_t to) {
    Layer layer = few_.layers[l];
    for (std::string* name :
         {&layer.name, &layer.module_path, &layer.ends_module, &layer.begins_module})
      *name = renamed(std::move(*name), to - 1);
    made_.layers.push_back(std::move(layer));
    if (!few_.collectives.empty()) made_.collectives.push_back(few_.collectives[l]);
    if (!few_.steps.empty()) made_.steps.push_back(few_.steps[l]);
    if (!few_.sequence) return;
    made_.sequence->attention.push_back(few_.sequence->attention[l]);
    made_.sequence->keys_values.push_back(few_.sequence->keys_values[l]);
  }
  void add_value(std::size_t v, std::size_t to) {
    LayerValue value = few_.values[v];
    value.name = renamed(value.name, to - 1);
    value.producer = moved(value.producer, to);
    value.consumers = moved(value.consumers, to);
    number_[{v, to}] = made_.values.size();
    made_.values.push_back(std::move(value));
  }
  void add_storage(LayerStorage storage, std::size_t to) {
    storage.savers = moved(storage.savers, to);
    storage.weight_savers = moved(storage.weight_savers, to);
    if (storage.value) storage.value = number_.at({*storage.value, to});
    made_.storages.push_back(std::move(storage));
  }
  void add_parameter(LayerParameter parameter, std::size_t to) {
    parameter.name = renamed(parameter.name, to - 1);
    parameter.users = moved(parameter.users, to);
    made_.parameters.push_back(std::move(parameter));
  }

  const Layers& few_;
  std::vector<std::size_t> sources_;  // [place] its place in few
  Layers made_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> number_;  // of a value's copy
};

}  // namespace

Layers repeat_layers(const Layers& few, std::span<const std::size_t> sources) {
  return Repeater(few, sources).repeated();
}

}  // namespace pfeife
