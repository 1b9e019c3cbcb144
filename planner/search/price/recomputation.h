// Which stages to recompute so that given cuts fit their devices.
//
// A rank's memory depends on its own stages alone (the order of receives apart), so ranks are
// looked at one by one, with the lower bound of LiveMemory.
#pragma once

#include <vector>

#include "planner/search/price/live_memory.h"

namespace pfeife {

class Recomputation {
 public:
  Recomputation(const Schedule& compute_only, const Placement& placement,
                const std::vector<Bytes>& memory_limit);

  struct Choice {
    std::vector<bool> forced;  ///< [stage] recomputed in every choice that fits
    std::vector<bool> chosen;  ///< a choice that fits by the bound and the margin: cheapest forward
    bool possible = true;      ///< by the bound alone; false: no choice fits
    bool any() const;          ///< something is chosen
  };
  /// `margin` ([rank], bytes): what the exact rule is expected to add to the bound.
  /// Always asked about the same model and kinds: what was chosen for a rank is remembered.
  Choice choose(const CutModel& model, const Cuts& cuts, const std::vector<std::size_t>& kind,
                const std::vector<double>& margin);

  /// By the bound alone; false: it surely does not.
  bool may_fit(const CutModel& model, const Cuts& cuts, const std::vector<bool>& recompute) const;

  double peak(const CutModel& model, const Cuts& cuts, std::size_t rank,
              const std::vector<bool>& recompute) const {
    return live_.peak(model, cuts, rank, recompute);
  }

 private:
  /// A rank's part of a choice, and of what: cuts that differ little share most of them.
  struct Known {
    std::vector<std::int32_t> positions;  // [local stage][begin, end]; empty = nothing known
    double margin = 0;
    std::vector<bool> forced, chosen;  // [local stage]
    bool possible = true;
  };
  static constexpr std::size_t kKept = 64;  // of a rank

  Known choose_rank(const CutModel& model, const Cuts& cuts, const std::vector<std::size_t>& kind,
                    std::size_t rank, double margin) const;
  const Known& known_choice(const CutModel& model, const Cuts& cuts,
                            const std::vector<std::size_t>& kind, std::size_t rank, double margin);

  LiveMemory live_;
  std::vector<double> limit_;              // [rank]
  std::vector<std::vector<Known>> known_;  // [rank][kept]
  std::vector<std::int32_t> key_;          // Known::positions, asked for
};

}  // namespace pfeife
