#include "planner/cost/stages/summed_layers.h"

#include <algorithm>
#include <mutex>

#include "planner/cost/stages/stage_temporary.h"

namespace pfeife {
namespace {

LayerTimes& operator+=(LayerTimes& sum, const LayerTimes& more) {
  sum.forward += more.forward;
  sum.backward_input += more.backward_input;
  sum.backward_weight += more.backward_weight;
  sum.optimizer += more.optimizer;
  return sum;
}

/// The first and the last layer of sorted lists, of which one has any.
std::pair<LayerId, LayerId> extent(const std::vector<LayerId>& a, const std::vector<LayerId>& b) {
  if (a.empty()) return {b.front(), b.back()};
  if (b.empty()) return {a.front(), a.back()};
  return {std::min(a.front(), b.front()), std::max(a.back(), b.back())};
}

/// Adds the item to each place between the layers from first to last.
template <class Add>
void add_between(const Add& add, std::pair<LayerId, LayerId> layers, std::size_t item) {
  for (std::size_t l = layers.first.index() + 1; l <= layers.second.index(); ++l) add(l, item);
}

/// Adds the item to each layer of the sorted lists once.
template <class Add>
void add_each(const Add& add, const std::vector<LayerId>& a, const std::vector<LayerId>& b,
              std::size_t item) {
  for (const LayerId l : a) add(l.index(), item);
  for (const LayerId l : b)
    if (!std::ranges::binary_search(a, l)) add(l.index(), item);
}

}  // namespace

/// Temporaries remembered at most, about 10 MB; then it begins anew.
constexpr std::size_t kMostTemporaries = 100'000;

SummedLayers::SummedLayers(const Layers& layers) : layers_(layers) {
  sum_times();
  sum_held();
  list_items();
}

void SummedLayers::sum_times() {
  const std::size_t count = layers_.size();
  times_.resize(count == 0 ? 0 : layers_.layers.front().times.size());
  for (std::size_t kind = 0; kind < times_.size(); ++kind) {
    std::vector<LayerTimes>& sums = times_[kind];
    sums.resize(count + 1);
    for (std::size_t l = 0; l < count; ++l) sums[l + 1] += layers_.layers[l].times.at(kind);
    for (const LayerParameter& parameter : layers_.parameters)
      if (!parameter.users.empty() && !parameter.optimizer.empty())
        sums[parameter.users.front().index() + 1].optimizer += parameter.optimizer.at(kind);
    for (std::size_t l = 0; l < count; ++l) sums[l + 1] += sums[l];
  }
}

void SummedLayers::sum_held() {
  held_.resize(layers_.size() + 1);
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_.layers[l];
    held_[l + 1] = {
        .saved = layer.saved, .weight_saved = layer.weight_saved, .model_input = layer.model_input};
    if (layers_.collectives.empty()) continue;
    held_[l + 1].forward_collectives = layers_.collectives[l].forward;
    held_[l + 1].backward_collectives = layers_.collectives[l].backward;
  }
  for (const LayerStorage& storage : layers_.storages) {
    if (!storage.savers.empty()) held_[storage.savers.front().index() + 1].saved += storage.bytes;
    if (!storage.weight_savers.empty())
      held_[storage.weight_savers.front().index() + 1].weight_saved += storage.bytes;
  }
  for (const LayerParameter& parameter : layers_.parameters) {
    if (parameter.users.empty()) continue;
    Held& first = held_[parameter.users.front().index() + 1];
    first.parameters += parameter.bytes;
    first.gradients += parameter.gradient;
    first.optimizer_state += parameter.state;
  }
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    Held& sum = held_[l + 1];
    const Held& before = held_[l];
    sum.saved += before.saved, sum.weight_saved += before.weight_saved;
    sum.model_input += before.model_input, sum.parameters += before.parameters;
    sum.gradients += before.gradients, sum.optimizer_state += before.optimizer_state;
    sum.forward_collectives += before.forward_collectives;
    sum.backward_collectives += before.backward_collectives;
  }
}

void SummedLayers::list_items() {
  const std::size_t count = layers_.size();
  values_over_ = ListOfLayer::of(count, [&](const auto& add) {
    for (std::size_t v = 0; v < layers_.values.size(); ++v)
      if (const LayerValue& value = layers_.values[v]; !value.consumers.empty())
        add_between(add, {value.producer, value.consumers.back()}, v);
  });
  values_at_ = ListOfLayer::of(count, [&](const auto& add) {
    for (std::size_t v = 0; v < layers_.values.size(); ++v)
      add_each(add, {layers_.values[v].producer}, layers_.values[v].consumers, v);
  });
  storages_over_ = ListOfLayer::of(count, [&](const auto& add) {
    for (std::size_t i = 0; i < layers_.storages.size(); ++i)
      if (const LayerStorage& storage = layers_.storages[i];
          !storage.savers.empty() || !storage.weight_savers.empty())
        add_between(add, extent(storage.savers, storage.weight_savers), i);
  });
  storages_at_ = ListOfLayer::of(count, [&](const auto& add) {
    for (std::size_t i = 0; i < layers_.storages.size(); ++i)
      add_each(add, layers_.storages[i].savers, layers_.storages[i].weight_savers, i);
  });
  storages_of_value_ = ListOfLayer::of(layers_.values.size(), [&](const auto& add) {
    for (std::size_t i = 0; i < layers_.storages.size(); ++i)
      if (layers_.storages[i].value) add(*layers_.storages[i].value, i);
  });
  parameters_over_ = ListOfLayer::of(count, [&](const auto& add) {
    for (std::size_t p = 0; p < layers_.parameters.size(); ++p)
      if (const std::vector<LayerId>& users = layers_.parameters[p].users; users.size() > 1)
        add_between(add, {users.front(), users.back()}, p);
  });
  parameters_at_ = ListOfLayer::of(count, [&](const auto& add) {
    for (std::size_t p = 0; p < layers_.parameters.size(); ++p)
      add_each(add, layers_.parameters[p].users, {}, p);
  });
}

SummedLayers::Held SummedLayers::held(std::size_t begin, std::size_t end) const {
  const Held &a = held_[begin], &b = held_[end];
  return {b.saved - a.saved,
          b.weight_saved - a.weight_saved,
          b.model_input - a.model_input,
          b.parameters - a.parameters,
          b.gradients - a.gradients,
          b.optimizer_state - a.optimizer_state,
          b.forward_collectives - a.forward_collectives,
          b.backward_collectives - a.backward_collectives};
}

StageTemporary SummedLayers::temporary(std::size_t begin, std::size_t end) const {
  const std::uint64_t key = (static_cast<std::uint64_t>(begin) << 32) | end;
  {
    const std::shared_lock lock(mutex_);
    if (const auto known = temporaries_.find(key); known != temporaries_.end())
      return known->second;
  }
  const StageTemporary found = stage_temporary(*this, begin, end);
  const std::unique_lock lock(mutex_);
  if (temporaries_.size() >= kMostTemporaries) temporaries_.clear();
  temporaries_.emplace(key, found);
  return found;
}

LayerTimes SummedLayers::times(std::size_t kind, std::size_t begin, std::size_t end) const {
  const LayerTimes &a = times_.at(kind)[begin], &b = times_.at(kind)[end];
  return {b.forward - a.forward, b.backward_input - a.backward_input,
          b.backward_weight - a.backward_weight, b.optimizer - a.optimizer};
}

}  // namespace pfeife
