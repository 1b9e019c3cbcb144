#include "planner/search/price/cut_memory.h"

#include <algorithm>
#include <limits>

namespace pfeife {

static LiveMemory::Stages counted(Recompute recompute) {
  if (recompute == Recompute::Blocks) return LiveMemory::Stages::Blocks;
  return recompute == Recompute::None ? LiveMemory::Stages::Kept : LiveMemory::Stages::Recomputed;
}

CutMemory::CutMemory(const CutModel& model, const Problem& problem, const Schedule& compute_only,
                     const Placement& placement)
    : model_(model),
      problem_(problem),
      live_(compute_only, placement, counted(problem.recompute)),
      peaks_(live_),
      known_(model, placement),
      above_(placement.ranks(), 0.0) {}

double CutMemory::excess(const Cuts& cuts) {
  ++weighed_;
  double worst = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::size_t r = 0; r < live_.ranks(); ++r) {
    const double much = peaks_.peak(live_, model_, cuts, r) + above_[r] - limit(r);
    worst = std::max(worst, much), sum += std::max(much, 0.0);
  }
  return worst > 0 ? sum : worst;
}

bool CutMemory::surely_too_full(const Cuts& cuts) const {
  for (std::size_t r = 0; r < live_.ranks(); ++r)
    if (live_.peak(model_, cuts, r) > limit(r)) return true;
  return false;
}

void CutMemory::note_too_full(const Cuts& cuts, const std::vector<Bytes>& peak_memory) {
  for (std::size_t r = 0; r < peak_memory.size(); ++r)
    if (peak_memory[r] > problem_.memory_limit[r])
      above_[r] = static_cast<double>(peak_memory[r].value) - live_.peak(model_, cuts, r);
}

bool CutMemory::surely_lacks(const Cuts& cuts, Bytes least) {
  std::vector<double> lack(live_.ranks());
  double most = 0;
  for (std::size_t r = 0; r < live_.ranks(); ++r) {
    lack[r] = known_.peak(live_, cuts, r).value_or(0) - limit(r);
    most = std::max(most, lack[r]);
  }
  if (most < static_cast<double>(least.value)) return false;
  for (std::size_t r = 0; r < live_.ranks(); ++r)
    if (lack[r] > 0) above_[r] = lack[r] + limit(r) - live_.peak(model_, cuts, r);
  return true;
}

void CutMemory::join(CutMemory& copy, bool judged) {
  if (judged) above_ = copy.above_;
  weighed_ += std::exchange(copy.weighed_, 0);
  known_.learn(copy.known_);
}

void CutMemory::follow(const CutMemory& original) {
  weighed_ = 0;
  above_ = original.above_, known_ = original.known_;
}

}  // namespace pfeife
