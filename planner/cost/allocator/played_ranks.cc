#include "planner/cost/allocator/played_ranks.h"

#include <algorithm>
#include <array>
#include <memory_resource>
#include <numeric>
#include <optional>
#include <ranges>
#include <unordered_map>

#include "planner/cost/allocator/caching_allocator.h"
#include "planner/cost/stages/recomputed_layers.h"
#include "planner/cost/stages/word_shares.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr int kSteps = 2;
/// More than any device has: how far over its memory a plan is shall be seen.
constexpr Bytes kCapacity{std::int64_t{1} << 44};

/// A storage, or a value that crosses a cut, while one microbatch needs it.
struct Tensor {
  std::size_t number = 0;  ///< of Layers::values, or behind these of Layers::storages
  Bytes bytes{0};
};

/// What a layer does with tensors that outlive it.
struct LayerTensors {
  std::vector<Tensor> created;     ///< in F: kept until a backward
  std::vector<Tensor> let_go;      ///< in B or I
  std::vector<Tensor> held_for_w;  ///< of these, in I: until W
  std::vector<Tensor> sent;        ///< in F, once for each receiver
  Bytes saved{0}, weight_saved{0};
  std::vector<std::size_t> parameters;
  // The node is in a recomputed block.
  bool recomputed = false, ends_block = false;
  std::size_t block_begin = 0;
  std::vector<Tensor> inner_created, inner_let_go, inner_held_for_w;
  Bytes inner_saved{0};
};

/// The model's layers, cut and with blocks recomputed: what each does with tensors.
class TensorsOfLayers {
 public:
  TensorsOfLayers(const Layers& layers, const Partition& partition,
                  const std::vector<LayerRange>& blocks)
      : layers_(layers), of_(layers.size()), stage_of_(layers.size()) {
    for (std::size_t s = 0; s < partition.stages(); ++s)
      for (std::size_t l = partition.begin(s); l < partition.end(s, layers.size()); ++l)
        stage_of_[l] = s;
    const Layers kept = recomputed_layers(layers, partition, blocks);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      of_[l].saved = kept.layers[l].saved;
      of_[l].weight_saved = layers.layers[l].weight_saved;
    }
    for (std::size_t i = 0; i < kept.storages.size(); ++i) add_kept(kept.storages[i], i);
    for (const LayerRange& block : blocks) add_block(block);
    for (std::size_t v = 0; v < layers.values.size(); ++v) add_value(v);
    for (std::size_t p = 0; p < layers.parameters.size(); ++p)
      for (const LayerId user : layers.parameters[p].users)
        of_[user.index()].parameters.push_back(p);
  }

  const LayerTensors& at(std::size_t l) const { return of_[l]; }

 private:
  Tensor tensor(const LayerStorage& storage, std::size_t number) const {
    return {storage.value ? *storage.value : layers_.values.size() + number, storage.bytes};
  }
  /// For each stage that saves it: from its maker, or its first saver, to the first saver's
  /// backward.
  void add_kept(const LayerStorage& storage, std::size_t number) {
    const Tensor kept = tensor(storage, number);
    std::optional<std::size_t> done;
    for (const LayerId saver : storage.savers) {
      const std::size_t first = saver.index(), s = stage_of_[first];
      if (done == s) continue;
      done = s;
      std::size_t maker = first;
      if (storage.value) {
        const std::size_t producer = layers_.values[*storage.value].producer.index();
        if (producer < first && stage_of_[producer] == s) maker = producer;
      }
      of_[maker].created.push_back(kept);
      const bool waits = std::ranges::any_of(storage.weight_savers,
                                             [&](LayerId l) { return stage_of_[l.index()] == s; });
      of_[first].let_go.push_back(kept);
      if (waits) of_[first].held_for_w.push_back(kept);
    }
  }
  /// What a block makes again for its backward.
  void add_block(const LayerRange& block) {
    const std::size_t begin = block.first.index(), end = block.last.index();
    for (std::size_t l = begin; l <= end; ++l) {
      of_[l].recomputed = true, of_[l].block_begin = begin;
      of_[l].inner_saved = layers_.layers[l].saved;
    }
    of_[end].ends_block = true;
    for (std::size_t i = 0; i < layers_.storages.size(); ++i) {
      const LayerStorage& storage = layers_.storages[i];
      const auto first = std::ranges::lower_bound(storage.savers, block.first);
      if (first == storage.savers.end() || block.last < *first) continue;
      std::size_t maker = first->index();
      if (storage.value) {
        const std::size_t producer = layers_.values[*storage.value].producer.index();
        if (producer < begin) continue;  // it enters the block, which keeps it
        maker = std::min(maker, producer);
      }
      of_[maker].inner_created.push_back(tensor(storage, i));
      of_[first->index()].inner_let_go.push_back(tensor(storage, i));
      if (std::ranges::any_of(storage.weight_savers,
                              [&](LayerId l) { return block.first <= l && l <= block.last; }))
        of_[first->index()].inner_held_for_w.push_back(tensor(storage, i));
    }
  }
  void add_value(std::size_t v) {
    const LayerValue& value = layers_.values[v];
    const std::size_t producer = value.producer.index();
    std::size_t last = stage_of_[producer];
    for (const LayerId reader : value.consumers)
      if (stage_of_[reader.index()] != last) {
        last = stage_of_[reader.index()];
        of_[producer].sent.push_back({v, value.bytes});
      }
  }

  const Layers& layers_;
  std::vector<LayerTensors> of_;  // [layer]
  std::vector<std::size_t> stage_of_;
};

