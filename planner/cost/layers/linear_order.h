// Orders in which the nodes of a graph may run. On a branching graph they differ in what is alive
// between two nodes, and so in what a cut there sends and a stage holds.
//
// Every order keeps what may be seen: a node comes after those whose results it reads, and of two
// nodes that touch a storage, buffers and parameters included, of which one writes it, the first
// stays first. Random operators are seeded one by one (runtime/model/graph_stage.h), so an order
// changes no numbers.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/model/graph.h"

namespace pfeife {

/// The orders that linear_order knows, "captured" first:
/// - `captured`: as the model was traced;
/// - `depth_first`: for one result that nobody reads after the other, all that it needs, the makers
///   of a node's inputs in the captured order: what only a later result needs waits;
/// - `least_live`: always the node after which the fewest bytes are alive that a later one reads
///   (of equal ones the first captured). Greedy, so not the best there is.
const std::vector<std::string>& linear_orders();

/// Name of the captured order where a layer is all between two borders of blocks
/// (Grouping::Blocks): what plan.cuts_at: blocks counts its cuts in.
inline constexpr const char* kCapturedInBlocks = "captured_in_blocks";
/// The same with cuts between numbered modules alone (planner/ir/model/numbered_module.h), and
/// before and after all of them: what plan.for counts its cuts in.
inline constexpr const char* kCapturedInModules = "captured_in_modules";

/// [position] captured number of the node, by the order's name. O(nodes x nodes ready at a time).
std::vector<NodeId> linear_order(const Graph& graph, const std::string& name);

}  // namespace pfeife
