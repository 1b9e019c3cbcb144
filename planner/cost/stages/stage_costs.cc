#include "planner/cost/stages/stage_costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include "planner/cost/stages/microbatch_stage_costs.h"
#include "planner/cost/stages/recomputed_layers.h"
#include "planner/cost/stages/sliced_stage_costs.h"
#include "planner/cost/stages/stage_steps.h"
#include "planner/cost/stages/stage_temporary.h"
#include "planner/cost/stages/timed_message.h"
#include "planner/cost/stages/word_shares.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// The work of stage_costs, one kind of contribution a function.
class Collector {
 public:
  Collector(const SummedLayers& sums, const Partition& partition, const Placement& placement,
            const Cluster& cluster)
      : sums_(sums),
        layers_(sums.layers()),
        partition_(partition),
        placement_(placement),
        cluster_(cluster) {
    PFEIFE_CHECK(partition.stages() == placement.stages(), partition.stages(), " stages, ",
                 placement.stages(), " placed");
    costs_.stages.resize(partition.stages());
    costs_.overlap_factor = layers_.overlap_factor;
    costs_.mode = layers_.mode;
    stage_of_.reserve(layers_.size());
    for (std::size_t s = 0; s < partition.stages(); ++s) stage_of_.resize(end(s), StageId{s});
    PFEIFE_CHECK(stage_of_.size() == layers_.size(), "illegal partition");
  }

  StageCosts collect() {
    add_layers();
    add_values();
    add_storages();
    add_temporary();
    add_parameters();
    add_replicas();
    return std::move(costs_);
  }

 private:
  StageCost& cost(StageId s) { return costs_.stages[s.index()]; }
  StageId stage(LayerId layer) const { return stage_of_[layer.index()]; }
  std::size_t kind(StageId s) const {
    return cluster_.kind_of_device[placement_.device(s).index()];
  }
  std::size_t begin(std::size_t s) const { return partition_.begin(s); }
  std::size_t end(std::size_t s) const { return partition_.end(s, layers_.size()); }

  /// The stages of layers, each once, in order; until the next call.
  const std::vector<StageId>& stages(const std::vector<LayerId>& of) {
    found_.clear();
    for (const LayerId layer : of)
      if (found_.empty() || found_.back() != stage(layer)) found_.push_back(stage(layer));
    return found_;
  }

  /// Numbers that list(layer) has for the places of the cuts, each once, rising.
  template <class List>
  std::vector<std::uint32_t> over_cuts(const List& list) const {
    std::vector<std::uint32_t> found;
    for (std::size_t s = 1; s < costs_.stages.size(); ++s) {
      const std::span<const std::uint32_t> here = list(begin(s));
      found.insert(found.end(), here.begin(), here.end());
    }
    return each_once(std::move(found));
  }
  static std::vector<std::uint32_t> each_once(std::vector<std::uint32_t> numbers) {
    std::ranges::sort(numbers);
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
  }

  void add_layers() {
    for (std::size_t s = 0; s < costs_.stages.size(); ++s) {
      StageCost& sum = costs_.stages[s];
      const LayerTimes times = sums_.times(kind(StageId{s}), begin(s), end(s));
      sum.forward = times.forward;
      sum.backward_input = times.backward_input;
      sum.backward_weight = times.backward_weight;
      sum.optimizer = times.optimizer;
      const SummedLayers::Held held = sums_.held(begin(s), end(s));
      sum.saved = held.saved;
      sum.weight_saved = held.weight_saved;
      sum.model_input = held.model_input;
      sum.parameters = held.parameters;
      sum.gradients = held.gradients;
      sum.optimizer_state = held.optimizer_state;
      sum.forward_collectives = held.forward_collectives;
      sum.backward_collectives = held.backward_collectives;
    }
  }

  /// Both ways between two stages.
  struct Messages {
    StageId from, to;
    Bytes bytes{0}, gradient{0};
    TimedMessage forward, backward;
  };
  Messages& messages(StageId from, StageId to) {
    for (Messages& known : messages_)
      if (known.from == from && known.to == to) return known;
    return messages_.emplace_back(Messages{.from = from, .to = to, .forward = {}, .backward = {}});
  }

