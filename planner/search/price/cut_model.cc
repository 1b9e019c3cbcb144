#include "planner/search/price/cut_model.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>

#include "planner/search/price/numbers.h"

namespace pfeife {

CutModel::CutModel(const Layers& layers, const Cluster& cluster, MemoryRule rule, bool recompute,
                   StepNorm norm)
    : layers_(layers), sums_(layers), cluster_(cluster), norm_(norm) {
  const auto count = static_cast<std::int32_t>(layers.size());
  layer_.push_back(0);
  for (std::int32_t l = 0; l < count; ++l) {
    segment_.push_back(static_cast<std::int32_t>(layer_.size()) - 1);
    if (l + 1 == count || layers.layers[static_cast<std::size_t>(l)].no_cut_after.empty())
      layer_.push_back(l + 1);
  }
  sum_times(recompute);
  copy_narrow_times();
  sum_reductions();
  sum_gradients();
  sum_memory(rule);
  sum_temporary(rule);
  list_crossings();
}

Partition CutModel::partition(const Cuts& cuts) const {
  Partition partition;
  for (std::size_t s = 1; s + 1 < cuts.size(); ++s)
    partition.cuts.push_back(layer_[static_cast<std::size_t>(cuts[s])] - 1);
  return partition;
}

std::optional<Cuts> CutModel::cuts(const Partition& partition) const {
  Cuts found{0};
  for (const std::int32_t cut : partition.cuts) {
    const auto at = std::ranges::lower_bound(layer_, cut + 1);
    if (at == layer_.end() || *at != cut + 1) return std::nullopt;
    found.push_back(static_cast<std::int32_t>(at - layer_.begin()));
  }
  found.push_back(last());
  return found;
}

/// [0][segment] to [log2 of the width][segment]: the largest of so many segments from there on.
static void widen(std::vector<std::vector<double>>& most) {
  const std::size_t size = most.front().size();
  for (std::size_t width = 1; 2 * width < size; width *= 2) {
    std::vector<double> wider = most.back();
    for (std::size_t i = 0; i + width < size; ++i)
      wider[i] = std::max(wider[i], most.back()[i + width]);
    most.push_back(std::move(wider));
  }
}
/// The most among the segments [from, to), at least one.
static double most_within(const std::vector<std::vector<double>>& most, std::int32_t from,
                          std::int32_t to) {
  const auto level =
      static_cast<std::size_t>(std::bit_width(static_cast<std::uint32_t>(to - from))) - 1;
  return std::max(most[level][static_cast<std::size_t>(from)],
                  most[level][static_cast<std::size_t>(to) - (std::size_t{1} << level)]);
}

void CutModel::sum_times(bool recompute) {
  const std::size_t size = layer_.size();
  time_.resize(cluster_.kinds.size());
  for (std::size_t kind = 0; kind < time_.size(); ++kind) {
    for (auto& sums : time_[kind]) sums.assign(size, 0.0);
    auto& [forward, input, weight, optimizer] = time_[kind];
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const LayerTimes& t = layers_.layers[l].times.at(kind);
      const auto at = static_cast<std::size_t>(segment_[l]) + 1;
      forward[at] += number(t.forward);
      input[at] += number(t.backward_input) + (recompute ? number(t.forward) : 0);
      weight[at] += number(t.backward_weight);
      optimizer[at] += number(t.optimizer);
    }
    for (const LayerParameter& p : layers_.parameters)
      if (!p.users.empty() && !p.optimizer.empty())
        optimizer[static_cast<std::size_t>(segment(p.users.front())) + 1] +=
            number(p.optimizer.at(kind));
    for (auto& sums : time_[kind]) accumulate(sums);
    std::vector<double> load(size);
    for (std::size_t i = 0; i < size; ++i) load[i] = forward[i] + input[i] + weight[i];
    load_.push_back(std::move(load));
  }
}

void CutModel::copy_narrow_times() {
  narrow_times_.resize(time_.size());
  for (std::size_t kind = 0; kind < time_.size(); ++kind) {
    double all = 0;
    for (const auto& sums : time_[kind]) all += sums.back();
    if (all > 0x1p30) continue;
    narrow_times_[kind].resize(layer_.size());
    for (std::size_t q = 0; q < layer_.size(); ++q)
      for (std::size_t w = 0; w < kWorks; ++w)
        narrow_times_[kind][q][w] = Program::narrow(time_[kind][w][q]);
  }
}

