#include "planner/search/price/recompute_policy.h"

#include <algorithm>
#include <set>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// Search and estimator agree.
void check_time(const Prices& plan, double time) {
  PFEIFE_CHECK(static_cast<double>(plan.estimate.count()) == time, "the search priced cuts at ",
               time, " ns, the estimator at ", plan.estimate.count());
}

/// Refuses cuts that surely lack no less than others that were judged in full; if some have fitted,
/// those that surely lack anything: nobody asks for the least lack then.
bool refuse_known(CandidateParts& parts, const Cuts& cuts) {
  const std::optional<Infeasible>& closest = parts.found.closest();
  if (!closest || parts.problem.recompute != Recompute::None) return false;
  if (!parts.memory.surely_lacks(cuts, parts.found.best() ? Bytes{1} : closest->lacking()))
    return false;
  parts.found.set_aside(cuts);
  return true;
}

}  // namespace

double FixedRecomputation::weigh(CandidateParts& parts, const Cuts& cuts, double time) const {
  return all_.empty() ? time : parts.times.time(cuts, &all_);
}

bool FixedRecomputation::offer(CandidateParts& parts, const Cuts& cuts, double time) const {
  if (refuse_known(parts, cuts)) return false;
  if (!all_.empty()) {  // `time` is without the price
    time = parts.times.time(cuts, &all_);
    if (!parts.found.would_be_best(cuts, time)) {
      parts.found.set_aside(cuts);
      return false;
    }
  }
  const Activations activations = parts.judge.activations({});
  Prices plan = parts.judge.prices(cuts, activations, parts.found);
  check_time(plan, time);
  if (parts.judge.fits(plan.peak_memory)) return parts.keep(cuts, std::move(plan), activations);
  if (parts.problem.recompute == Recompute::None) parts.memory.learn(cuts, plan.costs);
  parts.memory.note_too_full(cuts, plan.peak_memory);
  return parts.refuse(cuts, plan.peak_memory);
}

ChosenStages::ChosenStages(const Schedule& compute_only, const Placement& placement,
                           const std::vector<Bytes>& memory_limit, bool own_margin)
    : recomputation_(compute_only, placement, memory_limit) {
  if (own_margin) margin_.assign(placement.ranks(), 0.0);
}

Recomputation::Choice ChosenStages::choose(CandidateParts& parts, const Cuts& cuts) {
  return recomputation_.choose(parts.model, cuts, parts.times.costs().kinds(), margin(parts));
}

double ChosenStages::weigh(CandidateParts& parts, const Cuts& cuts, double time) {
  const Recomputation::Choice choice = choose(parts, cuts);
  return choice.any() ? parts.times.time(cuts, &choice.chosen) : time;
}

bool ChosenStages::offer(CandidateParts& parts, const Cuts& cuts, double) {
  constexpr std::size_t kAllChoices = 6;  // stages
  PlanJudge& judge = parts.judge;
  const Recomputation::Choice choice = choose(parts, cuts);
  if (!choice.possible) {
    const Activations all = judge.activations(std::vector<bool>(parts.stages(), true));
    return parts.refuse(cuts, judge.prices(cuts, all, parts.found).peak_memory);
  }
  const double least = parts.times.time(cuts, &choice.forced);
  if (!parts.found.would_be_best(cuts, least)) return false;
  if (parts.stages() <= kAllChoices) return try_all(parts, cuts, choice.forced);
  if (choice.chosen != choice.forced) {
    // The margin may be too careful for these cuts.
    const Activations forced = judge.activations(choice.forced);
    Prices plan = judge.prices(cuts, forced, parts.found);
    if (judge.fits(plan.peak_memory)) {
      parts.found.set_aside(cuts);
      return parts.keep(cuts, std::move(plan), forced);
    }
  }
  return try_more(parts, cuts, choice.chosen, choice.forced, least);
}

