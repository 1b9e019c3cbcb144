// The steps of the joint search that bound schedules.
#include <bit>
#include <map>

#include "planner/schedules/families.h"
#include "planner/search/bound/any_order.h"
#include "planner/search/bound/stage_bound.h"
#include "planner/search/joint/joint_search.h"
#include "planner/search/price/numbers.h"

namespace pfeife {
namespace {
constexpr std::size_t kSchedulesARound = 4;  ///< of branch and bound
constexpr std::size_t kPartsARound = 8;      ///< of their trees, all together
constexpr double kLow = 0.1;                 ///< of the way from the lowest bound to the best plan
constexpr double kOfLeader = 0.25;           ///< of the time of all trees
constexpr double kFirstBounds = 2e8;         ///< ns for the first bounds
constexpr double kBounding = 4e7;            ///< ns for those that follow, per effort
constexpr double kRound = 2e7;               ///< ns for a part of a tree
constexpr double kNodeOverhead = 50000;      ///< ns, beside the master and the minima

double spent(const Contender& c) {
  if (!c.proof) return 0;
  const double search =
      c.candidates->is_slow() ? c.candidates->work() : c.candidates->work_on_reserved();
  return search + c.proof->work() + static_cast<double>(c.proof->nodes()) * kNodeOverhead;
}

/// About how long a node takes, ns: the root is like several.
double node_cost(const Contender& c) {
  constexpr double kRoot = 8;
  return spent(c) / (static_cast<double>(c.proof->nodes()) + kRoot);
}

std::size_t nodes_a_round(const Contender& c) {
  return static_cast<std::size_t>(std::clamp(kRound / node_cost(c), 1.0, 400.0));
}

}  // namespace

void JointSearch::bound_all() {
  const double target = best_time();
  const auto by_start = [](const Contender& c) { return c.start.score; };
  const auto bound_one = [&](Contender& c) { bound(c, target); };
  if (model_.all_linked()) raise_floors(target);
  std::vector<std::size_t> order = ranked(by_start);
  order.resize(std::min(order.size(), kSideBySide));
  visit(order, bound_one);
  if (linked_only(contenders_)) raise_floors(target);
  visit_within(kFirstBounds, ranked(by_start), bound_one);
  bound_unproven();
}

void JointSearch::bound_again() {
  if (begun_ == 0)
    bound_all();
  else
    bound_more();
}

/// Bounds the schedules that the budget has left out so far.
void JointSearch::bound_more() {
  std::vector<std::size_t> order = ranked([](const Contender& c) { return c.start.score; });
  std::erase_if(order, [&](std::size_t i) { return contenders_[i].proof != nullptr; });
  visit_within(static_cast<double>(span_) * kBounding, order,
               [&, target = best_time()](Contender& c) { bound(c, target); });
  descend_more();
}

/// Schedules that the budget has left without a proof: what no order of their stages goes below.
void JointSearch::bound_unproven() {
  std::map<std::pair<std::vector<RankId>, std::size_t>, double> least;
  for (const std::size_t i : ranked([](const Contender&) { return 0; })) {
    Contender& c = contenders_[i];
    if (c.proof) continue;
    const ScheduleSpec& spec = problem_.schedules[i];
    const auto [at, added] = least.try_emplace(
        std::pair{c.candidates->placement().rank_of_stage, spec.microbatches}, 0.0);
    if (added)
      at->second =
          AnyOrder(model_, problem_, spec, cut_class(contenders_, at->first.first)).bound();
    c.floor = std::max(c.floor, at->second);
  }
}

/// What no order of those goes below that are built for the costs. Waits for a plan to compare
/// with.
void JointSearch::bound_any_order() {
  if (!any_order_.empty() || best_time() == kInfinite) return;
  for (const ScheduleSpec& spec : to_build_)
    if (spec.stages() <= static_cast<std::size_t>(model_.last()))
      any_order_.emplace_back(model_, problem_, spec,
                              cut_class(contenders_, placement_for(spec).rank_of_stage));
}

/// What holds for linked stages and needs no tree: where all are, and once the class that is
/// covered has no others.
void JointSearch::raise_floors(double target) {
  visit(ranked([](const Contender&) { return 0; }), [&](Contender& c) {
    const std::vector<CutCosts::Latency> none(c.candidates->stages(), {0, 0});
    c.certified = stage_bound(model_, c.candidates->costs(), c.candidates->schedule(), none,
                              std::min(target, Candidates::kTooFull));
    c.floor = std::max(c.floor, c.certified);
  });
}

void JointSearch::bound(Contender& c, double target) {
  if (!c.proof)
    c.proof = std::make_unique<BranchAndBound>(
        *c.candidates, BranchAndBound::Settings{.record = options_.certificate});
  c.proof->bound_root(target);
}

/// Until about as many ms of one core are spent on branch and bound as the spans have effort, this
/// one included.
void JointSearch::branch() {
  const std::size_t until = std::min(begun_ + span_, effort_);
  const double first = branched_, most = static_cast<double>(until) * 1e6;
  while (branched_ < most) {
    const std::vector<std::size_t> order = promising();
    if (order.empty()) break;
    for (const std::size_t i : order) {
      Contender& c = contenders_[i];
      branched_ -= spent(c), c.branched -= spent(c);
    }
    branch_round(order);
    for (const std::size_t i : order) {
      Contender& c = contenders_[i];
      const double took = spent(c) + node_cost(c);
      branched_ += took, c.branched += took;
    }
    reached(std::clamp((branched_ - first) / (most - first), 0.0, 1.0));
    report();
  }
}

/// Which trees grow next: those with the lowest bounds, which hold back the bound of all, and the
/// one that the best plan is of, as long as it has not had its share.
std::vector<std::size_t> JointSearch::promising() const {
  std::vector<std::size_t> order = ranked([](const Contender& c) { return c.bound(); });
  if (order.empty()) return order;
  const double best = best_time(), least = contenders_[order.front()].bound();
  const double low = best < kInfinite ? least + kLow * (best - least) : kInfinite;
  const auto leader = std::ranges::find_if(
      order, [&](std::size_t i) { return contenders_[i].candidates->best_time() == best; });
  std::vector<std::size_t> chosen;
  for (const std::size_t i : order)
    if (chosen.size() < kSchedulesARound && contenders_[i].bound() <= low) chosen.push_back(i);
  if (best < kInfinite && leader != order.end() &&
      contenders_[*leader].branched < kOfLeader * branched_ &&
      std::ranges::find(chosen, *leader) == chosen.end()) {
    chosen.resize(std::min(chosen.size(), kSchedulesARound - 1));
    chosen.push_back(*leader);
  }
  return chosen;
}

/// Every tree in a few parts, so that several threads have work even if one schedule is left.
void JointSearch::branch_round(const std::vector<std::size_t>& order) {
  const double target = best_time();
  std::vector<double> before;
  std::vector<std::pair<std::size_t, BranchAndBound*>> parts;  // of which contender
  for (const std::size_t i : order) {
    before.push_back(contenders_[i].candidates->best_time());
    if (BranchAndBound* const proof = contenders_[i].proof.get())
      for (BranchAndBound* part : proof->deal(kPartsARound / order.size()))
        parts.emplace_back(i, part);
    else
      parts.emplace_back(i, nullptr);
  }
  std::vector<std::size_t> nodes;
  for (const auto& [i, proof] : parts)
    nodes.push_back(proof == nullptr ? 0 : nodes_a_round(contenders_[i]));
  parallel_for(parts.size(), options_.threads, [&](std::size_t k) {
    const auto [i, proof] = parts[k];
    if (proof == nullptr) return bound(contenders_[i], target);
    if (proof == contenders_[i].proof.get()) proof->strengthen_root(target);
    proof->run(nodes[k], target, kRound);
  });
  parallel_for(order.size(), options_.threads, [&](std::size_t k) {
    Contender& c = contenders_[order[k]];
    c.proof->join();
    if (before[k] == kInfinite && !c.proof->nearest().empty() &&
        std::has_single_bit(++c.rounds_without_plan))
      c.descend_and_offer(c.proof->nearest());
    if (c.candidates->best_time() < before[k]) c.descend_and_offer(c.candidates->best_cuts());
  });
}

}  // namespace pfeife
