// Recomputation by blocks, against a count of every tensor of a stage, kept and made again.
#include "planner/cost/stages/recomputed_layers.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "planner/cost/estimate/evaluate.h"
#include "planner/cost/estimate/memory.h"
#include "planner/cost/layers/repetition.h"
#include "planner/cost/stages/blocks.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

using ns = Nanoseconds;

/// A table of layers on one rank: some read what is older than their neighbour, some values are
/// kept by who reads them, a few for W as well; weights are of no size.
Layers random_table(std::mt19937& random, std::size_t count) {
  const auto bytes = [&](unsigned most) {
    return Bytes{static_cast<std::int64_t>(1 + random() % most)};
  };
  Layers layers;
  for (std::size_t l = 0; l < count; ++l) {
    Layer layer;
    layer.times = {{ns{1 + random() % 90}, ns{random() % 90}, ns{random() % 90}, ns{0}}};
    layer.saved = bytes(300), layer.weight_saved = bytes(60);
    layer.temporary = {bytes(80), bytes(80), bytes(80), bytes(80)};
    if (l == 0) layer.model_input = Bytes{7};
    layers.layers.push_back(layer);
  }
  for (std::size_t l = 0; l + 1 < count; ++l) {
    LayerValue value{"v", LayerId{l}, {LayerId{l + 1}}, bytes(200), {}, {}};
    const std::size_t far = l + 2 + random() % 3;
    if (far < count && random() % 3 == 0) value.consumers.push_back(LayerId{far});
    value.gradient_bytes = value.bytes;
    if (random() % 2 == 0) {
      LayerStorage storage{value.bytes, value.consumers, {}, layers.values.size()};
      if (random() % 2 == 0) storage.savers.insert(storage.savers.begin(), LayerId{l});
      if (random() % 4 == 0) storage.savers = {LayerId{l}};
      if (random() % 2 == 0) storage.weight_savers = {storage.savers.front()};
      layers.storages.push_back(storage);
    }
    layers.values.push_back(value);
  }
  return layers;
}

/// One microbatch on one stage: bytes held while each pass is in each layer, counted tensor by
/// tensor, and how many stay between the passes.
struct Counted {
  std::int64_t forward = 0, input = 0, weight = 0;  // highest
  std::int64_t between = 0, after_input = 0;        // from F to I, from I to W
};

class Count {
 public:
  Count(const Layers& layers, const std::vector<LayerRange>& blocks)
      : layers_(layers), blocks_(blocks), last_(static_cast<std::int64_t>(layers.size()) - 1) {
    for (std::int64_t l = 0; l <= last_; ++l) add_own(l);
    for (const LayerStorage& storage : layers.storages) add(storage);
    for (std::size_t v = 0; v < layers.values.size(); ++v) add_input(v);
  }

  Counted count() const {
    Counted found;
    for (const Tensor& t : tensors_) {
      if (t.kept) found.between += t.bytes;
      if (t.for_weight) found.after_input += t.bytes;
    }
    for (std::int64_t l = 0; l <= last_; ++l) {
      const PassBytes& more = layers_.layers[static_cast<std::size_t>(l)].temporary;
      found.forward = std::max(found.forward, forward(l) + more.forward.value);
      found.input = std::max(found.input, input(l) + more.input.value);
      found.weight = std::max(found.weight, weight(l) + more.weight.value);
    }
    for (const LayerRange& block : blocks_) found.input = std::max(found.input, again(block));
    return found;
  }

 private:
  struct Tensor {
    std::int64_t bytes = 0;
    std::int64_t made = 0;    // layer; -1: before the stage begins
    std::int64_t freed = 0;   // by I of this layer
    bool kept = false;        // from F to I; else it exists in the passes of its block alone
    bool for_weight = false;  // and from I to W, whose layer `used` frees it
    std::int64_t used = 0, block = -1;
    std::int64_t alive = -1;      // not kept: there in F from `made` to this layer of its block
    std::int64_t read_last = -1;  // not kept, but read behind its block: until this layer's F
    bool only_weight = false;     // made by I of layer `freed`
  };

  std::int64_t block_of(std::int64_t l) const {
    for (std::size_t b = 0; b < blocks_.size(); ++b)
      if (blocks_[b].first.value <= l && l <= blocks_[b].last.value)
        return static_cast<std::int64_t>(b);
    return -1;
  }

