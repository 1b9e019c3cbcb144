// The tasks of a lowered schedule, and where each value is made. Internal to planner/ir: the first
// half of dependencies().
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/ir/schedule/dependency_graph.h"

namespace pfeife {

constexpr std::uint32_t kNoTask = ~std::uint32_t{0};

/// A REDUCE_GRAD or REDUCE_NORM of a row, and the task that it is a party of.
struct ReductionParty {
  std::uint32_t task;
  RankId rank;
  std::uint32_t position;
  StageId stage;
};

/// Tasks and slots as DependencyGraph has them, and the task that does each thing (kNoTask if none
/// does).
struct DependencyTasks {
  std::vector<Task> tasks;
  std::vector<DurationSlot> slots;
  std::size_t microbatches = 0;
  std::vector<std::uint32_t> forward, backward;  ///< [stage * microbatches + m]; B or I
  std::vector<std::uint32_t> transfer[2];        ///< [direction][edge * microbatches + m]
  std::vector<std::uint32_t> reduction;          ///< [stage]
  std::vector<std::uint32_t> last_gradient;      ///< [stage] last B or W in the row of its rank
  std::vector<ReductionParty> reductions;        ///< in row order
  /// [stage] of its replicas: what runs beside the backward `with`, and the rest.
  struct Replicas {
    std::uint32_t beside = kNoTask, behind = kNoTask, with = kNoTask;
  };
  std::vector<Replicas> replicas;
  std::vector<std::uint32_t> offload, reload;  ///< [stage * microbatches + m]; empty = none
  std::uint32_t norm = kNoTask;                ///< of all REDUCE_NORMs
  /// [collective_number][m] The collectives of an output layer that all ranks share, and their
  /// parts.
  std::array<std::vector<std::uint32_t>, kHeadCollectives.size()> collective;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> collective_parts;  ///< (part, collective)

  std::size_t place(StageId stage, MicrobatchId m) const {
    return stage.index() * microbatches + m.index();
  }
  /// Makers of the values that travel in this direction.
  const std::vector<std::uint32_t>& makers(Direction direction) const {
    return direction == Direction::Forward ? forward : backward;
  }
  const std::vector<std::uint32_t>& sent(Direction direction) const {
    return transfer[static_cast<std::size_t>(direction)];
  }
};

/// Arguments and errors: as of dependencies().
DependencyTasks dependency_tasks(const Schedule& lowered, const StageGraph& stages,
                                 const Placement& placement);

}  // namespace pfeife
