// What full evaluations have told of the memory of stages, by their ranges of layers: a sharper
// lower bound of the peaks of other cuts that have the same stages.
//
// Unlike LiveMemory it knows what a stage keeps of the values that it receives, and the buffers of
// the microbatch that runs. Those that wait longer depend on the order of transfers and stay out.
#pragma once

#include <map>
#include <optional>

#include "planner/search/price/live_memory.h"

namespace pfeife {

class KnownStages {
 public:
  KnownStages(const CutModel& model, const Placement& placement);

  /// `costs` are those of `cuts`, nothing recomputed.
  void learn(const Cuts& cuts, const StageCosts& costs);
  /// All that is known there of the same model and placement.
  void learn(const KnownStages& other) {
    stages_.insert(other.stages_.begin(), other.stages_.end());
  }
  /// Lower bound of the peak of `rank` (bytes), if all its stages are known; `live` is of
  /// LiveMemory::Stages::Kept.
  std::optional<double> peak(const LiveMemory& live, const Cuts& cuts, std::size_t rank) const;

 private:
  struct Memory {  // bytes
    double fixed = 0, saved = 0, weight_saved = 0;
    double saved_from_others = 0;  ///< part of `saved`: values that the stage receives
    double entering = 0;           ///< receive buffers while F runs, but for what is saved
    double leaving = 0;            ///< made by F for others, but for what is saved
    double gradients = 0;          ///< received for B, one of each value
    std::array<double, kPasses> temporary{};
  };
  double held(const Memory& stage, const LiveMoment& moment, std::size_t at) const;

  bool shares_parameters_ = false;
  std::map<std::pair<std::int32_t, std::int32_t>, Memory> stages_;  // [begin, end)
};

}  // namespace pfeife