  void add_values() {
    for (const std::uint32_t v : over_cuts([&](std::size_t l) { return sums_.values_over(l); })) {
      const LayerValue& value = layers_.values[v];
      StageValue crossing{stage(value.producer), {}, value.bytes, value.gradient_bytes, false, {}};
      for (const StageId to : stages(value.consumers))
        if (to != crossing.from) crossing.to.push_back(to);
      for (const StageId to : crossing.to) {
        Messages& message = messages(crossing.from, to);
        message.bytes += value.bytes;
        message.gradient += value.gradient_bytes;
        message.forward.add(value, value.bytes);
        if (value.has_gradient) message.backward.add(value, value.gradient_bytes);
      }
      crossing.saved_by_receiver.assign(crossing.to.size(), false);
      crossing_.push_back(v);
      costs_.values.push_back(std::move(crossing));
    }
    std::ranges::sort(messages_, {}, [](const Messages& m) { return std::pair(m.from, m.to); });
    for (const Messages& message : messages_) {
      StagePair pair{.from = message.from,
                     .to = message.to,
                     .bytes = message.bytes,
                     .gradient_bytes = message.gradient,
                     .has_gradient = !message.backward.empty()};
      const DeviceId from = placement_.device(pair.from), to = placement_.device(pair.to);
      if (placement_.rank(pair.from) != placement_.rank(pair.to)) {
        pair.forward_time = message.forward.time(cluster_.path(from, to));
        pair.backward_time = message.backward.time(cluster_.path(to, from));
      }
      costs_.pairs.push_back(pair);
    }
  }

  static std::span<const StageId> but_first(const std::vector<StageId>& stages) {
    return std::span(stages).subspan(std::min<std::size_t>(1, stages.size()));
  }
  /// What is saved in several stages, whose first has it already; and which values are saved.
  void add_storages() {
    for (const std::uint32_t i : over_cuts([&](std::size_t l) { return sums_.storages_over(l); })) {
      const LayerStorage& storage = layers_.storages[i];
      for (const StageId s : but_first(stages(storage.weight_savers)))
        cost(s).weight_saved += storage.bytes;
      for (const StageId s : but_first(stages(storage.savers))) cost(s).saved += storage.bytes;
    }
    for (std::size_t c = 0; c < crossing_.size(); ++c)
      for (const std::uint32_t i : sums_.storages_of(crossing_[c]))
        for (const StageId s : stages(layers_.storages[i].savers)) mark_saved(s, costs_.values[c]);
  }
  static void mark_saved(StageId by, StageValue& value) {
    if (by == value.from) value.saved_by_sender = true;
    const auto at = std::ranges::lower_bound(value.to, by);
    if (at != value.to.end() && *at == by)
      value.saved_by_receiver[static_cast<std::size_t>(at - value.to.begin())] = true;
  }

  void add_temporary() {
    for (std::size_t s = 0; s < costs_.stages.size(); ++s) {
      const StageTemporary temporary = sums_.temporary(begin(s), end(s));
      costs_.stages[s].temporary = temporary.kept;
      costs_.stages[s].unkept_forward = temporary.unkept_forward;
    }
  }

