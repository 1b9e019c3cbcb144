// Random layers whose sequences may be cut into slices.
#pragma once

#include "tests/search/random_problem.h"

namespace pfeife {

/// A random model of `layers` layers whose attention is a random share of each.
inline Layers random_sequences(std::mt19937& random, std::size_t layers, std::int64_t tokens) {
  Layers model =
      random_layers(random, {.layers = layers, .skip_share = 0.3, .illegal_cuts = false});
  Sequence sequence{.tokens = tokens};
  for (std::size_t l = 0; l < layers; ++l) {
    sequence.attention.push_back(static_cast<double>(random() % 100) / 100);
    sequence.keys_values.emplace_back(static_cast<std::int64_t>(random() % 100));
  }
  model.sequence = std::move(sequence);
  return model;
}

}  // namespace pfeife
