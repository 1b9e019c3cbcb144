// Linear layers of a rank in a format below 16 bits: what they keep and hold in place of 16 bits.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/model/profile.h"
#include "planner/mesh/rank_graph.h"

namespace pfeife {

/// [node] The format of its products; empty if the run has none. The recipe's layers at both ends
/// of the model stay in 16 bits.
std::vector<Format> formats_of(const RankGraph& rank, const MeshRun& run);

/// Each input of products in a format is kept once, cast, whoever else keeps it in 16 bits; what
/// was gathered along tp as the rank's own part; values of `discarded` only while the product's
/// backward runs. Gradients that wait for W are cast, too.
void keep_casts(Profile& profile, const Graph& graph, const std::vector<Format>& formats,
                const MeshRun& run, const std::set<ValueId>& discarded = {});

/// Names of weights that are cast, without "layers.N.".
std::set<std::string> cast_weights(const Graph& graph, const std::vector<Format>& formats);

/// Whether the parameter of that name is cast in a model of so many layers.
bool is_cast(const std::string& name, const std::set<std::string>& weights, const MeshRun& run);

}  // namespace pfeife
