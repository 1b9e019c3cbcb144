#include "planner/search/price/recomputation.h"

#include <algorithm>
#include <limits>

#include "planner/search/problem.h"

namespace pfeife {

Recomputation::Recomputation(const Schedule& compute_only, const Placement& placement,
                             const std::vector<Bytes>& memory_limit)
    : live_(compute_only, placement, LiveMemory::Stages::Either),
      known_(placement.ranks(), std::vector<Known>(kKept)) {
  for (const Bytes limit : memory_limit) limit_.push_back(static_cast<double>(limit.value));
}

bool Recomputation::Choice::any() const { return std::ranges::find(chosen, true) != chosen.end(); }

/// Tries all subsets of a rank's stages, or, of many, one stage more at a time.
Recomputation::Known Recomputation::choose_rank(const CutModel& model, const Cuts& cuts,
                                                const std::vector<std::size_t>& kind,
                                                std::size_t rank, double margin) const {
  constexpr std::size_t kAllSubsets = 6;
  const std::vector<std::size_t>& stages = live_.stages(rank);
  Known known{.margin = margin,
              .forced = std::vector<bool>(stages.size()),
              .chosen = std::vector<bool>(stages.size())};
  std::vector<bool> recompute(cuts.size() - 1);  // [stage]
  const auto fits = [&](const std::vector<bool>& local, double more) {
    for (std::size_t k = 0; k < stages.size(); ++k) recompute[stages[k]] = local[k];
    return live_.peak(model, cuts, rank, recompute) + more <= limit_[rank];
  };
  if (fits(known.chosen, margin)) return known;
  std::vector<bool> all(stages.size(), true);
  if (stages.size() == 1) {  // the same, without asking for a peak twice
    known.forced[0] = !fits({false}, 0);
    known.possible = fits(all, 0);
    known.chosen = all;
    return known;
  }
  known.possible = fits(all, 0);
  for (std::size_t k = 0; k < stages.size(); ++k) {
    all[k] = false;
    known.forced[k] = !fits(all, 0);
    all[k] = true;
  }
  if (stages.size() <= kAllSubsets) {
    std::vector<bool> best = all;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t subset = 1; subset < std::size_t{1} << stages.size(); ++subset) {
      std::vector<bool> tried(stages.size());
      double time = 0;
      for (std::size_t k = 0; k < stages.size(); ++k) {
        if ((subset >> k & 1U) == 0) continue;
        tried[k] = true;
        time += of_stage(model.time(kind[stages[k]], Work::Forward), cuts, stages[k]);
      }
      if (time < least && fits(tried, margin)) best = tried, least = time;
    }
    known.chosen = best;
  } else {
    for (std::size_t k = 0; k < stages.size(); ++k)
      if (!fits(known.chosen, margin)) known.chosen[k] = true;
  }
  return known;
}

const Recomputation::Known& Recomputation::known_choice(const CutModel& model, const Cuts& cuts,
                                                        const std::vector<std::size_t>& kind,
                                                        std::size_t rank, double margin) {
  constexpr std::uint32_t kFactor = 2654435769U;  // 2^32 / golden ratio: spreads the low bits
  key_.clear();
  std::uint32_t hash = 0;
  for (const std::size_t s : live_.stages(rank))
    for (const std::int32_t position : {cuts[s], cuts[s + 1]}) {
      key_.push_back(position);
      hash = (hash ^ static_cast<std::uint32_t>(position)) * kFactor;
    }
  Known& known = known_[rank][(hash >> 16) % kKept];
  if (known.margin != margin || known.positions != key_) {
    known = choose_rank(model, cuts, kind, rank, margin);
    known.positions = key_;
  }
  return known;
}

bool Recomputation::may_fit(const CutModel& model, const Cuts& cuts,
                            const std::vector<bool>& recompute) const {
  for (std::size_t r = 0; r < limit_.size(); ++r)
    if (live_.peak(model, cuts, r, recompute) > limit_[r]) return false;
  return true;
}

Recomputation::Choice Recomputation::choose(const CutModel& model, const Cuts& cuts,
                                            const std::vector<std::size_t>& kind,
                                            const std::vector<double>& margin) {
  const std::size_t stages = cuts.size() - 1;
  Choice choice{std::vector<bool>(stages, false), std::vector<bool>(stages, false), true};
  for (std::size_t r = 0; r < limit_.size(); ++r) {
    const Known& known = known_choice(model, cuts, kind, r, margin[r]);
    for (std::size_t k = 0; k < live_.stages(r).size(); ++k) {
      const std::size_t s = live_.stages(r)[k];
      choice.forced[s] = known.forced[k], choice.chosen[s] = known.chosen[k];
    }
    choice.possible = choice.possible && known.possible;
  }
  return choice;
}

}  // namespace pfeife
