#include "planner/mesh/repeat_layer.h"

#include <algorithm>
#include <map>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// "layers.7.x" for "layers.3.x" and 4 more.
std::string renamed(std::string name, std::size_t more) {
  constexpr std::string_view kWord = "layers.";
  const std::size_t at = name.find(kWord);
  if (at == std::string::npos) return name;
  const std::size_t begin = at + kWord.size(), end = name.find('.', begin);
  const std::size_t number = std::stoul(name.substr(begin, end - begin));
  return name.replace(begin, end - begin, std::to_string(number + more));
}

class Repeater {
 public:
  Repeater(const Layers& few, std::size_t more) : few_(few), more_(more) {
    const std::size_t layers = (few.size() - 2) / kPiecesOfLayer;
    PFEIFE_CHECK(few.size() == 2 + layers * kPiecesOfLayer && layers >= 2, few.size());
    begin_ = 1 + (layers - 2) * kPiecesOfLayer;
    end_ = begin_ + kPiecesOfLayer;
  }

  Layers repeated() {
    made_ = few_;
    made_.layers.clear(), made_.collectives.clear(), made_.values.clear(), made_.storages.clear(),
        made_.parameters.clear();
    each(
        few_.layers.size(), [](std::size_t l) { return l; },
        [&](std::size_t l, std::size_t copy) { add_layer(l, copy); });
    each(
        few_.values.size(), [&](std::size_t v) { return few_.values[v].producer.index(); },
        [&](std::size_t v, std::size_t copy) { add_value(v, copy); });
    each(
        few_.storages.size(), [&](std::size_t s) { return first_of(few_.storages[s]); },
        [&](std::size_t s, std::size_t copy) { add_storage(few_.storages[s], copy); });
    each(
        few_.parameters.size(), [&](std::size_t p) { return first_of(few_.parameters[p]); },
        [&](std::size_t p, std::size_t copy) { add_parameter(few_.parameters[p], copy); });
    return std::move(made_);
  }

 private:
  /// Calls `add(i, copy)` for each copy of each of `count` things, of which thing i begins in layer
  /// `layer_of(i)`, as their layers follow one another.
  template <class LayerOf, class Add>
  void each(std::size_t count, const LayerOf& layer_of, const Add& add) {
    for (std::size_t i = 0; i < count; ++i)
      if (layer_of(i) < begin_) add(i, 0);
    for (std::size_t copy = 0; copy <= more_; ++copy)
      for (std::size_t i = 0; i < count; ++i)
        if (layer_of(i) >= begin_ && layer_of(i) < end_) add(i, copy);
    for (std::size_t i = 0; i < count; ++i)
      if (layer_of(i) >= end_) add(i, 0);
  }
  std::size_t first_of(const LayerStorage& storage) const {
    if (storage.value) return few_.values[*storage.value].producer.index();
    std::size_t first = few_.size() - 1;
    for (const LayerId saver : storage.savers) first = std::min(first, saver.index());
    return first;
  }
  static std::size_t first_of(const LayerParameter& parameter) {
    return parameter.users.front().index();
  }
  /// Where layer `l` is, as copy `copy` of what begins in layer `from` sees it.
  LayerId moved(LayerId l, std::size_t from, std::size_t copy) const {
    const std::size_t at = l.index();
    if (from >= begin_ && from < end_) return LayerId{at + copy * kPiecesOfLayer};
    return LayerId{at < end_ ? at : at + more_ * kPiecesOfLayer};
  }
  std::vector<LayerId> moved(std::vector<LayerId> all, std::size_t from, std::size_t copy) const {
    for (LayerId& l : all) l = moved(l, from, copy);
    return all;
  }
  std::size_t counted_on(std::size_t from, std::size_t copy) const {
    return from >= end_ ? more_ : copy;
  }

  void add_layer(std::size_t l, std::size_t copy) {
    Layer layer = few_.layers[l];
    for (std::string* name :
         {&layer.name, &layer.module_path, &layer.ends_module, &layer.begins_module})
      *name = renamed(std::move(*name), counted_on(l, copy));
    made_.layers.push_back(std::move(layer));
    if (!few_.collectives.empty()) made_.collectives.push_back(few_.collectives[l]);
  }
  void add_value(std::size_t v, std::size_t copy) {
    LayerValue value = few_.values[v];
    const std::size_t from = value.producer.index();
    value.name = renamed(value.name, counted_on(from, copy));
    value.producer = moved(value.producer, from, copy);
    value.consumers = moved(value.consumers, from, copy);
    number_[{v, copy}] = made_.values.size();
    made_.values.push_back(std::move(value));
  }
  void add_storage(LayerStorage storage, std::size_t copy) {
    const std::size_t from = first_of(storage);
    storage.savers = moved(storage.savers, from, copy);
    storage.weight_savers = moved(storage.weight_savers, from, copy);
    if (storage.value) storage.value = number_.at({*storage.value, copy});
    made_.storages.push_back(std::move(storage));
  }
  void add_parameter(LayerParameter parameter, std::size_t copy) {
    const std::size_t from = first_of(parameter);
    parameter.name = renamed(parameter.name, counted_on(from, copy));
    parameter.users = moved(parameter.users, from, copy);
    made_.parameters.push_back(std::move(parameter));
  }

  const Layers& few_;
  const std::size_t more_;
  std::size_t begin_ = 0, end_ = 0;  // the repeated layer
  Layers made_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> number_;  // of a value's copy
};

}  // namespace

Layers repeat_layer(const Layers& few, std::size_t more) { return Repeater(few, more).repeated(); }

}  // namespace pfeife