  /// Parameters of several stages, whose first has them already.
  void add_parameters() {
    std::vector<std::size_t> group(
        costs_.stages.size());  // stages that reduce together: smallest member
    std::iota(group.begin(), group.end(), std::size_t{0});
    std::vector<std::pair<std::size_t, StageReduction>> shared;
    std::vector<RankId> ranks;
    for (const std::uint32_t p :
         over_cuts([&](std::size_t l) { return sums_.parameters_over(l); })) {
      const LayerParameter& parameter = layers_.parameters[p];
      const std::vector<StageId>& users = stages(parameter.users);
      ranks.assign(1, placement_.rank(users.front()));
      for (const StageId s : users) {
        if (std::ranges::find(ranks, placement_.rank(s)) != ranks.end()) continue;
        ranks.push_back(placement_.rank(s));
        StageCost& holder = cost(s);
        holder.parameters += parameter.bytes;
        holder.gradients += parameter.gradient;
        holder.optimizer_state += parameter.state;
        if (!parameter.optimizer.empty()) holder.optimizer += parameter.optimizer.at(kind(s));
      }
      if (ranks.size() < 2 || parameter.gradient == Bytes{0}) continue;
      const Bytes exchanged =
          parameter.exchanged > Bytes{0} ? parameter.exchanged : parameter.gradient;
      std::vector<DeviceId> devices;
      for (const RankId r : ranks) devices.push_back(placement_.device(r));
      std::size_t first = users.front().index();
      for (const StageId s : users) first = std::min(first, group[s.index()]);
      for (const StageId s : users) {
        const std::size_t old = group[s.index()];
        std::ranges::replace(group, old, first);
      }
      shared.push_back({users.front().index(),
                        {users, exchanged, all_reduce_time(cluster_, devices, exchanged)}});
    }
    merge_reductions(shared, group);
  }
  void add_replicas() {
    if (layers_.reductions.empty()) return;
    for (std::size_t s = 0, begin = 0; s < costs_.stages.size(); ++s) {
      std::size_t end = begin;
      while (end < layers_.size() && stage_of_[end] == StageId{s}) ++end;
      const Nanoseconds behind = exposed_reduction(layers_.reductions, begin, end);
      Nanoseconds wire{0};
      for (std::size_t l = begin; l < end; ++l) wire += layers_.reductions[l].wire;
      costs_.replicas.push_back(
          {whole_reduction(layers_.reductions, begin, end) - behind, behind, wire});
      begin = end;
    }
  }
  void merge_reductions(const std::vector<std::pair<std::size_t, StageReduction>>& shared,
                        const std::vector<std::size_t>& group) {
    std::map<std::size_t, StageReduction> merged;
    for (const auto& [member, reduction] : shared) {
      StageReduction& sum = merged[group[member]];
      sum.stages.insert(sum.stages.end(), reduction.stages.begin(), reduction.stages.end());
      sum.bytes += reduction.bytes;
      sum.time += reduction.time;
    }
    for (auto& [name, reduction] : merged) {
      std::ranges::sort(reduction.stages);
      reduction.stages.erase(std::unique(reduction.stages.begin(), reduction.stages.end()),
                             reduction.stages.end());
      costs_.reductions.push_back(std::move(reduction));
    }
  }

  const SummedLayers& sums_;
  const Layers& layers_;
  const Partition& partition_;
  const Placement& placement_;
  const Cluster& cluster_;
  std::vector<StageId> stage_of_;        // [layer]
  std::vector<std::uint32_t> crossing_;  // [costs_.values] number of the LayerValue
  std::vector<Messages> messages_;
  std::vector<StageId> found_;  // of stages()
  StageCosts costs_;
};

void add_recomputation(const std::vector<bool>& recompute, StageCosts& costs) {
  if (std::ranges::find(recompute, true) == recompute.end()) return;
  PFEIFE_CHECK(recompute.size() == costs.stages.size(), "one choice for each stage");
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    if (!recompute[s]) continue;
    StageCost& stage = costs.stages[s];
    stage.backward_input += stage.forward;
    stage.recomputed = stage.saved;
    stage.saved = stage.model_input;
    stage.forward_again = stage.temporary.forward;
    stage.temporary.forward = stage.unkept_forward;
  }
  for (StageValue& value : costs.values) {
    if (recompute[value.from.index()]) {
      if (!value.saved_by_sender) costs.stages[value.from.index()].forward_again += value.bytes;
      value.saved_by_sender = false;
    }
    for (std::size_t i = 0; i < value.to.size(); ++i) {
      if (!recompute[value.to[i].index()]) continue;
      StageCost& stage = costs.stages[value.to[i].index()];
      if (value.saved_by_receiver[i]) stage.recomputed -= value.bytes;  // kept anyway
      value.saved_by_receiver[i] = true;
      stage.saved += value.bytes;
    }
  }
  for (StageCost& stage : costs.stages) stage.recomputed = std::max(stage.recomputed, Bytes{0});
}