class Player {
 public:
  Player(const Plan& plan, const Layers& layers, const TensorsOfLayers& again,
         const TensorsOfLayers& once, RankId rank, const AllocatorSettings& settings)
      : plan_(plan),
        layers_(layers),
        again_(again),
        once_(once),
        rank_(rank),
        row_(plan.schedule.rows[rank.index()]),
        last_(last_forwards(row_, plan.partition.stages())),
        allocator_(settings, kCapacity),
        entering_(plan.partition.stages()),
        leaving_(plan.partition.stages()),
        has_gradient_(layers.parameters.size(), false) {
    std::vector<std::size_t> stage_of(layers.size());
    for (std::size_t s = 0; s < plan.partition.stages(); ++s)
      for (std::size_t l = begin(s); l < end(s); ++l) stage_of[l] = s;
    for (std::size_t v = 0; v < layers.values.size(); ++v) {
      const std::size_t from = stage_of[layers.values[v].producer.index()];
      std::size_t before = from;
      for (const LayerId reader : layers.values[v].consumers)
        if (const std::size_t to = stage_of[reader.index()]; to != before) {
          before = to;
          entering_[to].push_back({v, from});
          leaving_[from].push_back({v, to});
        }
    }
    for (const LayerParameter& parameter : layers.parameters)
      if (std::ranges::any_of(parameter.users,
                              [&](LayerId l) { return here(stage_of[l.index()]); }))
        make(parameter.bytes), mine_.push_back(&parameter);
  }

  PlayedRank play() {
    for (int step = 0; step < kSteps; ++step) {
      for (const Cell& cell : row_)
        for_each_action(cell, [&](const Action& action) { run(action); });
      if (step > 0) continue;
      for (const LayerParameter* parameter : mine_) make_state(*parameter);
    }
    return {allocator_.peak_allocated(), allocator_.peak_reserved()};
  }

