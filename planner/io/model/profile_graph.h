// Published profiles are graphs of nodes with branches; this makes layers in a linear order of
// them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planner/io/model/import_options.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

struct ProfileNode {
  std::string name;
  LayerTimes times;
  Bytes saved;  ///< kept for backward
  Bytes parameters;
  Bytes gradients;
};

/// A value that `to` reads of `from`. Edges of one node with equal output and bytes are one value.
struct ProfileEdge {
  std::size_t from = 0, to = 0;
  int output = 0;  ///< which of the node's outputs, in any numbering
  Bytes bytes;
};

struct ProfileGraph {
  std::string file;
  std::vector<ProfileNode> nodes;
  std::vector<ProfileEdge> edges;
};

/// Layers in topological order; among nodes that could come next, the one listed first does.
/// Gradients are as large as the values. ConfigError if the graph has a cycle or no node.
Layers layers_of_profile(const ProfileGraph& graph, const ImportOptions& options);

/// Splits a published time of forward plus backward, or of backward alone, into what we need.
LayerTimes split_forward_backward(Nanoseconds both);                   ///< 1/3, 2/3 in halves
LayerTimes split_backward(Nanoseconds forward, Nanoseconds backward);  ///< backward in halves

}  // namespace pfeife