/// Recomputes one stage more of every rank that is too full, until all fit.
bool ChosenStages::try_more(CandidateParts& parts, const Cuts& cuts, std::vector<bool> chosen,
                            const std::vector<bool>& forced, double least) {
  PlanJudge& judge = parts.judge;
  while (true) {
    if (!parts.found.would_be_best(cuts, parts.times.time(cuts, &chosen))) {
      parts.found.note_unsure(least);
      parts.found.set_aside(cuts);  // with more recomputed it takes no less
      return false;
    }
    const Activations activations = judge.activations(chosen);
    Prices plan = judge.prices(cuts, activations, parts.found);
    if (chosen != forced) parts.found.note_unsure(least);
    if (judge.fits(plan.peak_memory)) {
      if (parts.keep(cuts, std::move(plan), activations)) return true;
      parts.found.set_aside(cuts);
      return false;
    }
    bool more = false;
    for (std::size_t r = 0; r < plan.peak_memory.size(); ++r) {
      if (plan.peak_memory[r] <= parts.problem.memory_limit[r]) continue;
      margin(parts)[r] = static_cast<double>(plan.peak_memory[r].value) -
                         recomputation_.peak(parts.model, cuts, r, chosen);
      const auto& local = parts.memory.live().stages(r);
      const auto next = std::ranges::find_if(local, [&](std::size_t s) { return !chosen[s]; });
      if (next != local.end()) chosen[*next] = more = true;
    }
    if (more) continue;
    parts.found.note_unsure(least);
    return parts.refuse(cuts, plan.peak_memory);
  }
}

bool ChosenStages::try_all(CandidateParts& parts, const Cuts& cuts,
                           const std::vector<bool>& forced) const {
  const std::size_t stages = parts.stages();
  bool kept = false, judged = false, fit = false;
  std::vector<Bytes> last;  // peaks that did not fit
  for (std::size_t subset = 0; subset < std::size_t{1} << stages; ++subset) {
    std::vector<bool> tried(stages);
    bool enough = true;
    for (std::size_t s = 0; s < stages; ++s) {
      tried[s] = (subset >> s & 1U) != 0;
      enough = enough && (tried[s] || !forced[s]);
    }
    if (!enough || !recomputation_.may_fit(parts.model, cuts, tried)) continue;
    const double time = parts.times.time(cuts, &tried);
    if (!parts.found.would_be_best(cuts, time)) continue;
    judged = true;
    const Activations activations = parts.judge.activations(tried);
    std::vector<Bytes> peak_memory;
    auto plan = parts.judge.fitting(cuts, activations, parts.found, peak_memory);
    if (!plan) {
      last = std::move(peak_memory);
      continue;
    }
    check_time(*plan, time);
    fit = true;
    kept = parts.keep(cuts, *std::move(plan), activations) || kept;
  }
  if (judged && !fit) return parts.refuse(cuts, last);
  parts.found.set_aside(cuts);
  return kept;
}

ChosenBlocks::ChosenBlocks(const CutModel& model, const Problem& problem,
                           const Schedule& compute_only, const Placement& placement)
    : choice_(model, compute_only, placement, problem.memory_limit, problem.blocks),
      margin_(placement.ranks(), 0.0) {
  if (choice_.are_all()) stages_.emplace(compute_only, placement, problem.memory_limit, true);
}

void ChosenBlocks::learn(const ChosenBlocks& other) {
  margin_ = other.margin_;
  if (stages_) stages_->learn(*other.stages_);
}

double ChosenBlocks::weigh(CandidateParts& parts, const Cuts& cuts, double time) {
  ++chosen_;
  const BlockChoice::Choice choice =
      choice_.weigh(parts.model, cuts, parts.times.costs().kinds(), margin_);
  if (choice.fits) {
    const bool any = std::ranges::any_of(choice.again, [](double more) { return more > 0; });
    return any ? parts.times.time(cuts, nullptr, &choice.again) : time;
  }
  double much = 1;
  for (std::size_t r = 0; r < choice.peak.size(); ++r)
    much += std::max(0.0, choice.peak[r] + margin_[r] -
                              static_cast<double>(parts.problem.memory_limit[r].value));
  return CandidateParts::kTooFull + much;
}

