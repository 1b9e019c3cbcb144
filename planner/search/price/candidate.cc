#include "planner/search/price/candidate.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "planner/cost/estimate/evaluate.h"
#include "planner/cost/estimate/memory.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "planner/search/price/lack.h"

namespace pfeife {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

LiveMemory::Stages counted(Recompute recompute) {
  if (recompute == Recompute::Blocks) return LiveMemory::Stages::Blocks;
  return recompute == Recompute::None ? LiveMemory::Stages::Kept : LiveMemory::Stages::Recomputed;
}

}  // namespace

Candidates::Candidates(const CutModel& model, const Problem& problem, const ScheduleSpec& spec)
    : Candidates(model, problem, spec, generate(spec)) {
  if (is_large()) schedule_.reset();  // else hundreds of them would fill the memory
}

Candidates::Candidates(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
                       Schedule compute_only)
    : model_(model),
      problem_(problem),
      spec_(spec),
      placement_(placement_for(spec, problem.device_of_rank)),
      schedule_(std::move(compute_only)),
      program_(*schedule_, placement_, problem.recompute_except_last),
      costs_(model, placement_),
      live_(*schedule_, placement_, counted(problem.recompute)),
      peaks_(live_),
      known_(model, placement_),
      durations_(program_.durations()),
      above_bound_(placement_.ranks(), 0.0),
      unsure_(std::numeric_limits<double>::infinity()),
      best_time_(std::numeric_limits<double>::infinity()) {
  above_choice_.assign(placement_.ranks(), 0.0), above_stages_ = above_choice_;
  if (problem.recompute == Recompute::Full && problem.recompute_except_last)
    all_.assign(placement_.stages(), true);
  if (problem.recompute == Recompute::Blocks)
    block_choice_.emplace(model, *schedule_, placement_, problem.memory_limit, problem.blocks);
  if (problem.recompute == Recompute::Choose || (block_choice_ && block_choice_->are_all()))
    recomputation_.emplace(*schedule_, placement_, problem.memory_limit);
}

Schedule Candidates::schedule() const { return schedule_ ? *schedule_ : generate(spec_); }

CutCosts::Priced Candidates::price(const Cuts& cuts, const std::vector<bool>* recompute,
                                   const std::vector<double>* again) {
  ++evaluated_;
  const CutCosts::Priced priced =
      costs_.price(cuts, program_, durations_.data(), 1, recompute, again);
  program_.complete(durations_.data(), 1);
  return priced;
}

/// What is chosen, and what the problem recomputes whatever is chosen.
Recomputed Candidates::recomputed(std::vector<bool> stages, std::vector<LayerRange> blocks) const {
  if (problem_.recompute == Recompute::Full) stages.assign(this->stages(), true);
  Recomputed all{std::move(stages), std::move(blocks), problem_.recompute_except_last};
  return all.any() ? all : Recomputed{};
}

/// Received late, if the prices do not fit otherwise. If nothing fits, the least that is needed.
Prices Candidates::in_memory(Prices prices) {
  if (fits(prices.peak_memory) || problem_.memory_rule != MemoryRule::Lifetimes) return prices;
  std::vector<Bytes> least = least_peak_memory(prices, placement_);
  if (!fits(least)) {
    prices.peak_memory = std::move(least);
    return prices;
  }
  if (problem_.receives == Receives::AtNeed) {
    Prices late = received_late(prices, placement_);
    if (fits(late.peak_memory)) return late;
  }
  unsure_ = std::min(unsure_, static_cast<double>(prices.estimate.count()));
  return prices;
}

Prices Candidates::evaluated(const Cuts& cuts, const Recomputed& recomputed) {
  ++judged_;
  if (recomputed.blocks.empty() && problem_.memory_rule == MemoryRule::Lifetimes) {
    StageCosts costs = stage_costs_of(cuts, recomputed);
    Schedule lowered = this->lowered(costs);
    return in_memory(evaluate_lowered(std::move(costs), std::move(lowered), placement_));
  }
  return in_memory(evaluate(recomputed.blocks.empty() ? model_.layers() : block_choice_->layers(),
                            model_.cluster(), schedule(), placement_, model_.partition(cuts),
                            problem_.memory_rule, recomputed, problem_.norm));
}

