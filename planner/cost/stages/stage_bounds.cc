#include "planner/cost/stages/stage_bounds.h"

#include <algorithm>
#include <set>

namespace pfeife {
namespace {
constexpr std::int64_t kMost = std::int64_t{1} << 53;  // sums stop here: a difference is then less
}

StageBounds::StageBounds(const Layers& layers, const Cluster& cluster, Recompute recompute,
                         bool temporaries)
    : cluster_(&cluster),
      sums_(std::make_shared<const Sums>(layers, cluster, recompute, temporaries)) {}

StageBounds StageBounds::for_placement(const Placement& placement, Nanoseconds norm) const {
  StageBounds same = *this;
  same.placement_ = &placement, same.norm_ = norm;
  return same;
}

StageBounds::Sums::Sums(const Layers& layers, const Cluster& cluster, Recompute recompute,
                        bool temporaries)
    : forward_only(layers.mode == Mode::Forward) {
  for (std::size_t l = 0; l < layers.size(); ++l) {
    segment.push_back(last());
    if (l + 1 == layers.size() || layers.layers[l].no_cut_after.empty()) layer.push_back(l + 1);
  }
  for (std::size_t kind = 0; kind < cluster.kinds.size(); ++kind) add_kind(layers, kind, recompute);
  if (!layers.reductions.empty()) first_reduction = layers.reductions.front().time.count();
  if (temporaries) find_temporaries(layers);
  find_crossings(layers);
}

void StageBounds::Sums::add_kind(const Layers& layers, std::size_t kind, Recompute recompute) {
  auto& sums = of_kind.emplace_back();
  sums.fill(std::vector<std::int64_t>(layer.size(), 0));
  const auto add = [&](Amount amount, std::size_t l, std::int64_t more) {
    std::int64_t& sum = sums[amount][segment[l] + 1];
    sum += std::min(more, kMost - sum);
  };
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const Layer& model_layer = layers.layers[l];
    const LayerTimes& times = model_layer.times.at(kind);
    add(kForward, l, times.forward.count());
    add(kInput, l, times.backward_input.count());
    if (recompute == Recompute::Full) add(kInput, l, times.forward.count());
    add(kWeight, l, times.backward_weight.count());
    add(kStep, l, times.optimizer.count());
    add(kSaved, l, forward_only ? 0 : model_layer.saved.value);
    add(kWeightSaved, l, model_layer.weight_saved.value);
  }
  std::set<std::size_t> values;  // one that crosses counts once, however many storages name it
  for (const LayerStorage& storage : kept_storages(layers)) {
    if (!storage.savers.empty() && (!storage.value || values.insert(*storage.value).second))
      add(kSaved, storage.savers.front().index(), storage.bytes.value);
    if (!storage.weight_savers.empty())
      add(kWeightSaved, storage.weight_savers.front().index(), storage.bytes.value);
  }
  for (const LayerParameter& parameter : layers.parameters) {
    if (parameter.users.empty()) continue;
    const std::size_t first = parameter.users.front().index();
    for (const Bytes part : {parameter.bytes, parameter.gradient, parameter.state})
      add(kFixed, first, part.value);
    if (!parameter.optimizer.empty()) add(kStep, first, parameter.optimizer.at(kind).count());
  }
  for (auto& sum : sums)
    for (std::size_t q = 1; q < sum.size(); ++q) sum[q] += std::min(sum[q - 1], kMost - sum[q]);
}