/// A layer's reduction begins when its own backward has ended or a later layer's is done, so all of
/// them end at the largest, over the stage's layers, of what is to be reduced from there on less
/// what is to be computed.
void CutModel::sum_reductions() {
  if (layers_.reductions.empty()) return;
  ahead_.assign(layer_.size(), 0.0);
  reduced_.assign(layer_.size(), 0.0);
  latest_.assign(1, std::vector<double>(layer_.size(), std::numeric_limits<double>::lowest()));
  double reduced = 0, computed = 0;  // of the layers so far
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const LayerReduction& reduction = layers_.reductions[l];
    const auto at = static_cast<std::size_t>(segment_[l]);
    reduced += number(reduction.time);
    latest_[0][at] = std::max(latest_[0][at], reduced - computed);
    computed += number(reduction.beside);
    ahead_[at + 1] = reduced - computed;
    reduced_[at + 1] = reduced;
  }
  widen(latest_);
}

double CutModel::exposed_reduction(std::int32_t from, std::int32_t to) const {
  return most_within(latest_, from, to) - ahead_[static_cast<std::size_t>(from)];
}

void CutModel::sum_gradients() {
  if (norm_ != StepNorm::Clipped) return;
  gradients_.resize(layer_.size());
  for (const LayerParameter& p : layers_.parameters) {
    if (p.users.empty() || p.gradient == Bytes{0}) continue;
    const std::int32_t first = segment(p.users.front());
    if (segment(p.users.back()) != first) continue;
    Gradients& of = gradients_[static_cast<std::size_t>(first) + 1];
    of.bytes += p.gradient, ++of.parameters;
  }
  for (std::size_t q = 1; q < gradients_.size(); ++q) {
    gradients_[q].bytes += gradients_[q - 1].bytes;
    gradients_[q].parameters += gradients_[q - 1].parameters;
  }
}

CutModel::Gradients CutModel::own_gradients(std::int32_t from, std::int32_t to) const {
  const Gradients& before = gradients_[static_cast<std::size_t>(from)];
  const Gradients& until = gradients_[static_cast<std::size_t>(to)];
  return {until.bytes - before.bytes, until.parameters - before.parameters};
}

void CutModel::sum_memory(MemoryRule rule) {
  const std::size_t size = layer_.size();
  for (auto& sums : held_) sums.assign(size, 0.0);
  auto& [fixed, saved, weight_saved] = held_;
  const bool reference = rule == MemoryRule::Reference;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_.layers[l];
    const auto at = static_cast<std::size_t>(segment_[l]);
    if (!forward_only()) saved[at + 1] += number(layer.saved);
    if (!reference) weight_saved[at + 1] += number(layer.weight_saved);
  }
  std::set<std::size_t> values;  // a value that crosses counts once, however many storages name it
  for (const LayerStorage& storage : kept_storages(layers_)) {
    if (!storage.weight_savers.empty() && !reference)
      weight_saved[static_cast<std::size_t>(segment(storage.weight_savers.front())) + 1] +=
          number(storage.bytes);
    if (storage.savers.empty() || (storage.value && !values.insert(*storage.value).second))
      continue;
    saved[static_cast<std::size_t>(segment(storage.savers.front())) + 1] += number(storage.bytes);
  }
  for (const LayerParameter& p : layers_.parameters) {
    std::vector<std::int32_t> users;
    for (const LayerId user : p.users) users.push_back(segment(user));
    users.erase(std::unique(users.begin(), users.end()), users.end());
    if (users.empty()) continue;
    fixed[static_cast<std::size_t>(users.front()) + 1] +=
        reference ? 4 * number(p.bytes) : number(p.bytes + p.gradient + p.state);
    if (users.size() > 1)
      shared_.push_back(std::move(users)), shared_gradients_.push_back(p.gradient);
  }
  for (auto& sums : held_) accumulate(sums);
}