/// The choices of recomputed stages for the same cuts share what takes long.
StageCosts Candidates::stage_costs_of(const Cuts& cuts, const Recomputed& recomputed) const {
  if (!collected_ || collected_->first != cuts) {
    const Partition partition = model_.partition(cuts);
    collected_ = {cuts,
                  collected_stage_costs(model_.layers(), partition, placement_, model_.cluster())};
    collected_->second.norm =
        norm_time(model_.layers(), problem_.norm, partition, placement_, model_.cluster());
  }
  return with_recomputation(collected_->second, recomputed, placement_, model_.cluster());
}

Schedule Candidates::lowered(const StageCosts& costs) const {
  return lower(schedule_ ? *schedule_ : generate(spec_), costs, placement_);
}

double Candidates::work() const {
  const auto nodes = static_cast<double>(program_.compute_nodes());
  return static_cast<double>(evaluated_) * (0.4 * nodes + 40.0 * static_cast<double>(stages())) +
         static_cast<double>(judged_) *
             (1500.0 * nodes +
              (block_choice_ ? 1000.0 * static_cast<double>(model_.layers().size()) : 0)) +
         static_cast<double>(chosen_) * 3000.0 * static_cast<double>(live_.ranks()) +
         static_cast<double>(weighed_) *
             (20.0 * static_cast<double>(stages()) + 1.5 * static_cast<double>(live_.numbers()));
}

double Candidates::time(const Cuts& cuts) { return time_with(cuts, nullptr); }

double Candidates::time_with(const Cuts& cuts, const std::vector<bool>* recompute,
                             const std::vector<double>* again) {
  const CutCosts::Priced priced = price(cuts, recompute, again);
  if (priced.exact) return program_.makespan(durations_, ends_, priced.tail);
  ++judged_;
  return program_.makespan(durations_, ends_, priced.tail, costs_.skips(cuts));
}

double Candidates::weigh(const Cuts& cuts, double time) {
  if (const double much = excess(cuts); much > 0) return kTooFull + much;
  if (block_choice_) return weigh_blocks(cuts, time);
  if (!all_.empty()) return time_with(cuts, &all_);
  return recomputation_ ? weigh_stages(cuts, time) : time;
}

double Candidates::weigh_stages(const Cuts& cuts, double time) {
  const Recomputation::Choice choice = choose_stages(cuts);
  return choice.any() ? time_with(cuts, &choice.chosen) : time;
}

double Candidates::weigh_blocks(const Cuts& cuts, double time) {
  ++chosen_;
  const BlockChoice::Choice choice =
      block_choice_->weigh(model_, cuts, costs_.kinds(), above_choice_);
  if (choice.fits) {
    const bool any = std::ranges::any_of(choice.again, [](double more) { return more > 0; });
    return any ? time_with(cuts, nullptr, &choice.again) : time;
  }
  double much = 1;
  for (std::size_t r = 0; r < choice.peak.size(); ++r)
    much += std::max(0.0, choice.peak[r] + above_choice_[r] -
                              static_cast<double>(problem_.memory_limit[r].value));
  return kTooFull + much;
}

/// [rank] What the exact rule was found to add to the stages' choice.
std::vector<double>& Candidates::above_stages() {
  return block_choice_ ? above_stages_ : above_bound_;
}

Recomputation::Choice Candidates::choose_stages(const Cuts& cuts) {
  return recomputation_->choose(model_, cuts, costs_.kinds(), above_stages());
}

