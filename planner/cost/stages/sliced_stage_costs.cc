#include "planner/cost/stages/sliced_stage_costs.h"

#include <algorithm>
#include <cmath>

#include "planner/cost/stages/stage_portions.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// Whole tokens, one a slice at least.
std::vector<double> at_tokens(std::vector<double> ends, std::int64_t tokens) {
  if (tokens == 0) return ends;
  const auto all = static_cast<double>(tokens);
  const auto slices = static_cast<std::int64_t>(ends.size());
  std::int64_t before = 0;
  for (std::int64_t k = 0; k < slices; ++k) {
    double& end = ends[static_cast<std::size_t>(k)];
    before =
        std::clamp<std::int64_t>(std::llround(end * all), before + 1, tokens - (slices - 1 - k));
    end = static_cast<double>(before) / all;
  }
  return ends;
}

void time_messages(const std::vector<StagePair>& whole, const Placement& placement,
                   const Cluster& cluster, std::vector<StagePair>& pairs) {
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    StagePair& pair = pairs[p];
    const DeviceId from = placement.device(pair.from), to = placement.device(pair.to);
    if (placement.rank(pair.from) == placement.rank(pair.to)) continue;
    // A published time says nothing of smaller messages: it stays, as no slice takes longer.
    const auto timed = [&](Nanoseconds time, Bytes all, Bytes bytes, const Path& path) {
      return time == transfer_time(path, all) ? transfer_time(path, bytes) : time;
    };
    pair.forward_time =
        timed(pair.forward_time, whole[p].bytes, pair.bytes, cluster.path(from, to));
    pair.backward_time = timed(pair.backward_time, whole[p].gradient_bytes, pair.gradient_bytes,
                               cluster.path(to, from));
  }
}

/// Bytes of keys and values of the whole sequence.
struct Keys {
  Bytes all{0}, recomputed{0};  ///< recomputed: of layers that are computed again
};

std::vector<Keys> keys_of_stages(const Layers& layers, const Partition& partition,
                                 const Activations& activations) {
  std::vector<Keys> keys(partition.stages());
  std::vector<bool> again(layers.size(), false);
  for (const LayerRange& block : activations.blocks)
    std::fill(again.begin() + block.first.value, again.begin() + block.last.value + 1, true);
  for (std::size_t s = 0; s < keys.size(); ++s)
    for (std::size_t l = partition.begin(s); l < partition.end(s, layers.size()); ++l) {
      const Bytes bytes = layers.sequence->keys_values[l];
      const bool stage_again = !activations.stages.empty() && activations.stages[s];
      keys[s].all += bytes;
      if (stage_again || again[l]) keys[s].recomputed += bytes;
    }
  return keys;
}

/// Later slices read the keys and values of a slice, unless it is the last: they stay on the
/// device.
void keep_keys(const std::vector<Keys>& keys, double length, bool last,
               const Activations& activations, const Placement& placement,
               StageCosts::Slice& slice) {
  const auto part = [&](Bytes whole) {
    return Bytes{static_cast<std::int64_t>(std::ceil(static_cast<double>(whole.value) * length))};
  };
  for (std::size_t s = 0; s < keys.size(); ++s) {
    StageCost& stage = slice.stages[s];
    slice.key_gradients[s] = part(keys[s].all);
    if (last) continue;
    stage.saved += part(keys[s].recomputed);
    stage.recomputed = std::max(Bytes{0}, stage.recomputed - part(keys[s].recomputed));
  }
  if (!activations.offloads()) return;
  const std::vector<Bytes> alone = saved_alone(slice.stages, slice.values, placement);
  for (std::size_t s = 0; s < keys.size(); ++s) {
    StageCost& stage = slice.stages[s];
    if (stage.offloaded == Bytes{0}) continue;
    const auto whole = static_cast<double>(stage.offloaded.value);
    const Bytes movable = std::max(Bytes{0}, alone[s] - (last ? Bytes{0} : part(keys[s].all)));
    stage.offloaded =
        Bytes{std::llround(activations.offload[s] * static_cast<double>(movable.value))};
    const double share = static_cast<double>(stage.offloaded.value) / whole;
    for (Nanoseconds* const time : {&stage.offload, &stage.reload})
      *time = Nanoseconds{std::llround(static_cast<double>(time->count()) * share)};
  }
}

}  // namespace

std::vector<double> slice_ends_of(const Layers& layers, std::size_t slices, SliceLengths lengths) {
  return at_tokens(slice_ends(slices, lengths, 1 - attention_share(layers, 0, layers.size())),
                   layers.sequence->tokens);
}

std::string not_sliced_because(const Layers& layers, std::size_t slices) {
  if (!layers.sequence)
    return layers.whole_because.empty()
               ? "the attention of this model is not seen, as in a layer table or a profile of "
                 "layers; take an archive"
               : layers.whole_because;
  const std::int64_t tokens = layers.sequence->tokens;
  if (tokens > 0 && slices > static_cast<std::size_t>(tokens))
    return "a sequence of " + std::to_string(tokens) + " tokens has no " + std::to_string(slices) +
           " slices";
  return "";
}

StageCosts sliced_stage_costs(StageCosts whole, std::size_t slices, SliceLengths lengths,
                              const Layers& layers, const Partition& partition,
                              const Placement& placement, const Cluster& cluster,
                              const Activations& activations) {
  if (const std::string why = not_sliced_because(layers, slices); !why.empty())
    throw ConfigError({}, "microbatches cannot be cut into slices: " + why);
  const std::vector<double> linear = linear_shares(layers, partition);
  const std::vector<double> ends = slice_ends_of(layers, slices, lengths);
  std::vector<Nanoseconds> overheads;  // [stage] of each action, whatever its length
  for (std::size_t s = 0; s < partition.stages(); ++s) {
    overheads.push_back(cluster.kind(placement.device(StageId{s})).stage_overhead);
    whole.stages[s].forward -= overheads[s], whole.stages[s].backward_input -= overheads[s];
  }
  whole.last = {};
  const std::vector<StagePair> pairs = whole.pairs;
  whole = with_slices(std::move(whole), ends, linear);
  expose_reductions(layers, partition, whole.slices, whole);
  const std::vector<Keys> keys = keys_of_stages(layers, partition, activations);
  double begin = 0;
  for (std::size_t k = 0; k < slices; ++k) {
    StageCosts::Slice& slice = whole.slices[k];
    time_messages(pairs, placement, cluster, slice.pairs);
    keep_keys(keys, ends[k] - begin, k + 1 == slices, activations, placement, slice);
    for (std::size_t s = 0; s < partition.stages(); ++s)
      slice.stages[s].forward += overheads[s], slice.stages[s].backward_input += overheads[s];
    begin = ends[k];
  }
  for (std::size_t s = 0; s < partition.stages(); ++s)
    whole.stages[s].forward += overheads[s], whole.stages[s].backward_input += overheads[s];
  return whole;
}

}  // namespace pfeife