bool ChosenBlocks::offer(CandidateParts& parts, const Cuts& cuts, double time) {
  const bool kept = stages_ && stages_->offer(parts, cuts, time);
  return offer_blocks(parts, cuts, time) || kept;
}

/// Chooses blocks, judges them, and chooses again with what the memory rule said of them, until it
/// says nothing new. A better choice may exist; no faster one than without any.
bool ChosenBlocks::offer_blocks(CandidateParts& parts, const Cuts& cuts, double time) {
  constexpr std::size_t kAllChoices = 6;  // blocks
  constexpr int kTries = 4;
  PlanJudge& judge = parts.judge;
  const std::vector<LayerRange> all = choice_.all(parts.model, cuts);
  if (parts.memory.surely_too_full(cuts))
    return parts.refuse(
        cuts,
        judge.prices(cuts, judge.activations({}, all), choice_.layers(), parts.found).peak_memory);
  if (all.size() <= kAllChoices) return try_all(parts, cuts, all);
  parts.found.note_unsure(time);
  std::set<std::vector<LayerRange>> judged;
  std::optional<Prices> too_full;
  bool kept = false, fit = false;
  for (int tried = 0; tried < kTries; ++tried) {
    const BlockChoice::Choice choice =
        choice_.choose(parts.model, cuts, parts.times.costs().kinds(), margin_);
    ++chosen_;
    if (!judged.insert(choice.blocks).second) break;
    if (choice.fits && parts.times.time(cuts, nullptr, &choice.again) >= parts.found.best_time())
      break;
    const Activations activations = judge.activations({}, choice.blocks);
    Prices plan = judge.prices(cuts, activations, choice_.layers(), parts.found);
    for (std::size_t r = 0; r < choice.peak.size(); ++r)
      margin_[r] = static_cast<double>(plan.peak_memory[r].value) - choice.peak[r];
    if (judge.fits(plan.peak_memory)) {
      fit = true;
      kept = parts.keep(cuts, std::move(plan), activations) || kept;
    } else {
      too_full = std::move(plan);
      if (!choice.fits) break;
    }
  }
  if (!fit && too_full) return parts.refuse(cuts, too_full->peak_memory);
  parts.found.set_aside(cuts);
  return kept;
}

bool ChosenBlocks::try_all(CandidateParts& parts, const Cuts& cuts,
                           const std::vector<LayerRange>& blocks) const {
  bool kept = false, fit = false, judged = false;
  std::optional<Prices> last;
  for (std::size_t subset = 0; subset < std::size_t{1} << blocks.size(); ++subset) {
    std::vector<LayerRange> tried;
    for (std::size_t b = 0; b < blocks.size(); ++b)
      if ((subset >> b & 1U) != 0) tried.push_back(blocks[b]);
    const BlockChoice::Choice choice =
        choice_.of(parts.model, cuts, parts.times.costs().kinds(), tried);
    const double time = parts.times.time(cuts, nullptr, &choice.again);
    if (!parts.found.would_be_best(cuts, time)) continue;
    const Activations activations = parts.judge.activations({}, std::move(tried));
    Prices plan = parts.judge.prices(cuts, activations, choice_.layers(), parts.found);
    check_time(plan, time);
    judged = true;
    if (parts.judge.fits(plan.peak_memory)) {
      fit = true;
      kept = parts.keep(cuts, std::move(plan), activations) || kept;
    } else {
      last = std::move(plan);
    }
  }
  if (judged && !fit) return parts.refuse(cuts, last->peak_memory);
  parts.found.set_aside(cuts);
  return kept;
}

RecomputePolicy recompute_policy(const CutModel& model, const Problem& problem,
                                 const Schedule& compute_only, const Placement& placement) {
  if (problem.recompute == Recompute::Blocks)
    return ChosenBlocks(model, problem, compute_only, placement);
  if (problem.recompute == Recompute::Choose)
    return ChosenStages(compute_only, placement, problem.memory_limit, false);
  return FixedRecomputation(placement.stages(),
                            problem.recompute == Recompute::Full && problem.recompute_except_last);
}

}  // namespace pfeife