void Candidates::times(std::span<const Cuts> cuts, std::vector<double>& out, double enough) {
  lane_times(cuts, out, exact_, false);
  for (std::size_t k = 0; k < cuts.size(); ++k)
    if (!exact_[k] && out[k] < enough) out[k] = time(cuts[k]);
}

void Candidates::search_times(std::span<const Cuts> cuts, std::vector<double>& out,
                              std::vector<char>& exact) {
  lane_times(cuts, out, exact, is_large());
}

double Candidates::search_time(const Cuts& cuts) {
  if (!is_large()) return time(cuts);
  const CutCosts::Priced priced = price(cuts);
  if (!priced.exact && !costs_.link_all(cuts, program_, durations_.data(), 1)) return kInfinite;
  return program_.makespan(durations_, ends_, priced.tail);
}

template <class Number>
void Candidates::price_lanes(std::span<const Cuts> cuts, Program::Lanes<Number>& lanes, char* exact,
                             char* hopeless, bool link) {
  lanes.resize(program_.lane_rows());
  Number* const durations = lanes.data()->lane.data();
  for (std::size_t k = 0; k < cuts.size(); ++k) {
    const CutCosts::Priced priced = costs_.price(cuts[k], program_, durations + k, Program::kLanes);
    exact[k] = (priced.exact || link) && priced.tail == nullptr;
    hopeless[k] = !priced.exact && link &&
                  !costs_.link_all(cuts[k], program_, durations + k, Program::kLanes);
  }
  program_.complete(durations, Program::kLanes);
}

void Candidates::lane_times(std::span<const Cuts> cuts, std::vector<double>& out,
                            std::vector<char>& exact, bool link) {
  constexpr std::size_t kLanes = Program::kLanes;
  out.resize(cuts.size()), exact.resize(cuts.size());
  double times[kLanes];
  char hopeless[kLanes];
  for (std::size_t first = 0; first < cuts.size(); first += kLanes) {
    const auto some = cuts.subspan(first, std::min(kLanes, cuts.size() - first));
    bool done = costs_.is_narrow();
    if (done) {
      price_lanes(some, narrow_lanes_, &exact[first], hopeless, link);
      done = program_.makespans(narrow_lanes_, times);
    }
    if (!done) {
      price_lanes(some, lanes_, &exact[first], hopeless, link);
      program_.makespans(lanes_, times);
    }
    for (std::size_t k = 0; k < some.size(); ++k)
      out[first + k] = hopeless[k] ? kInfinite : times[k];
  }
  evaluated_ += cuts.size();
}

PathCounts<std::int32_t> Candidates::critical_path(const Cuts& cuts) {
  price(cuts);
  program_.makespan(durations_, ends_);
  return program_.critical_path(durations_, ends_);
}

double Candidates::excess(const Cuts& cuts) const {
  ++weighed_;
  double worst = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::size_t r = 0; r < live_.ranks(); ++r) {
    const double above = peaks_.peak(live_, model_, cuts, r) + above_bound_[r] -
                         static_cast<double>(problem_.memory_limit[r].value);
    worst = std::max(worst, above), sum += std::max(above, 0.0);
  }
  return worst > 0 ? sum : worst;
}

bool Candidates::surely_too_full(const Cuts& cuts) const {
  for (std::size_t r = 0; r < live_.ranks(); ++r)
    if (live_.peak(model_, cuts, r) > static_cast<double>(problem_.memory_limit[r].value))
      return true;
  return false;
}

bool Candidates::keep(const Cuts& cuts, Prices plan, Recomputed recomputed) {
  const auto time = static_cast<double>(plan.estimate.count());
  if (time > best_time_ || (time == best_time_ && cuts >= best_cuts_)) return false;
  best_ =
      priced({spec_, model_.partition(cuts), placement_, std::move(recomputed)}, std::move(plan));
  if (is_large()) best_->rows.reset();  // as schedule_
  best_cuts_ = cuts, best_time_ = time;
  return true;
}