  void add_own(std::int64_t l) {
    const Layer& layer = layers_.layers[static_cast<std::size_t>(l)];
    const std::int64_t block = block_of(l);
    tensors_.push_back({.bytes = layer.saved.value,
                        .made = l,
                        .freed = l,
                        .kept = block < 0,
                        .block = block,
                        .alive = l});
    tensors_.push_back({.bytes = layer.weight_saved.value,
                        .made = l,
                        .freed = l,
                        .for_weight = true,
                        .used = l,
                        .block = block,
                        .only_weight = true});
    if (block >= 0)
      tensors_.push_back({.bytes = layer.model_input.value, .made = l, .freed = l, .kept = true});
  }

  /// One copy that is kept, if somebody outside of the blocks keeps it or it enters a block which
  /// saves it; one in each block that makes it or saves what it has not been given.
  void add(const LayerStorage& storage) {
    const LayerValue& value = layers_.values[*storage.value];
    std::int64_t kept_by = -1, weight_user = -1;
    std::map<std::int64_t, std::int64_t> first_in;  // of a block that makes it
    for (const LayerId saver : storage.savers) {
      const std::int64_t b = block_of(saver.value);
      const bool given = b >= 0 && value.producer < blocks_[static_cast<std::size_t>(b)].first;
      if (b >= 0 && !given)
        first_in.try_emplace(b, saver.value);
      else if (kept_by < 0)
        kept_by = given ? blocks_[static_cast<std::size_t>(b)].first.value : saver.value;
    }
    for (const LayerId user : storage.weight_savers) weight_user = user.value;  // one at most
    for (const auto& [b, first] : first_in) {
      const bool weight = weight_user >= 0 && block_of(weight_user) == b;
      std::int64_t until = -1;
      if (kept_by < 0 &&
          value.consumers.back().value > blocks_[static_cast<std::size_t>(b)].last.value &&
          !enters_a_block(value))
        until = value.consumers.back().value;
      tensors_.push_back({.bytes = storage.bytes.value,
                          .made = std::min<std::int64_t>(first, value.producer.value),
                          .freed = first,
                          .for_weight = weight,
                          .used = first,
                          .block = b,
                          .alive = last_use(storage, value, blocks_[static_cast<std::size_t>(b)]),
                          .read_last = until});
      if (weight) weight_user = -1;
    }
    for (const LayerRange& block : blocks_)
      if (value.producer < block.first && reads(block, value))
        kept_by =
            kept_by < 0 ? block.first.value : std::min<std::int64_t>(kept_by, block.first.value);
    counted_[*storage.value] = true;
    if (kept_by >= 0)
      tensors_.push_back({.bytes = storage.bytes.value,
                          .made = std::min<std::int64_t>(kept_by, value.producer.value),
                          .freed = kept_by,
                          .kept = true,
                          .for_weight = weight_user >= 0,
                          .used = weight_user});
  }

  /// The last layer of the block that reads or would save it; the block's last, if later ones do.
  static std::int64_t last_use(const LayerStorage& storage, const LayerValue& value,
                               const LayerRange& block) {
    std::int64_t last = value.producer.value;
    for (const auto* layers : {&storage.savers, &value.consumers})
      for (const LayerId l : *layers)
        if (block.first <= l && l <= block.last) last = std::max<std::int64_t>(last, l.value);
    return value.consumers.back() > block.last ? block.last.value : last;
  }

  bool reads(const LayerRange& block, const LayerValue& value) const {
    return std::ranges::any_of(value.consumers,
                               [&](LayerId l) { return block.first <= l && l <= block.last; });
  }
  bool enters_a_block(const LayerValue& value) const {
    return std::ranges::any_of(blocks_, [&](const LayerRange& block) {
      return value.producer < block.first && reads(block, value);
    });
  }

  /// A value that nobody saved, and a block must keep.
  void add_input(std::size_t v) {
    const LayerValue& value = layers_.values[v];
    if (counted_[v]) return;
    for (const LayerRange& block : blocks_) {
      if (value.producer >= block.first || !reads(block, value)) continue;
      tensors_.push_back({.bytes = value.bytes.value,
                          .made = value.producer.value,
                          .freed = block.first.value,
                          .kept = true});
      return;
    }
  }