 private:
  using Block = std::optional<CachingAllocator::Block>;
  enum class What { Kept, Saved, WeightSaved, Gradient, Inner };
  struct Key {
    What what = What::Kept;
    std::size_t number = 0, stage = 0;
    std::int64_t microbatch = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      std::size_t hash = static_cast<std::size_t>(key.what);
      for (const std::size_t part :
           {key.number, key.stage, static_cast<std::size_t>(key.microbatch)})
        hash = (hash ^ part) * 0x9E3779B97F4A7C15U + (hash >> 32U);
      return hash;
    }
  };
  struct Held {
    Block block;
    int holders = 0;
  };
  struct Crossing {
    std::size_t value, stage;  // the other one
  };

  std::size_t begin(std::size_t s) const { return plan_.partition.begin(s); }
  std::size_t end(std::size_t s) const { return plan_.partition.end(s, layers_.size()); }
  bool here(std::size_t s) const { return plan_.placement.rank_of_stage[s] == rank_; }
  bool is_last(const Action& action) const {
    return plan_.activations.except_last && action.microbatch == last_[action.stage.index()];
  }
  const TensorsOfLayers& tensors_of(const Action& action) const {
    return is_last(action) ? once_ : again_;
  }

  Block make(Bytes bytes) {
    if (bytes <= Bytes{0}) return std::nullopt;
    const Block block = allocator_.allocate(bytes);
    PFEIFE_CHECK(block, "more than ", to_string(kCapacity));
    return block;
  }
  void drop(Block block) {
    if (block) allocator_.free(*block);
  }
  void hold(const Key& key, Bytes bytes) {
    if (bytes <= Bytes{0}) return;
    Held& held = held_[key];
    if (held.holders++ == 0) held.block = make(bytes);
  }
  void release(const Key& key) {
    const auto at = held_.find(key);
    if (at == held_.end() || --at->second.holders > 0) return;
    drop(at->second.block);
    held_.erase(at);
  }
  static Key kept(const Tensor& tensor, const Action& action, bool of_value) {
    // A value is the same tensor in every stage of the rank; other storages are not.
    return {What::Kept, tensor.number, of_value ? 0 : action.stage.index() + 1,
            action.microbatch->value};
  }
  bool is_value(const Tensor& tensor) const { return tensor.number < layers_.values.size(); }
  void hold(const Tensor& tensor, const Action& action) {
    hold(kept(tensor, action, is_value(tensor)), tensor.bytes);
  }
  void release(const Tensor& tensor, const Action& action) {
    release(kept(tensor, action, is_value(tensor)));
  }

  /// Adam's moments are tensors as large as their parameter.
  void make_state(const LayerParameter& parameter) {
    Bytes left = parameter.state;
    while (parameter.bytes > Bytes{0} && left > parameter.bytes) {
      make(parameter.bytes);
      left -= parameter.bytes;
    }
    make(left);
  }
  void make_gradients(const LayerTensors& of) {
    for (const std::size_t p : of.parameters) {
      if (has_gradient_[p]) continue;
      has_gradient_[p] = true;
      make(layers_.parameters[p].gradient);
    }
  }

  /// Memory of a layer while it runs.
  class Temporary {
   public:
    Temporary(Player& player, Bytes bytes)
        : player_(player),
          halves_{player.make(Bytes{bytes.value / 2}),
                  player.make(Bytes{bytes.value - bytes.value / 2})} {}
    ~Temporary() {
      for (const Block half : halves_) player_.drop(half);
    }
    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;

   private:
    Player& player_;
    std::array<Block, 2> halves_;
  };

  void run(const Action& action) {
    switch (action.op) {
      case Op::Forward:
        return run_forward(action);
      case Op::Backward:
      case Op::BackwardInput:
        return run_backward(action);
      case Op::BackwardWeight:
        return run_weight(action);
      case Op::Send:
      case Op::Recv:
        return run_transfer(action);
      default:
        return;
    }
  }

  Key inner(const Tensor& tensor, const Action& action) const {
    return {What::Inner, tensor.number, action.stage.index(), action.microbatch->value};
  }
  Key inner_saved(std::size_t l, const Action& action) const {
    return {What::Inner, layers_.values.size() + layers_.storages.size() + l, action.stage.index(),
            action.microbatch->value};
  }
  Key saved(What what, std::size_t l, const Action& action) const {
    return {what, l, action.stage.index(), action.microbatch->value};
  }
  void make_inner(const LayerTensors& of, std::size_t l, const Action& action) {
    for (const Tensor& tensor : of.inner_created) hold(inner(tensor, action), tensor.bytes);
    hold(inner_saved(l, action), of.inner_saved);
  }

  void run_forward(const Action& action) {
    const std::size_t s = action.stage.index();
    const TensorsOfLayers& tensors = tensors_of(action);
    for (std::size_t l = begin(s); l < end(s); ++l) {
      const LayerTensors& of = tensors.at(l);
      const Temporary temporary(*this, layers_.layers[l].temporary.forward);
      if (of.recomputed) make_inner(of, l, action);
      for (const Tensor& tensor : of.created) hold(tensor, action);
      for (const Tensor& tensor : of.sent) hold(tensor, action);
      hold(saved(What::Saved, l, action), of.saved);
      // Without a backward to come, the layer before has no reader any more.
      if (of.recomputed && l > of.block_begin) drop_inner(tensors.at(l - 1), l - 1, action);
      if (of.ends_block) drop_inner(of, l, action);
    }
    for (const Crossing& from : entering_[s])
      release({What::Kept, from.value, 0, action.microbatch->value});
  }
  void drop_inner(const LayerTensors& of, std::size_t l, const Action& action) {
    for (const Tensor& tensor : of.inner_created) release(inner(tensor, action));
    release(inner_saved(l, action));
  }

  void run_backward(const Action& action) {
    const std::size_t s = action.stage.index();
    const bool split = action.op == Op::BackwardInput;
    const TensorsOfLayers& tensors = tensors_of(action);
    for (std::size_t l = end(s); l-- > begin(s);) {
      const LayerTensors& of = tensors.at(l);
      if (of.ends_block)
        for (std::size_t again = of.block_begin; again <= l; ++again) {
          const Temporary temporary(*this, layers_.layers[again].temporary.forward);
          make_inner(tensors.at(again), again, action);
        }
      const PassBytes& bytes = layers_.layers[l].temporary;
      const Temporary temporary(*this, split ? bytes.input : bytes.backward);
      if (split)
        hold(saved(What::WeightSaved, l, action), of.weight_saved);
      else
        make_gradients(of);
      for (const Tensor& tensor : of.let_go)
        if (!split || !waits(of.held_for_w, tensor)) release(tensor, action);
      for (const Tensor& tensor : of.inner_let_go)
        if (!split || !waits(of.inner_held_for_w, tensor)) release(inner(tensor, action));
      if (of.recomputed) release(inner_saved(l, action));
      release(saved(What::Saved, l, action));
    }
    for (const Crossing& from : entering_[s])
      hold({What::Gradient, from.value, s, action.microbatch->value},
           layers_.values[from.value].gradient_bytes);
    for (const Crossing& to : leaving_[s])
      release({What::Gradient, to.value, to.stage, action.microbatch->value});
  }
  static bool waits(const std::vector<Tensor>& held_for_w, const Tensor& tensor) {
    return std::ranges::find(held_for_w, tensor.number, &Tensor::number) != held_for_w.end();
  }

  void run_weight(const Action& action) {
    const std::size_t s = action.stage.index();
    for (std::size_t l = end(s); l-- > begin(s);) {
      const LayerTensors& of = tensors_of(action).at(l);
      const Temporary temporary(*this, layers_.layers[l].temporary.weight);
      make_gradients(of);
      release(saved(What::WeightSaved, l, action));
      for (const Tensor& tensor : of.held_for_w) release(tensor, action);
      for (const Tensor& tensor : of.inner_held_for_w) release(inner(tensor, action));
    }
  }

  void run_transfer(const Action& action) {
    const std::size_t s = action.stage.index(), peer = action.peer->index();
    const std::int64_t m = action.microbatch->value;
    const bool forward = action.direction == Direction::Forward;
    const bool sends = action.op == Op::Send;
    // A value leaves its stage forward, and its gradient enters it backward.
    for (const Crossing& crossing : (sends == forward ? leaving_ : entering_)[s]) {
      if (crossing.stage != peer) continue;
      const LayerValue& value = layers_.values[crossing.value];
      const Key key = forward ? Key{What::Kept, crossing.value, 0, m}
                              : Key{What::Gradient, crossing.value, sends ? s : peer, m};
      if (sends)
        release(key);
      else
        hold(key, forward ? value.bytes : value.gradient_bytes);
    }
  }

  const Plan& plan_;
  const Layers& layers_;
  const TensorsOfLayers &again_, &once_;
  RankId rank_;
  const std::vector<Cell>& row_;
  std::vector<MicrobatchId> last_;
  CachingAllocator allocator_;
  std::vector<std::vector<Crossing>> entering_, leaving_;  // [stage]
  std::vector<const LayerParameter*> mine_;
  std::vector<bool> has_gradient_;  // [parameter]
  std::pmr::unsynchronized_pool_resource nodes_;
  std::pmr::unordered_map<Key, Held, Hash> held_{&nodes_};
};

