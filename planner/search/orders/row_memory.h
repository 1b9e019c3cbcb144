// What a rank holds while it runs an action, from what it has done and received so far: the books
// of planner/cost/estimate/memory.h, whatever order led there.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "planner/ir/schedule/schedule.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// How far a stage is: microbatches whose F, B or I, and B or W are done, each in turn.
struct StageProgress {
  std::uint8_t forward = 0, backward = 0, weight = 0;
  bool whole = false;  ///< its backward is never in two parts: B alone
  friend bool operator==(const StageProgress&, const StageProgress&) = default;
};

/// The sizes that every order is tried for, at most.
inline constexpr std::size_t kFewRanks = 2, kFewStages = 6, kFewMicrobatches = 3;
inline constexpr std::size_t kFewPairs = kFewStages * (kFewStages - 1) / 2;

class RowMemory {
 public:
  using Progress = std::array<StageProgress, kFewStages>;
  /// [StageCosts::pairs] microbatches whose values (on the reader's rank) or gradients (on the
  /// sender's) have come.
  using Received = std::array<std::uint8_t, kFewPairs>;
  struct Held {
    std::int64_t most = 0;  ///< bytes while the action runs
    std::int64_t sent = 0;  ///< bytes of what it leaves that are gone once they are sent
  };

  /// Keeps references.
  RowMemory(const StageCosts& costs, const Placement& placement)
      : costs_(costs), placement_(placement) {}

  /// While the rank of `stage` runs `op` of it for its next microbatch.
  Held during(const Progress& done, const Received& received, std::size_t stage, Op op);
  /// Before the rank begins anything (bytes).
  std::int64_t before(const Progress& done, const Received& received, std::size_t rank);

 private:
  bool crosses(const StagePair& pair) const {
    return placement_.rank(pair.from) != placement_.rank(pair.to);
  }
  void add_forwards(const Progress& done, const Received& received, std::size_t rank,
                    std::vector<Cell>& row) const;
  void add_backwards(const Progress& done, const Received& received, std::size_t rank,
                     std::vector<Cell>& row) const;
  void add_sends(StageId stage, MicrobatchId microbatch, Direction direction,
                 std::vector<Cell>& row) const;
  std::uint64_t key(const Progress& done, const Received& received, std::size_t rank,
                    std::size_t action) const;
  Held look(const Progress& done, const Received& received, std::size_t rank,
            const std::vector<Action>& actions) const;

  const StageCosts& costs_;
  const Placement& placement_;
  std::unordered_map<std::uint64_t, Held> known_;
};

}  // namespace pfeife