  std::int64_t forward(std::int64_t l) const {
    std::int64_t held = 0;
    for (const Tensor& t : tensors_) {
      if (t.only_weight || t.made > l) continue;
      const bool passes = t.block >= 0 && t.block == block_of(l) && l <= t.alive;
      if (t.kept || passes || l <= t.read_last) held += t.bytes;
    }
    return held;
  }
  /// I has come down to layer l: what later layers kept is gone, or waits for W.
  std::int64_t input(std::int64_t l) const {
    std::int64_t held = 0;
    for (const Tensor& t : tensors_) {
      const bool there =
          !t.only_weight && t.freed <= l && (t.kept || (t.block >= 0 && t.block == block_of(l)));
      const bool waits = t.for_weight && (t.only_weight ? t.freed >= l : t.freed > l);
      if (there || waits) held += t.bytes;
    }
    if (block_of(l) < 0) return held;
    // The gradients that its block was handed stay until the block is done.
    const LayerRange& block = blocks_[static_cast<std::size_t>(block_of(l))];
    for (const LayerValue& value : layers_.values)
      if (value.producer.value > l && value.producer <= block.last &&
          value.consumers.back() > block.last)
        held += value.gradient_bytes.value;
    return held;
  }
  /// The forward of a block in I, with the gradients of what leaves it.
  std::int64_t again(const LayerRange& block) const {
    std::int64_t most = 0;
    for (std::int64_t l = block.first.value; l <= block.last.value; ++l) {
      std::int64_t held = layers_.layers[static_cast<std::size_t>(l)].temporary.forward.value;
      for (const Tensor& t : tensors_) {
        if (!t.only_weight && t.kept && t.freed <= block.last.value) held += t.bytes;
        if (!t.only_weight && !t.kept && t.block == block_of(l) && t.made <= l) held += t.bytes;
        if (t.for_weight && t.freed > block.last.value) held += t.bytes;
      }
      most = std::max(most, held);
    }
    for (const LayerValue& value : layers_.values)
      if (value.producer <= block.last && value.consumers.back() > block.last)
        most += value.gradient_bytes.value;
    return most;
  }
  std::int64_t weight(std::int64_t l) const {
    std::int64_t held = 0;
    for (const Tensor& t : tensors_)
      if (t.for_weight && t.used <= l) held += t.bytes;
    return held;
  }

  const Layers& layers_;
  const std::vector<LayerRange>& blocks_;
  const std::int64_t last_;
  std::vector<Tensor> tensors_;
  std::map<std::size_t, bool> counted_;
};

/// All ways to recompute some of `blocks`.
template <class Visit>
void for_each_subset(const std::vector<LayerRange>& blocks, const Visit& visit) {
  for (std::size_t subset = 0; subset < std::size_t{1} << blocks.size(); ++subset) {
    std::vector<LayerRange> chosen;
    for (std::size_t b = 0; b < blocks.size(); ++b)
      if ((subset >> b & 1U) != 0) chosen.push_back(blocks[b]);
    visit(chosen);
  }
}

/// The layers in random blocks, one behind the other.
std::vector<LayerRange> random_blocks(std::mt19937& random, std::size_t layers) {
  std::vector<LayerRange> blocks;
  for (std::size_t l = 0; l < layers;) {
    const std::size_t end = std::min(layers, l + 1 + random() % 3);
    blocks.push_back({LayerId{l}, LayerId{end - 1}});
    l = end;
  }
  return blocks;
}

// Three microbatches: all F, then all I, then all W, so that in I of the first three wait in full.
TEST(RecomputedBlocks, HoldWhatACountOfEveryTensorSays) {
  std::mt19937 random(5);
  const Cluster cluster = uniform_cluster(1, DeviceKind{}, {1e9}, ns{0});
  const Placement placement = round_robin(1, 1);
  std::size_t tried = 0, smaller = 0;
  for (int round = 0; round < 60; ++round) {
    const Layers layers = random_table(random, 3 + random() % 6);
    Schedule order;
    order.rows.resize(1);
    for (const Op op : {Op::Forward, Op::BackwardInput, Op::BackwardWeight})
      for (int m = 0; m < 3; ++m) order.rows[0].push_back(Action{op, StageId{0}, MicrobatchId{m}});
    std::int64_t kept_peak = 0;
    for_each_subset(
        random_blocks(random, layers.size()), [&](const std::vector<LayerRange>& blocks) {
          const Prices plan = evaluate(layers, cluster, order, placement, {}, MemoryRule::Lifetimes,
                                       {.blocks = blocks});
          const Counted one = Count(layers, blocks).count();
          std::vector<std::int64_t> expected;  // highest in each action
          for (int m = 0; m < 3; ++m) expected.push_back(m * one.between + one.forward);
          for (int m = 0; m < 3; ++m)
            expected.push_back((2 - m) * one.between + m * one.after_input + one.input);
          for (int m = 0; m < 3; ++m) expected.push_back((2 - m) * one.after_input + one.weight);
          const MemoryCurve curve = memory(plan.lowered, RankId{0}, plan.costs, placement);
          ASSERT_GE(curve.steps.size(), expected.size());
          for (std::size_t i = 0; i < expected.size(); ++i)
            EXPECT_EQ(curve.steps[i].during.value, expected[i])
                << "round " << round << ", action " << i << ", blocks " << to_string(blocks);
          const std::int64_t peak = plan.peak_memory[0].value;
          EXPECT_EQ(plan.costs.stages[0].saved.value, one.between)
              << round << " " << to_string(blocks);
          EXPECT_EQ(plan.costs.stages[0].weight_saved.value, one.after_input) << round;
          if (blocks.empty()) kept_peak = peak;
          ++tried, smaller += peak < kept_peak;
        });
  }
  EXPECT_GT(tried, 500u);
  EXPECT_GT(smaller, 300u);
}