void add_offload(const std::vector<double>& shares, const Placement& placement,
                 const Cluster& cluster, std::vector<StageCost>& stages,
                 const std::vector<StageValue>& values) {
  const std::vector<Bytes> alone = saved_alone(stages, values, placement);
  for (std::size_t s = 0; s < alone.size(); ++s) {
    if (shares[s] <= 0 || alone[s] <= Bytes{0}) continue;
    const DeviceKind& kind = cluster.kind(placement.device(StageId{s}));
    if (!kind.host_link)
      throw ConfigError({}, "stage " + std::to_string(s) + " offloads what it saves, but devices " +
                                "of the kind \"" + kind.name +
                                "\" have no way to their host; give the kind a host_link in the "
                                "cluster file, as host_link: {bandwidth: 25 GB/s}");
    const HostLink& link = *kind.host_link;
    const BytesPerSecond rate{link.bandwidth.value / static_cast<double>(link.shared_by)};
    StageCost& stage = stages[s];
    stage.offloaded = Bytes{std::llround(shares[s] * static_cast<double>(alone[s].value))};
    stage.offload = stage.reload = nanoseconds_from_seconds(seconds_at(stage.offloaded, rate));
  }
}

void add_overheads(const Placement& placement, const Cluster& cluster,
                   std::vector<StageCost>& stages) {
  std::vector<bool> seen(placement.ranks(), false);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const StageId id{s};
    const DeviceKind& device = cluster.kinds[cluster.kind_of_device[placement.device(id).index()]];
    StageCost& stage = stages[s];
    stage.forward += device.stage_overhead;
    stage.backward_input += device.stage_overhead;
    const std::size_t rank = placement.rank(id).index();
    if (!seen[rank]) stage.optimizer += device.iteration_overhead;
    seen[rank] = true;
  }
}

/// What the slowest rank takes to clip.
Nanoseconds longest_clipping(const Layers& layers, const Partition& partition,
                             const Placement& placement, const Cluster& cluster) {
  std::vector<StageId> stage_of;
  for (std::size_t s = 0; s < partition.stages(); ++s)
    stage_of.resize(partition.end(s, layers.size()), StageId{s});
  struct Held {
    Bytes gradients{0};
    std::int64_t parameters = 0;
  };
  std::vector<Held> held(placement.ranks());
  for (const LayerParameter& parameter : layers.parameters) {
    if (parameter.gradient == Bytes{0}) continue;
    std::vector<RankId> ranks;
    for (const LayerId user : parameter.users)
      ranks.push_back(placement.rank(stage_of[user.index()]));
    std::ranges::sort(ranks);
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    for (const RankId r : ranks)
      held[r.index()].gradients += parameter.gradient, ++held[r.index()].parameters;
  }
  Nanoseconds longest{0};
  for (std::size_t r = 0; r < held.size(); ++r) {
    const DeviceId device = placement.device_of_rank[r];
    const DeviceKind& kind = cluster.kinds[cluster.kind_of_device[device.index()]];
    longest = std::max(longest, clipping_time(kind, held[r].gradients, held[r].parameters));
  }
  return longest;
}

}  // namespace

StageCosts collected_stage_costs(const SummedLayers& sums, const Partition& partition,
                                 const Placement& placement, const Cluster& cluster) {
  return Collector(sums, partition, placement, cluster).collect();
}

StageCosts with_recomputation(StageCosts collected, const Activations& activations,
                              const Placement& placement, const Cluster& cluster) {
  if (activations.except_last && activations.recomputes())
    collected.last = {collected.stages, collected.values};
  add_recomputation(activations.stages, collected);
  if (activations.offloads()) {
    PFEIFE_CHECK(activations.offload.size() == collected.stages.size(), "one share for each stage");
    const auto offload = [&](std::vector<StageCost>& stages,
                             const std::vector<StageValue>& values) {
      add_offload(activations.offload, placement, cluster, stages, values);
    };
    offload(collected.stages, collected.values);
    if (!collected.last.stages.empty()) offload(collected.last.stages, collected.last.values);
    for (const DeviceId device : placement.device_of_rank) {
      const std::optional<HostLink>& link = cluster.kind(device).host_link;
      collected.one_copy_engine |= link && link->half_duplex;
    }
  }
  add_overheads(placement, cluster, collected.stages);
  add_overheads(placement, cluster, collected.last.stages);
  return collected.mode == Mode::Forward ? without_backward(std::move(collected)) : collected;
}

