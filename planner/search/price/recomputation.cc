#include "planner/search/price/recomputation.h"

#include <algorithm>
#include <limits>

#include "planner/search/problem.h"

namespace pfeife {

Recomputation::Recomputation(const Schedule& compute_only, const Placement& placement,
                             const std::vector<Bytes>& memory_limit)
    : live_(compute_only, placement, LiveMemory::Stages::Either) {
  for (const Bytes limit : memory_limit) limit_.push_back(static_cast<double>(limit.value));
}

bool Recomputation::Choice::any() const { return std::ranges::find(chosen, true) != chosen.end(); }

std::string recomputed_text(const std::vector<bool>& recompute) {
  std::string list;
  for (std::size_t s = 0; s < recompute.size(); ++s) {
    if (!recompute[s]) continue;
    const std::size_t first = s;
    while (s + 1 < recompute.size() && recompute[s + 1]) ++s;
    list += (list.empty() ? "" : " ") + std::to_string(first);
    if (s > first) list += "-" + std::to_string(s);
  }
  if (list.empty()) return "";
  const bool all = std::ranges::find(recompute, false) == recompute.end();
  return "recompute=" + (all ? "all" : list);
}

std::string knobs(const ScheduleSpec& spec, const std::vector<bool>& recompute,
                  const std::vector<LayerRange>& blocks, bool except_last) {
  const std::string text = knobs(spec);
  std::string recomputed = recomputed_text(recompute);
  if (!blocks.empty())
    recomputed =
        "recompute=" + std::to_string(blocks.size()) + (blocks.size() == 1 ? " block" : " blocks");
  if (except_last && !recomputed.empty()) recomputed += " except last";
  return text + (text.empty() || recomputed.empty() ? "" : ", ") + recomputed;
}

/// Tries all subsets of a rank's stages, or, of many, one stage more at a time.
void Recomputation::choose_rank(const CutModel& model, const Cuts& cuts,
                                const std::vector<double>& forward, std::size_t rank, double margin,
                                Choice& choice) const {
  constexpr std::size_t kAllSubsets = 6;
  const std::vector<std::size_t>& stages = live_.stages(rank);
  std::vector<bool>& chosen = choice.chosen;
  const auto fits = [&](const std::vector<bool>& recompute, double more) {
    return live_.peak(model, cuts, rank, recompute) + more <= limit_[rank];
  };
  if (fits(chosen, margin)) return;
  std::vector<bool> all = chosen;
  for (const std::size_t s : stages) all[s] = true;
  choice.possible = choice.possible && fits(all, 0);
  for (const std::size_t s : stages) {
    all[s] = false;
    choice.forced[s] = !fits(all, 0);
    all[s] = true;
  }
  std::vector<bool> best = all;
  if (stages.size() <= kAllSubsets) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t subset = 1; subset < std::size_t{1} << stages.size(); ++subset) {
      std::vector<bool> tried = chosen;
      double time = 0;
      for (std::size_t k = 0; k < stages.size(); ++k)
        if ((subset >> k & 1U) != 0) tried[stages[k]] = true, time += forward[stages[k]];
      if (time < least && fits(tried, margin)) best = tried, least = time;
    }
  } else {
    best = chosen;
    for (const std::size_t s : stages)
      if (!fits(best, margin)) best[s] = true;
  }
  chosen = best;
}

bool Recomputation::may_fit(const CutModel& model, const Cuts& cuts,
                            const std::vector<bool>& recompute) const {
  for (std::size_t r = 0; r < limit_.size(); ++r)
    if (live_.peak(model, cuts, r, recompute) > limit_[r]) return false;
  return true;
}

Recomputation::Choice Recomputation::choose(const CutModel& model, const Cuts& cuts,
                                            const std::vector<std::size_t>& kind,
                                            const std::vector<double>& margin) const {
  const std::size_t stages = cuts.size() - 1;
  Choice choice{std::vector<bool>(stages, false), std::vector<bool>(stages, false), true};
  std::vector<double> forward(stages);
  for (std::size_t s = 0; s < stages; ++s)
    forward[s] = of_stage(model.time(kind[s], Work::Forward), cuts, s);
  for (std::size_t r = 0; r < limit_.size(); ++r)
    choose_rank(model, cuts, forward, r, margin[r], choice);
  return choice;
}

}  // namespace pfeife
