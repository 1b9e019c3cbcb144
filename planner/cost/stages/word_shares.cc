#include "planner/cost/stages/word_shares.h"

#include <algorithm>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// Whether each T is the next computation of its rank behind its S.
bool rests_follow_shares(const Schedule& rows) {
  for (const std::vector<Cell>& row : rows.rows) {
    std::optional<MicrobatchId> share;  // of the computation before
    bool follows = true;
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& action) {
        if (!is_compute(action.op)) return;
        if (action.op == Op::HeadRest && share != action.microbatch) follows = false;
        share.reset();
        if (action.op == Op::HeadShare) share = action.microbatch;
      });
    if (!follows) return false;
  }
  return true;
}

/// What the layer keeps from its forward to its backward.
Bytes kept(const Layers& layers, LayerId layer) {
  const Layer& own = layers.layers[layer.index()];
  Bytes bytes = own.saved + own.weight_saved;
  for (const LayerStorage& storage : layers.storages)
    if (std::ranges::binary_search(storage.savers, layer) ||
        std::ranges::binary_search(storage.weight_savers, layer))
      bytes += storage.bytes;
  return bytes;
}

/// The largest part of a whole that so many ranks divide.
Nanoseconds part(Nanoseconds whole, std::size_t ranks) {
  const auto count = static_cast<std::int64_t>(ranks);
  return (whole + Nanoseconds{count - 1}) / count;
}
Bytes part(Bytes whole, std::size_t ranks) {
  const auto count = static_cast<std::int64_t>(ranks);
  return Bytes{(whole.value + count - 1) / count};
}

WordShare part(WordShare words, std::size_t ranks) {
  words.ranks = ranks;
  for (Nanoseconds* time : {&words.output.forward, &words.output.backward_input,
                            &words.output.backward_weight, &words.output.optimizer, &words.input})
    *time = part(*time, ranks);
  for (Bytes* bytes : {&words.saved, &words.temporary, &words.parameters, &words.gradients,
                       &words.optimizer_state})
    *bytes = part(*bytes, ranks);
  return words;
}

void empty_word_layers(Layers& layers) {
  const std::vector<LayerId>& divided = layers.words->layers;
  const auto emptied = [&](LayerId layer) { return std::ranges::binary_search(divided, layer); };
  for (const LayerId id : divided) {
    Layer& layer = layers.layers[id.index()];
    layer.times.assign(layer.times.size(), {});
    layer.saved = layer.weight_saved = layer.model_input = Bytes{0};
    layer.temporary = {};
    if (!layers.reductions.empty()) layers.reductions[id.index()] = {};
    if (!layers.collectives.empty()) layers.collectives[id.index()] = {};
  }
  for (LayerParameter& parameter : layers.parameters) {
    if (!std::ranges::all_of(parameter.users, emptied)) continue;
    parameter.bytes = parameter.gradient = parameter.state = parameter.exchanged = Bytes{0};
    parameter.optimizer.assign(parameter.optimizer.size(), Nanoseconds{0});
  }
  for (LayerStorage& storage : layers.storages) {
    std::erase_if(storage.savers, emptied);
    std::erase_if(storage.weight_savers, emptied);
  }
  std::erase_if(layers.storages, [](const LayerStorage& storage) {
    return storage.savers.empty() && storage.weight_savers.empty();
  });
}

}  // namespace

WordShare all_words(const Layers& layers, std::optional<LayerId> input, LayerId output) {
  WordShare words{.output = layers.layers[output.index()].times.front(),
                  .saved = kept(layers, output),
                  .temporary = layers.layers[output.index()].temporary.largest()};
  if (input) {
    const Layer& lookup = layers.layers[input->index()];
    const LayerTimes& times = lookup.times.front();
    words.layers.push_back(*input);
    words.input = times.forward + times.backward_input + times.backward_weight;
    words.output.optimizer += times.optimizer;
    words.temporary = std::max(words.temporary, lookup.temporary.largest());
  }
  words.layers.push_back(output);
  for (const LayerParameter& parameter : layers.parameters) {
    const auto divided = [&](LayerId user) {
      return std::ranges::binary_search(words.layers, user);
    };
    if (std::ranges::none_of(parameter.users, divided)) continue;
    words.parameters += parameter.bytes;
    words.gradients += parameter.gradient;
    words.optimizer_state += parameter.state;
    if (!parameter.optimizer.empty()) words.output.optimizer += parameter.optimizer.front();
  }
  return words;
}

Layers divided_among(Layers layers, std::size_t ranks) {
  if (!layers.words)
    throw ConfigError(
        {},
        "the rows share the output layer over all ranks (S, T), but this model's "
        "cannot be divided: " +
            (layers.undivided_because.empty() ? "its layers do not say which of them have words"
                                              : layers.undivided_because));
  if (layers.words->ranks == 0) layers.words = part(*std::move(layers.words), ranks);
  if (layers.words->ranks != ranks)
    throw ConfigError({}, "the words are divided among " + std::to_string(layers.words->ranks) +
                              " ranks, and the rows are of " + std::to_string(ranks));
  empty_word_layers(layers);
  return layers;
}

std::optional<Layers> divided_layers(const Layers& layers, const Schedule& rows) {
  if (head_barriers(rows) == 0) return std::nullopt;
  return divided_among(layers, rows.ranks());
}

void add_word_shares(StageCosts& costs, const WordShare& words, const Schedule& rows) {
  const std::size_t barriers = head_barriers(rows);
  const bool stops = rests_follow_shares(rows);
  const Nanoseconds none{0};
  costs.head = SharedHead{.barriers = barriers,
                          .broadcast = words.broadcast,
                          .after_share = words.scalars + (barriers == 1 ? words.gradient : none),
                          .after_rest = barriers == 2 && !stops ? words.gradient : none};
  for (StageCost& stage : costs.stages) {
    stage.head_share = words.output.forward + (barriers == 1 ? words.output.backward_input : none);
    stage.head_rest = words.output.backward_weight +
                      (barriers == 2 ? words.output.backward_input : none) +
                      (barriers == 2 && stops ? words.gradient : none) + words.input;
    stage.head_saved = words.saved;
    stage.head_temporary = words.temporary;
    stage.parameters += words.parameters;
    stage.gradients += words.gradients;
    stage.optimizer_state += words.optimizer_state;
    stage.optimizer += words.output.optimizer;
  }
}

}  // namespace pfeife