/// The recomputed blocks, those of whole stages included.
std::vector<LayerRange> blocks_of(const Plan& plan, std::size_t layers) {
  std::vector<LayerRange> blocks = plan.activations.blocks;
  for (std::size_t s = 0; s < plan.activations.stages.size(); ++s)
    if (plan.activations.stages[s])
      blocks.push_back(
          {LayerId{plan.partition.begin(s)}, LayerId{plan.partition.end(s, layers) - 1}});
  std::ranges::sort(blocks);
  return blocks;
}

/// What is shared by the ranks of a plan.
class PlayedPlan {
 public:
  PlayedPlan(const Plan& plan, const Layers& layers, const AllocatorSettings& settings)
      : plan_(plan),
        layers_(layers),
        settings_(settings),
        again_(layers, plan.partition, blocks_of(plan, layers.size())),
        once_(layers, plan.partition, {}) {}
  PlayedRank play(RankId rank) const {
    return Player(plan_, layers_, again_, once_, rank, settings_).play();
  }

 private:
  const Plan& plan_;
  const Layers& layers_;
  const AllocatorSettings& settings_;
  const TensorsOfLayers again_, once_;
};

/// The two pools of a rank.
struct LeastPools {
  Bytes small{0}, large{0};

  void add(const CachingAllocator& allocator, Bytes tensor) {
    Bytes& pool = allocator.is_small(tensor) ? small : large;
    pool = std::max(pool, allocator.least_pool(tensor));
  }
};