bool Candidates::refuse(const Cuts& cuts, const std::vector<Bytes>& peak_memory) {
  refused_.insert(cuts);
  std::size_t worst = 0;
  for (std::size_t r = 1; r < peak_memory.size(); ++r)
    if (peak_memory[r] - problem_.memory_limit[r] >
        peak_memory[worst] - problem_.memory_limit[worst])
      worst = r;
  note_closest(Infeasible{RankId{worst}, peak_memory[worst], problem_.memory_limit[worst], spec_,
                          model_.partition(cuts)},
               closest_);
  return false;
}

void Candidates::join(Candidates& copy) {
  if (copy.judged_ > 0) {
    above_bound_ = copy.above_bound_;
    above_choice_ = copy.above_choice_, above_stages_ = copy.above_stages_;
  }
  evaluated_ += std::exchange(copy.evaluated_, 0);
  judged_ += std::exchange(copy.judged_, 0);
  weighed_ += std::exchange(copy.weighed_, 0);
  chosen_ += std::exchange(copy.chosen_, 0);
  unsure_ = std::min(unsure_, copy.unsure_);
  refused_.merge(copy.refused_);
  known_.learn(copy.known_);
  note_closest(copy.closest_, closest_);
  if (copy.best_ && std::pair(copy.best_time_, copy.best_cuts_) < std::pair(best_time_, best_cuts_))
    best_ = copy.best_, best_time_ = copy.best_time_, best_cuts_ = copy.best_cuts_;
}

void Candidates::follow(const Candidates& original) {
  evaluated_ = judged_ = weighed_ = chosen_ = 0;
  above_bound_ = original.above_bound_;
  above_choice_ = original.above_choice_, above_stages_ = original.above_stages_;
  refused_ = original.refused_, known_ = original.known_;
  closest_ = original.closest_, unsure_ = original.unsure_;
  best_ = original.best_, best_time_ = original.best_time_, best_cuts_ = original.best_cuts_;
}

bool Candidates::offer(const Cuts& cuts, double time) {
  if (time > best_time_ || (time == best_time_ && cuts >= best_cuts_)) return false;
  if (refused_.contains(cuts)) return false;
  if (block_choice_) {
    const bool kept = recomputation_ && offer_recomputed(cuts);
    return offer_blocks(cuts, time) || kept;
  }
  if (recomputation_) return offer_recomputed(cuts);
  if (refuse_known(cuts)) return false;
  if (!all_.empty()) {  // `time` is without the price
    time = time_with(cuts, &all_);
    if (time > best_time_ || (time == best_time_ && cuts >= best_cuts_)) {
      refused_.insert(cuts);
      return false;
    }
  }
  Prices plan = evaluated(cuts, recomputed({}));
  PFEIFE_CHECK(static_cast<double>(plan.estimate.count()) == time, "the search priced cuts at ",
               time, " ns, the estimator at ", plan.estimate.count());
  if (fits(plan.peak_memory)) return keep(cuts, std::move(plan), recomputed({}));
  if (problem_.recompute == Recompute::None) known_.learn(cuts, plan.costs);
  for (std::size_t r = 0; r < plan.peak_memory.size(); ++r)
    if (plan.peak_memory[r] > problem_.memory_limit[r])
      above_bound_[r] =
          static_cast<double>(plan.peak_memory[r].value) - live_.peak(model_, cuts, r);
  return refuse(cuts, plan.peak_memory);
}

/// Refuses cuts that surely lack no less than others that were judged in full; if some have fitted,
/// those that surely lack anything: nobody asks for the least lack then.
bool Candidates::refuse_known(const Cuts& cuts) {
  if (!closest_ || problem_.recompute != Recompute::None) return false;
  std::vector<double> above(live_.ranks());
  double most = 0;
  for (std::size_t r = 0; r < live_.ranks(); ++r) {
    above[r] = known_.peak(live_, cuts, r).value_or(0) -
               static_cast<double>(problem_.memory_limit[r].value);
    most = std::max(most, above[r]);
  }
  const Bytes least = best_ ? Bytes{1} : closest_->lacking();
  if (most < static_cast<double>(least.value)) return false;
  for (std::size_t r = 0; r < live_.ranks(); ++r)
    if (above[r] > 0)
      above_bound_[r] = above[r] + static_cast<double>(problem_.memory_limit[r].value) -
                        live_.peak(model_, cuts, r);
  refused_.insert(cuts);
  return true;
}

