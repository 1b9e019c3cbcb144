// Which data an action waits for, and who waits for what it makes. The dependency graph, both ways
// of lowering and the check whether an order can run are made from this; the judge (validate.h)
// says it again, on purpose, and so do searches that compile it for one kind of schedule.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// The edges of a stage graph by stage.
struct StageEdges {
  explicit StageEdges(const StageGraph& graph);

  /// [stage] numbers of the edges that end there, and of those that begin there.
  std::vector<std::vector<std::uint32_t>> into, out_of;
};

/// The slice whose action of the same kind and stage `action` waits for: F reads the keys and
/// values of the slice before it, B and I the gradients of its own that come from the slice after
/// it.
std::optional<MicrobatchId> slice_before(const Action& action);

/// The collective of an output layer that all ranks share whose result the action reads: S that of
/// the last stage's F, T that of all S, B and I of the last stage that of all S or all T.
std::optional<Op> collective_read(const Action& action, const StageGraph& graph);
/// The collective that begins when the action, and those like it on all ranks, are done.
std::optional<Op> collective_made(const Action& action, const StageGraph& graph);
/// How many actions have to be done before a collective begins.
std::size_t collective_parts(Op collective, const StageGraph& graph);
/// Its place in kHeadCollectives.
constexpr std::size_t collective_number(Op collective) {
  return static_cast<std::size_t>(collective) - static_cast<std::size_t>(kHeadCollectives.front());
}

/// Calls `visit(edge, source, direction)` for each message that a compute action reads: the number
/// of its edge, the stage that made it. F reads along all edges into its stage, B and I against all
/// that leave it and carry gradients.
template <class Visitor>
void for_each_message_read(const Action& action, const StageGraph& graph, const StageEdges& edges,
                           Visitor&& visit) {
  const std::size_t stage = action.stage.index();
  const std::optional<Direction> way = operation(action.op).passes;
  if (way == Direction::Forward)
    for (const std::uint32_t e : edges.into[stage])
      visit(e, graph.edges[e].from, Direction::Forward);
  if (way == Direction::Backward)
    for (const std::uint32_t e : edges.out_of[stage])
      if (graph.edges[e].gradient) visit(e, graph.edges[e].to, Direction::Backward);
}

/// Calls `visit(edge, reader, direction)` for each message that a compute action makes.
template <class Visitor>
void for_each_message_made(const Action& action, const StageGraph& graph, const StageEdges& edges,
                           Visitor&& visit) {
  const std::size_t stage = action.stage.index();
  const std::optional<Direction> way = operation(action.op).passes;
  if (way == Direction::Forward)
    for (const std::uint32_t e : edges.out_of[stage])
      visit(e, graph.edges[e].to, Direction::Forward);
  if (way == Direction::Backward)
    for (const std::uint32_t e : edges.into[stage])
      if (graph.edges[e].gradient) visit(e, graph.edges[e].from, Direction::Backward);
}

}  // namespace pfeife
