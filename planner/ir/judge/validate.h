// The independent judge of schedules. Shares no code with lowering or the DependencyGraph.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// One thing that is wrong: what, where and why.
struct Violation {
  RankId rank;
  std::size_t position = 0;  ///< cell in the rank's row; = row length for something missing
  std::string message;       ///< one sentence, names the action
  friend bool operator==(const Violation&, const Violation&) = default;
};

/// What the schedule must do.
struct Requirements {
  StageGraph stages;
  std::size_t microbatches = 0;  ///< each slice counted
  bool lowered = true;           ///< transfers must be there and match; false: compute-only
  std::size_t slices = 1;        ///< of each microbatch
};

/// Everything that is wrong with the schedule, in row order; empty = right.
/// Checks: complete (where the mode is forward: F alone) and nothing twice, every stage on one
/// rank, order within a cell's life (F before B or I, I before W), slices of a microbatch (F in
/// ascending order, B or I in descending order, in every stage), copies in pairs between F and B or
/// I, S and T of an output layer that all ranks share on all of them and in one order, transfers
/// matched and in the same order on both sides, reductions after the last backward, free of
/// deadlock under `semantics` (the contract's default is pair queues, blocking).
std::vector<Violation> validate(const Schedule& schedule, const Requirements& requirements,
                                const Semantics& semantics = {.queues = Queues::Pair,
                                                              .links = Links::Delay,
                                                              .blocking = true});

/// What a pipeline of these stages must do with the schedule's own microbatches. Forward only, no
/// gradients cross and none are shared.
Requirements requirements_of(const Schedule& schedule, StageGraph stages, Mode mode);
/// What a chain pipeline with the schedule's own stages and microbatches must do.
Requirements requirements_of(const Schedule& schedule, bool lowered, Mode mode = Mode::Train);

/// The rank-by-step grid with the violation's cell marked, and its message: for the terminal.
std::string marked_grid(const Schedule& schedule, const Violation& violation);

}  // namespace pfeife
