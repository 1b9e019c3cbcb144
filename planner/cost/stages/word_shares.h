// Stage costs of rows whose ranks share the output layer (S and T, vocabulary parallelism): the
// layers that are divided cost their stages nothing, and each rank has its share of them.
#pragma once

#include <optional>

#include "planner/ir/model/layers.h"
#include "planner/ir/schedule/schedule.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// All words, undivided (WordShare::ranks 0): what the output layer and the input embedding, where
/// the layers have one, do and hold; times on the first kind of device. Collectives take no time.
WordShare all_words(const Layers& layers, std::optional<LayerId> input, LayerId output);

/// The layers as `ranks` divide their words: those that WordShare::layers names without work,
/// memory and parameters, and the share of one rank. Errors: ConfigError without a place where
/// `layers` have no words, or words divided among another number of ranks.
Layers divided_among(Layers layers, std::size_t ranks);

/// The layers that stages of `rows` are made of: divided_among() their ranks where rows have S,
/// nullopt where they have none. Errors: those of divided_among().
std::optional<Layers> divided_layers(const Layers& layers, const Schedule& rows);

/// Adds to the stage costs of divided layers what each rank does and holds, with the collectives of
/// `rows`. With two barriers S computes the logits, with one also the gradient of the output
/// layer's input; T computes the rest of the backward, and the lookups of the input embedding
/// (Yeung et al. 2024, "Balancing Pipeline Parallelism with Vocabulary Parallelism", algorithms 1
/// and 2). Where every T directly follows its S (`interlaced`), nothing runs beside the all-reduce
/// of the gradient, which is then part of T.
void add_word_shares(StageCosts& costs, const WordShare& words, const Schedule& rows);

}  // namespace pfeife