/// What stage_temporary() says of any stage, at least: a storage counts for its first saver alone,
/// and W keeps it during I if the first one of both kinds is in the same segment.
void CutModel::sum_temporary(MemoryRule rule) {
  const bool reference = rule == MemoryRule::Reference;
  std::vector<PassBytes> saved(layers_.size());  // [layer]
  for (std::size_t l = 0; l < layers_.size() && !reference && !forward_only(); ++l) {
    const Layer& layer = layers_.layers[l];
    saved[l] = {layer.saved, layer.saved, layer.saved - layer.weight_saved, layer.weight_saved};
  }
  std::set<std::size_t> values;
  for (const LayerStorage& storage : kept_storages(layers_)) {
    if (reference) break;
    const auto& weight = storage.weight_savers;
    if (!weight.empty()) saved[weight.front().index()].weight += storage.bytes;
    if (storage.savers.empty() || (storage.value && !values.insert(*storage.value).second))
      continue;
    const LayerId first = storage.savers.front();
    saved[first.index()].forward += storage.bytes;
    saved[first.index()].backward += storage.bytes;
    if (weight.empty() || segment(weight.front()) != segment(first))
      saved[first.index()].input += storage.bytes;
  }
  constexpr std::array kParts{&PassBytes::forward, &PassBytes::backward, &PassBytes::input,
                              &PassBytes::weight};
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    auto& [most, held, highest] = temporary_[pass];
    held.assign(layer_.size(), 0.0);
    most.assign(1, std::vector<double>(layer_.size(), std::numeric_limits<double>::lowest()));
    double sum = 0;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_.layers[l];
      const auto at = static_cast<std::size_t>(segment_[l]);
      double during = number(reference ? layer.temporary.largest() : layer.temporary.*kParts[pass]);
      if (kParts[pass] == &PassBytes::input && !reference) during += number(layer.weight_saved);
      sum += number(saved[l].*kParts[pass]);
      most[0][at] = std::max(most[0][at], sum + during);
      held[at + 1] = sum;
    }
    widen(most);
    highest = temporary(static_cast<Op>(pass), 0, last()) + held.back() -
              std::min(0.0, std::ranges::min(held));
  }
}

double CutModel::temporary(Op op, std::int32_t from, std::int32_t to) const {
  if (to <= from) return 0;
  const auto& [most, held, highest] = temporary_[pass(op)];
  return std::max(0.0, most_within(most, from, to) - held[static_cast<std::size_t>(to)]);
}

bool CutModel::all_linked() const {
  for (std::int32_t q = 1; q < last(); ++q)
    if (std::ranges::none_of(crossing(q), [&](const Crossing& c) {
          return c.producer == q - 1 && c.next == q &&
                 layers_.values[static_cast<std::size_t>(c.value)].has_gradient;
        }))
      return false;
  return true;
}

void CutModel::list_crossings() {
  std::vector<std::vector<Crossing>> at(layer_.size());
  extent_.assign(layer_.size(), {last(), -1, -1});
  readers_.resize(layers_.values.size());
  for (std::size_t v = 0; v < layers_.values.size(); ++v) {
    const LayerValue& value = layers_.values[v];
    std::vector<std::int32_t>& readers = readers_[v];
    for (const LayerId reader : value.consumers) readers.push_back(segment(reader));
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    const std::int32_t producer = segment(value.producer);
    std::size_t next = 0;
    for (std::int32_t q = producer + 1; !readers.empty() && q <= readers.back(); ++q) {
      while (readers[next] < q) ++next;
      at[static_cast<std::size_t>(q)].push_back(
          {producer, readers[next], static_cast<std::int32_t>(v)});
      Extent& extent = extent_[static_cast<std::size_t>(q)];
      extent.first_producer = std::min(extent.first_producer, producer);
      extent.last_next = std::max(extent.last_next, readers[next]);
      extent.last_reader = std::max(extent.last_reader, readers.back());
    }
  }
  begin_.push_back(0);
  for (const auto& list : at) {
    crossing_.insert(crossing_.end(), list.begin(), list.end());
    begin_.push_back(crossing_.size());
  }
}

std::vector<double> fastest_times(const CutModel& model, const std::vector<std::size_t>& kinds,
                                  const std::vector<Work>& works) {
  std::vector<double> sums(static_cast<std::size_t>(model.last()) + 1, 0);
  for (std::size_t p = 1; p < sums.size(); ++p) {
    double least = std::numeric_limits<double>::infinity();
    for (const std::size_t kind : kinds) {
      double time = 0;
      for (const Work work : works) {
        const std::vector<double>& prefix = model.time(kind, work);
        time += prefix[p] - prefix[p - 1];
      }
      least = std::min(least, time);
    }
    sums[p] = sums[p - 1] + least;
  }
  return sums;
}

}  // namespace pfeife