/// Chooses what is recomputed and judges that. Where more is recomputed than every choice must, a
/// better one may exist: unsure_ remembers how good it may be.
bool Candidates::offer_recomputed(const Cuts& cuts) {
  constexpr std::size_t kAllChoices = 6;  // stages
  Recomputation::Choice choice = choose_stages(cuts);
  if (!choice.possible)
    return refuse(cuts, evaluated(cuts, recomputed(std::vector<bool>(stages(), true))).peak_memory);
  const double least = time_with(cuts, &choice.forced);
  if (least > best_time_ || (least == best_time_ && cuts >= best_cuts_)) return false;
  if (stages() <= kAllChoices) return try_all_choices(cuts, choice.forced);
  if (choice.chosen != choice.forced) {
    // The margin may be too careful for these cuts.
    Prices plan = evaluated(cuts, recomputed(choice.forced));
    if (fits(plan.peak_memory)) {
      refused_.insert(cuts);  // nothing better comes of them
      return keep(cuts, std::move(plan), recomputed(choice.forced));
    }
  }
  std::vector<bool>& chosen = choice.chosen;
  while (true) {
    if (const double time = time_with(cuts, &chosen);
        time > best_time_ || (time == best_time_ && cuts >= best_cuts_)) {
      unsure_ = std::min(unsure_, least);
      refused_.insert(cuts);  // with more recomputed it takes no less
      return false;
    }
    Prices plan = evaluated(cuts, recomputed(chosen));
    const bool forced = chosen == choice.forced;
    if (!forced) unsure_ = std::min(unsure_, least);
    if (fits(plan.peak_memory)) {
      if (keep(cuts, std::move(plan), recomputed(chosen))) return true;
      refused_.insert(cuts);
      return false;
    }
    bool more = false;
    for (std::size_t r = 0; r < plan.peak_memory.size(); ++r) {
      if (plan.peak_memory[r] <= problem_.memory_limit[r]) continue;
      above_stages()[r] = static_cast<double>(plan.peak_memory[r].value) -
                          recomputation_->peak(model_, cuts, r, chosen);
      const auto& local = live_.stages(r);
      const auto next = std::ranges::find_if(local, [&](std::size_t s) { return !chosen[s]; });
      if (next != local.end()) chosen[*next] = more = true;
    }
    if (more) continue;
    unsure_ = std::min(unsure_, least);
    return refuse(cuts, plan.peak_memory);
  }
}

bool Candidates::try_all_choices(const Cuts& cuts, const std::vector<bool>& forced) {
  bool kept = false, judged = false, fit = false;
  std::vector<Bytes> last;  // peaks
  for (std::size_t subset = 0; subset < std::size_t{1} << stages(); ++subset) {
    std::vector<bool> tried(stages());
    bool enough = true;
    for (std::size_t s = 0; s < stages(); ++s) {
      tried[s] = (subset >> s & 1U) != 0;
      enough = enough && (tried[s] || !forced[s]);
    }
    if (!enough || !recomputation_->may_fit(model_, cuts, tried)) continue;
    const double time = time_with(cuts, &tried);
    if (time > best_time_ || (time == best_time_ && cuts >= best_cuts_)) continue;
    ++judged_;
    judged = true;
    StageCosts costs = stage_costs_of(cuts, recomputed(tried));
    Schedule lowered = this->lowered(costs);
    if (auto least = peak_memory(with_receives_at_need(lowered), costs, placement_); !fits(least)) {
      last = std::move(least);
      continue;
    }
    Prices plan = in_memory(evaluate_lowered(std::move(costs), std::move(lowered), placement_));
    if (!fits(plan.peak_memory)) {
      last = std::move(plan.peak_memory);
      continue;
    }
    PFEIFE_CHECK(static_cast<double>(plan.estimate.count()) == time, "the search priced cuts at ",
                 time, " ns, the estimator at ", plan.estimate.count());
    fit = true;
    kept = keep(cuts, std::move(plan), recomputed(tried)) || kept;
  }
  if (judged && !fit) return refuse(cuts, last);
  refused_.insert(cuts);  // nothing better comes of them
  return kept;
}