/// The costs of a microbatch that is as the layers say.
static StageCosts costs_of_any(const SummedLayers& sums, const Partition& partition,
                               const Placement& placement, const Cluster& cluster,
                               const Activations& activations, StepNorm norm) {
  const auto costs_of = [&](const SummedLayers& run, const Activations& again) {
    StageCosts costs = with_recomputation(collected_stage_costs(run, partition, placement, cluster),
                                          again, placement, cluster);
    costs.norm = norm_time(sums.layers(), norm, partition, placement, cluster);
    add_side_by_side(run.layers(), partition, placement, cluster, costs);
    return costs;
  };
  if (activations.blocks.empty()) return costs_of(sums, activations);
  const Layers again = recomputed_layers(sums.layers(), partition, activations.blocks);
  StageCosts costs =
      costs_of(again, {.stages = activations.stages, .offload = activations.offload});
  if (!activations.except_last) return costs;
  StageCosts kept = costs_of(sums, {.offload = activations.offload});
  costs.last = {std::move(kept.stages), std::move(kept.values), std::move(kept.side_by_side)};
  return costs;
}

StageCosts stage_costs(const SummedLayers& sums, const Partition& partition,
                       const Placement& placement, const Cluster& cluster,
                       const Activations& activations, StepNorm norm) {
  return microbatch_stage_costs(
      costs_of_any(sums, partition, placement, cluster, activations, norm), sums.layers(),
      partition, placement, cluster);
}

StageCosts stage_costs(const Layers& layers, const Plan& plan, const Cluster& cluster) {
  if (const std::optional<Layers> divided = divided_layers(layers, plan.schedule)) {
    StageCosts costs = stage_costs(*divided, plan.partition, plan.placement, cluster,
                                   plan.activations, step_norm(plan));
    add_word_shares(costs, *divided->words, plan.schedule);
    return costs;
  }
  StageCosts costs = stage_costs(layers, plan.partition, plan.placement, cluster, plan.activations,
                                 step_norm(plan));
  if (const std::size_t slices = slice_count(plan.schedule); slices > 1)
    return sliced_stage_costs(std::move(costs), slices, plan.spec.slice_lengths, layers,
                              plan.partition, plan.placement, cluster, plan.activations);
  return costs;
}

Nanoseconds clipping_time(const DeviceKind& kind, Bytes gradients, std::int64_t parameters) {
  const std::int64_t operators =
      kind.type == DeviceType::Cpu ? 2 * parameters : std::min<std::int64_t>(parameters, 2);
  Nanoseconds time = operators * kind.operator_time();
  if (kind.memory_bandwidth.value > 0)
    time += nanoseconds_from_seconds(seconds_at(3 * gradients, kind.element_wise_rate()));
  return time;
}

Nanoseconds norm_exchange_time(StepNorm norm, const std::vector<DeviceId>& device_of_rank,
                               const Cluster& cluster) {
  if (norm == StepNorm::None) return Nanoseconds{0};
  return all_reduce_time(cluster, device_of_rank, Bytes{sizeof(double)});
}

std::optional<Nanoseconds> norm_time(const Layers& layers, StepNorm norm,
                                     const Partition& partition, const Placement& placement,
                                     const Cluster& cluster) {
  if (norm == StepNorm::None) return std::nullopt;
  const Nanoseconds exchange = norm_exchange_time(norm, placement.device_of_rank, cluster);
  if (norm == StepNorm::Finite) return exchange;
  return exchange + longest_clipping(layers, partition, placement, cluster);
}

Nanoseconds least_norm_time(const Layers& layers, StepNorm norm,
                            const std::vector<DeviceId>& device_of_rank, const Cluster& cluster) {
  const Nanoseconds exchange = norm_exchange_time(norm, device_of_rank, cluster);
  if (norm != StepNorm::Clipped) return exchange;
  Bytes gradients{0};
  for (const LayerParameter& parameter : layers.parameters)
    if (!parameter.users.empty()) gradients += parameter.gradient;
  if (gradients == Bytes{0}) return exchange;
  const Bytes share{gradients.value / static_cast<std::int64_t>(device_of_rank.size())};
  Nanoseconds least = Nanoseconds::max();
  for (const DeviceId device : device_of_rank)
    least = std::min(
        least, clipping_time(cluster.kinds[cluster.kind_of_device[device.index()]], share, 1));
  return exchange + least;
}

}  // namespace pfeife
