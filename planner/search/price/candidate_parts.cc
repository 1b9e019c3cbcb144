#include "planner/search/price/candidate_parts.h"

namespace pfeife {

bool CandidateParts::keep(const Cuts& cuts, Prices prices, Activations activations) {
  const auto time = static_cast<double>(prices.estimate.count());
  const bool best = found.would_be_best(cuts, time);
  if (!best && !found.is_near(time)) return false;
  Priced plan =
      priced({judge.spec(), model.partition(cuts), judge.placement(), std::move(activations)},
             std::move(prices));
  if (times.is_large()) plan.rows.reset();  // as PlanJudge::forget_schedule
  if (best)
    found.keep(cuts, time, std::move(plan));
  else
    found.keep_near(std::move(plan));
  return best;
}

bool CandidateParts::refuse(const Cuts& cuts, const std::vector<Bytes>& peak_memory) {
  found.set_aside(cuts);
  const std::vector<Bytes>& limit = problem.memory_limit;
  std::size_t worst = 0;
  for (std::size_t r = 1; r < peak_memory.size(); ++r)
    if (peak_memory[r] - limit[r] > peak_memory[worst] - limit[worst]) worst = r;
  found.note_lack(
      {RankId{worst}, peak_memory[worst], limit[worst], judge.spec(), model.partition(cuts)});
  return false;
}

}  // namespace pfeife