/// Chooses blocks, judges them, and chooses again with what the memory rule said of them, until it
/// says nothing new. A better choice may exist; no faster one than without any.
bool Candidates::offer_blocks(const Cuts& cuts, double time) {
  constexpr std::size_t kAllChoices = 6;  // blocks
  constexpr int kTries = 4;
  if (surely_too_full(cuts))
    return refuse(cuts,
                  evaluated(cuts, recomputed({}, block_choice_->all(model_, cuts))).peak_memory);
  if (const auto all = block_choice_->all(model_, cuts); all.size() <= kAllChoices)
    return try_all_blocks(cuts, all);
  unsure_ = std::min(unsure_, time);
  std::set<std::vector<LayerRange>> judged;
  std::optional<Prices> too_full;
  bool kept = false, fit = false;
  for (int tried = 0; tried < kTries; ++tried) {
    const BlockChoice::Choice choice =
        block_choice_->choose(model_, cuts, costs_.kinds(), above_choice_);
    ++chosen_;
    if (!judged.insert(choice.blocks).second) break;
    if (choice.fits && time_with(cuts, nullptr, &choice.again) >= best_time_) break;
    Prices plan = evaluated(cuts, recomputed({}, choice.blocks));
    for (std::size_t r = 0; r < choice.peak.size(); ++r)
      above_choice_[r] = static_cast<double>(plan.peak_memory[r].value) - choice.peak[r];
    if (fits(plan.peak_memory)) {
      fit = true;
      kept = keep(cuts, std::move(plan), recomputed({}, choice.blocks)) || kept;
    } else {
      too_full = std::move(plan);
      if (!choice.fits) break;
    }
  }
  if (!fit && too_full) return refuse(cuts, too_full->peak_memory);
  refused_.insert(cuts);  // nothing better comes of them
  return kept;
}

bool Candidates::try_all_blocks(const Cuts& cuts, const std::vector<LayerRange>& blocks) {
  bool kept = false, fit = false, judged = false;
  std::optional<Prices> last;
  for (std::size_t subset = 0; subset < std::size_t{1} << blocks.size(); ++subset) {
    std::vector<LayerRange> tried;
    for (std::size_t b = 0; b < blocks.size(); ++b)
      if ((subset >> b & 1U) != 0) tried.push_back(blocks[b]);
    const BlockChoice::Choice choice = block_choice_->of(model_, cuts, costs_.kinds(), tried);
    const double time = time_with(cuts, nullptr, &choice.again);
    if (time > best_time_ || (time == best_time_ && cuts >= best_cuts_)) continue;
    Prices plan = evaluated(cuts, recomputed({}, tried));
    PFEIFE_CHECK(static_cast<double>(plan.estimate.count()) == time, "the search priced cuts at ",
                 time, " ns, the estimator at ", plan.estimate.count());
    judged = true;
    if (fits(plan.peak_memory)) {
      fit = true;
      kept = keep(cuts, std::move(plan), recomputed({}, std::move(tried))) || kept;
    } else {
      last = std::move(plan);
    }
  }
  if (judged && !fit) return refuse(cuts, last->peak_memory);
  refused_.insert(cuts);  // nothing better comes of them
  return kept;
}

}  // namespace pfeife