TEST(RecomputedBlocks, TakeTheirForwardOnceMoreInEachBackward) {
  std::mt19937 random(6);
  for (int round = 0; round < 20; ++round) {
    const Layers layers = random_table(random, 8);
    const Cluster cluster = uniform_cluster(2, DeviceKind{}, {1e9}, ns{3});
    const ScheduleSpec spec{.family = "1f1b", .ranks = 2, .microbatches = 3};
    const Partition cuts{{static_cast<std::int32_t>(random() % 7)}};
    const Placement placement = placement_for(spec);
    for_each_subset(cut_blocks(random_blocks(random, 8), cuts), [&](const auto& blocks) {
      StageCosts by_hand = stage_costs(layers, cuts, placement, cluster);
      const StageCosts found = stage_costs(layers, cuts, placement, cluster, {.blocks = blocks});
      for (const LayerRange& block : blocks)
        for (LayerId l = block.first; l <= block.last; ++l.value)
          by_hand.stages[l.value > cuts.cuts[0]].backward_input +=
              layers.layers[l.index()].times[0].forward;
      for (std::size_t s = 0; s < 2; ++s) {
        EXPECT_EQ(found.stages[s].forward, by_hand.stages[s].forward);
        EXPECT_EQ(found.stages[s].backward_input, by_hand.stages[s].backward_input);
        EXPECT_EQ(found.stages[s].backward_weight, by_hand.stages[s].backward_weight);
      }
      EXPECT_EQ(found.pairs, by_hand.pairs);
    });
  }
}

// Four layers that save 50 B each in two blocks, 1F1B with two ranks and four microbatches: rank 0
// has both blocks of its stage, one layer each. It keeps 7 B of the model's input and the 10 B
// between the blocks of two microbatches, and makes one layer's 50 B (and 10 B output) at a time.
TEST(RecomputedBlocks, AreSmallerThanTheStageRecomputedAsAWhole) {
  Layers layers;
  for (int l = 0; l < 4; ++l) {
    Layer layer;
    layer.times = {{ns{2}, ns{3}, ns{4}, ns{0}}};
    layer.saved = Bytes{50};
    if (l == 0) layer.model_input = Bytes{7};
    layers.layers.push_back(layer);
    if (l < 3)
      layers.values.push_back({"v", LayerId{l}, {LayerId{l + 1}}, Bytes{10}, Bytes{10}, {}});
  }
  const Cluster cluster = uniform_cluster(2, DeviceKind{}, {1e9}, ns{0});
  const ScheduleSpec spec{.family = "1f1b", .ranks = 2, .microbatches = 4};
  const auto peak = [&](const std::vector<bool>& stages, const std::vector<LayerRange>& blocks) {
    return evaluate(layers, cluster, generate(spec), placement_for(spec), {{1}},
                    MemoryRule::Lifetimes, {stages, blocks})
        .peak_memory[0];
  };
  const LayerRange first{LayerId{0}, LayerId{0}}, second{LayerId{1}, LayerId{1}};
  // A gradient of 10 B is there already while F makes the next 10 B to send.
  EXPECT_EQ(peak({}, {}), Bytes{2 * 100 + 10 + 10});
  EXPECT_EQ(peak({true, false}, {}), Bytes{2 * 7 + 100 + 10 + 10});
  EXPECT_EQ(peak({}, {first, second}), Bytes{2 * 17 + 50 + 10 + 10});
}

