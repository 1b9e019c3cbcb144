// What a plan chooses: a schedule, where the model is cut, what is recomputed, which device runs
// which rank. Two plans of equal choices are the same plan; all else of a plan follows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/model/layers.h"
#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// What may compute its forward again in backward instead of keeping what it saves.
enum class Recompute : std::uint8_t {
  None,
  Full,       ///< every stage, or every layer of a mesh's
  Choose,     ///< each stage for itself, where memory needs it
  Blocks,     ///< any blocks of the model, where memory needs it, or stages as in Choose
  Attention,  ///< as Blocks, of the blocks that attend alone
  IfNeeded,   ///< nothing, or as Choose where memory may bind
};
/// "none", "if_needed": as a config writes it.
std::string to_string(Recompute recompute);

/// What is recomputed is part of the choice.
inline bool is_chosen(Recompute recompute) {
  return recompute == Recompute::Choose || recompute == Recompute::Blocks;
}

/// What a plan computes again.
struct Recomputed {
  std::vector<bool> stages = {};  ///< [stage]; empty = none
  /// Each by itself, within a stage that `stages` does not have; sorted, none overlaps another.
  std::vector<LayerRange> blocks = {};
  /// The microbatch that a stage runs forward last is kept.
  bool except_last = false;

  bool any() const;
  friend bool operator==(const Recomputed&, const Recomputed&) = default;
};
/// "recompute=all", "recompute=0-2 7" (stages), "recompute=12 blocks", "recompute=all except last";
/// "" if nothing is.
std::string to_string(const Recomputed& recomputed);

/// A plan's choices. Equal choices make equal plans.
struct Choice {
  ScheduleSpec spec;
  Partition partition;
  Placement placement;
  Recomputed recomputed = {};
  /// Compute-only rows that do not follow from `spec`: built for the costs, or given.
  std::optional<Schedule> order = std::nullopt;

  friend bool operator==(const Choice&, const Choice&) = default;
};
/// What is chosen besides the stages a rank: "prefetch=3, recompute=0".
std::string knobs(const ScheduleSpec& spec, const Recomputed& recomputed);
/// "looped, V=2, prefetch=3, recompute=0".
std::string name_of(const Choice& choice);

}  // namespace pfeife