/// Published runs reserve at most 1.43 times what they allocate (arXiv 2507.16274); small ones have
/// some segments of 20 MiB that are nearly empty.
bool surely_fits(Bytes allocated, Bytes limit) {
  constexpr Bytes kSegments = 100 * kMiB;
  return allocated + Bytes{allocated.value / 2} + kSegments < limit;
}

}  // namespace

std::vector<PlayedRank> played_ranks(const Plan& plan, const Layers& layers,
                                     const AllocatorSettings& settings) {
  const PlayedPlan played(plan, layers, settings);
  std::vector<PlayedRank> ranks;
  for (std::size_t r = 0; r < plan.schedule.ranks(); ++r) ranks.push_back(played.play(RankId{r}));
  return ranks;
}

// A stage ends with a part of the model that no cut divides: its rank has the tensors of that part
// in any case, and those of its values that later stages read.
LeastReserved least_reserved(const Layers& layers, const AllocatorSettings& settings) {
  if (!has_lifetimes(layers)) return {};
  const CachingAllocator allocator(settings, kCapacity);
  std::vector<LeastPools> pools;  // [part]
  std::vector<std::size_t> part_of(layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (l == 0 || layers.layers[l - 1].no_cut_after.empty()) pools.emplace_back();
    part_of[l] = pools.size() - 1;
    const Layer& layer = layers.layers[l];
    pools.back().add(allocator, layer.saved);
    pools.back().add(allocator,
                     Bytes{layer.temporary.forward.value - layer.temporary.forward.value / 2});
  }
  for (const LayerParameter& parameter : layers.parameters)
    for (const LayerId user : parameter.users) {
      pools[part_of[user.index()]].add(allocator, parameter.bytes);
      pools[part_of[user.index()]].add(allocator, parameter.gradient);
    }
  const auto sums =
      pools | std::views::transform([](const LeastPools& p) { return p.small + p.large; });
  LeastReserved least{.of_fullest = std::ranges::max(sums)};
  for (const LayerValue& value : layers.values) {
    const std::size_t part = part_of[value.producer.index()];
    if (!value.consumers.empty() && part_of[value.consumers.back().index()] > part)
      pools[part].add(allocator, value.bytes);
  }
  least.of_each = std::ranges::min(sums);
  return least;
}

std::vector<Bytes> reserved_memory(const Plan& plan, const Layers& all_layers,
                                   const AllocatorSettings& settings,
                                   const std::vector<Bytes>& limit) {
  const std::optional<Layers> divided = divided_layers(all_layers, plan.schedule);
  const Layers& layers = divided ? *divided : all_layers;
  std::vector<Bytes> reserved = plan.peak_memory;
  if (!has_lifetimes(layers) || slice_count(plan.schedule) > 1 || plan.activations.offloads()) {
    for (Bytes& bytes : reserved)
      bytes = Bytes{
          static_cast<std::int64_t>(reserved_factor(settings) * static_cast<double>(bytes.value))};
    return reserved;
  }
  std::vector<std::size_t> order(reserved.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!limit.empty())  // the fullest first
    std::ranges::stable_sort(order, {}, [&](std::size_t r) { return limit[r] - reserved[r]; });
  LeastReserved least;
  std::optional<PlayedPlan> played;
  for (const std::size_t r : order) {
    if (!limit.empty() && surely_fits(reserved[r], limit[r])) continue;
    if (!played) played.emplace(plan, layers, settings), least = least_reserved(layers, settings);
    const PlayedRank rank = played->play(RankId{r});
    reserved[r] = std::max(least.of_each, reserved[r] + rank.reserved - rank.allocated);
    if (!limit.empty() && reserved[r] > limit[r]) break;
  }
  // Blocks are rounded, so the replay may allocate more than the plan's bytes.
  if (played) {
    const auto fullest = std::ranges::max_element(reserved);
    *fullest = std::max(*fullest, least.of_fullest);
  }
  return reserved;
}

}  // namespace pfeife