TEST(Blocks, AreWhereNumberedModulesChangeOrOneValuePasses) {
  Layers layers;
  const char* paths[] = {"embed", "h.0.attn", "h.0.mlp", "h.1.self_attn", "h.1.mlp", "head"};
  for (const char* path : paths) layers.layers.emplace_back().module_path = path;
  const auto range = [](int a, int b) { return LayerRange{LayerId{a}, LayerId{b}}; };
  EXPECT_EQ(model_blocks(layers),
            (std::vector{range(0, 0), range(1, 2), range(3, 4), range(5, 5)}));
  EXPECT_EQ(attention_blocks(layers), (std::vector{range(1, 1), range(3, 3)}));
  layers.layers[2].no_cut_after = "in-place pair";
  EXPECT_EQ(model_blocks(layers), (std::vector{range(0, 0), range(1, 4), range(5, 5)}));
  EXPECT_EQ(cut_blocks(model_blocks(layers), {{1, 3}}),
            (std::vector{range(0, 0), range(1, 1), range(2, 3), range(4, 4), range(5, 5)}));

  Layers table;
  table.layers.resize(4);
  table.values = {{"a", LayerId{0}, {LayerId{1}}, Bytes{1}, {}, {}},
                  {"b", LayerId{1}, {LayerId{2}, LayerId{3}}, Bytes{1}, {}, {}},
                  {"c", LayerId{2}, {LayerId{3}}, Bytes{1}, {}, {}}};
  EXPECT_EQ(model_blocks(table), (std::vector{range(0, 0), range(1, 1), range(2, 3)}));
}

/// Layers named by their operators, each of which hands one value to the next.
Layers flat(const std::vector<std::string>& names) {
  Layers layers;
  for (std::size_t l = 0; l < names.size(); ++l) {
    layers.layers.emplace_back().name = names[l] + "_" + std::to_string(l);
    if (l > 0) layers.values.push_back({names[l], LayerId{l - 1}, {LayerId{l}}, Bytes{1}, {}, {}});
  }
  return layers;
}

// A flat function: embedding, three times (norm, mix, norm, up, down), head. Without numbered
// modules the piece that is repeated is a block, whatever its digits.
TEST(Blocks, AreTheRepeatedPieceWhereNoModuleIsNumbered) {
  const auto range = [](int a, int b) { return LayerRange{LayerId{a}, LayerId{b}}; };
  std::vector<std::string> names{"embed"};
  for (int block = 0; block < 3; ++block)
    for (const char* name : {"norm", "mix", "scale", "up", "down"}) names.push_back(name);
  names.push_back("head");
  Layers layers = flat(names);
  const std::vector blocks{range(0, 0), range(1, 5), range(6, 10), range(11, 15), range(16, 16)};
  EXPECT_EQ(model_blocks(layers), blocks);

  // The same operator of another size is another one: no two pieces are equal.
  for (const int changed : {3, 8, 13}) layers.layers[changed].saved = Bytes{changed};
  EXPECT_EQ(model_blocks(layers).size(), layers.size());
  for (const int changed : {3, 8, 13}) layers.layers[changed].saved = Bytes{};

  // Another "down" in front: the stretch begins there. Each norm's value is added in "down", so
  // that one value passes behind that alone.
  names[0] = "down";
  Layers skips = flat(names);
  for (const std::size_t norm : {1, 6, 11}) skips.values[norm].consumers.emplace_back(norm + 4);
  EXPECT_EQ(model_blocks(skips), blocks);

  layers.layers[5].no_cut_after = "in-place pair";
  EXPECT_EQ(model_blocks(layers),
            (std::vector{range(0, 0), range(1, 10), range(11, 15), range(16, 16)}));
}

// By trying all stretches: whether a stretch is equal pieces, and none is longer, or as long with a
// shorter piece.
TEST(Repetition, IsTheLongestOfAllStretches) {
  std::mt19937 draw(7);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::size_t> sequence(1 + draw() % 14);
    for (std::size_t& element : sequence) element = draw() % (2 + trial % 2);
    std::optional<Repetition> best;
    for (std::size_t period = 1; period <= sequence.size(); ++period)
      for (std::size_t first = 0; first < sequence.size(); ++first)
        for (std::size_t times = 2; first + times * period <= sequence.size(); ++times) {
          bool equal = true;
          for (std::size_t i = first; i + period < first + times * period; ++i)
            equal = equal && sequence[i] == sequence[i + period];
          if (equal && (!best || times * period > best->times * best->period))
            best = {first, period, times};
        }
    EXPECT_EQ(longest_repetition(sequence), best) << ::testing::PrintToString(sequence);
  }
}

}  // namespace
}  // namespace pfeife