/// What later layers of the stage have saved is not there yet in F, or no longer in B; in I it
/// turns into what W needs, of a storage if its first user of both kinds is in the same segment; in
/// W, what they kept is gone.
void StageBounds::Sums::find_temporaries(const Layers& layers) {
  const std::size_t count = layers.size(), positions = layer.size();
  using Before = std::vector<std::int64_t>;  // [layer] of the layers before it
  Before saved(count + 1, 0), replaced = saved, weight = saved;
  const auto add = [](Before& sums, std::size_t l, Bytes more) {
    sums[l + 1] += std::min(more.value, kMost - sums[l + 1]);
  };
  for (std::size_t l = 0; l < count; ++l) {
    if (!forward_only) add(saved, l, layers.layers[l].saved);
    add(weight, l, layers.layers[l].weight_saved);
    add(replaced, l, layers.layers[l].weight_saved);
  }
  std::set<std::size_t> values;
  for (const LayerStorage& storage : kept_storages(layers)) {
    const bool needed = !storage.weight_savers.empty();
    if (needed) add(weight, storage.weight_savers.front().index(), storage.bytes);
    if (storage.savers.empty() || (storage.value && !values.insert(*storage.value).second))
      continue;
    const std::size_t first = storage.savers.front().index();
    add(saved, first, storage.bytes);
    if (needed && segment[storage.weight_savers.front().index()] == segment[first])
      add(replaced, first, storage.bytes);
  }
  for (Before* sums : {&saved, &replaced, &weight})
    for (std::size_t l = 0; l < count; ++l)
      (*sums)[l + 1] += std::min((*sums)[l], kMost - (*sums)[l + 1]);
  const auto during = [&](std::size_t pass, const Layer& model_layer) {
    const PassBytes& more = model_layer.temporary;
    const Bytes saved_within[kPasses]{more.forward, more.backward, more.input, more.weight};
    return std::min(saved_within[pass].value, kMost) +
           (pass == 2 ? std::min(model_layer.weight_saved.value, kMost) : 0);
  };
  const auto held = [&](std::size_t pass, std::size_t l) {
    return pass == 3 ? weight[l] : saved[l] - (pass == 2 ? replaced[l] : 0);
  };
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    temporary[pass].assign(positions * positions, 0);
    for (std::size_t from = 0; from < last(); ++from) {
      std::int64_t most = held(pass, layer[from]);
      for (std::size_t l = layer[from]; l < count; ++l) {
        most = std::max(most, during(pass, layers.layers[l]) + held(pass, l + 1));
        temporary[pass][from * positions + segment[l] + 1] =
            std::max<std::int64_t>(0, most - held(pass, l + 1));
      }
    }
  }
}

void StageBounds::Sums::find_crossings(const Layers& layers) {
  crossing.resize(layer.size());
  for (const LayerValue& value : layers.values) {
    const std::size_t producer = segment[value.producer.index()];
    auto reader = value.consumers.begin();
    for (std::size_t q = producer + 1; q <= segment[value.consumers.back().index()]; ++q) {
      while (segment[reader->index()] < q) ++reader;
      crossing[q].push_back({producer, segment[reader->index()], &value});
    }
  }
}

std::int64_t StageBounds::once(std::size_t s, std::size_t amount) const {
  const DeviceKind& device = cluster_->kinds[kind(s)];
  if (sums_->forward_only && amount != kForward) return 0;
  if (amount == kForward || amount == kInput) return device.stage_overhead.count();
  const auto& ranks = placement_->rank_of_stage;
  const bool first = std::ranges::find(ranks, ranks[s]) - ranks.begin() == std::ptrdiff_t(s);
  if (amount != kStep) return 0;
  const bool reduces = s == 0 && placement_->stages() == placement_->ranks();
  return (first ? (device.iteration_overhead + norm_).count() : 0) +
         (reduces ? sums_->first_reduction : 0);
}

std::int64_t StageBounds::load(std::size_t s, std::size_t from, std::size_t to) const {
  std::int64_t sum = 0;
  for (const Amount work : {kForward, kInput, kWeight})
    sum += until(to, s, work) - until(from, s, work);
  return sum;
}

Nanoseconds StageBounds::time(std::size_t s, bool back, const TimedMessage& message) const {
  const DeviceId before = device(s - 1), here = device(s);
  const auto& ranks = placement_->rank_of_stage;
  if (ranks[s - 1] == ranks[s] || (back && sums_->forward_only)) return Nanoseconds{0};
  return message.time(back ? cluster_->path(here, before) : cluster_->path(before, here));
}

/// What surely crosses is made behind the latest begin and read before the earliest end; more
/// bytes never take less time. Else it has one of the values that may cross.
std::optional<Nanoseconds> StageBounds::message(std::size_t s, Positions begins, std::size_t q,
                                                Positions ends, bool back, bool linked) const {
  TimedMessage sent_anyway;
  Nanoseconds least{kMost};
  for (const auto& [producer, reader, value] : sums_->crossing[q]) {
    if (producer < begins.begin || reader + 1 >= ends.end) continue;
    if (back && !value->has_gradient) continue;
    const Bytes bytes = back ? value->gradient_bytes : value->bytes;
    if (producer + 1 >= begins.end && reader < ends.begin) {
      sent_anyway.add(*value, bytes);
    } else if (linked && sent_anyway.empty()) {
      TimedMessage alone;
      alone.add(*value, bytes);
      least = std::min(least, time(s, back, alone));
    }
  }
  if (!sent_anyway.empty()) return time(s, back, sent_anyway);
  return linked ? std::optional(least) : std::nullopt;
}

}  // namespace pfeife
