#include "tests/support/interpreter.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

namespace pfeife::testing {
namespace {

/// A value (or gradient) for one reader: made by stage `from`, read by stage `to`.
using Parcel = std::tuple<StageId, StageId, MicrobatchId, Direction>;

struct Running {
  Stand item;
  Nanoseconds end{0};
};

class Machine {
 public:
  Machine(const Schedule& schedule, const StageCosts& costs, const Placement& placement,
          const Semantics& semantics, Nanoseconds launch)
      : schedule_(schedule),
        costs_(costs),
        placement_(placement),
        semantics_(semantics),
        launch_(launch),
        counter_(schedule.ranks(), 0),
        busy_(schedule.ranks(), false) {
    for (std::size_t r = 0; r < schedule.ranks(); ++r)
      for (std::size_t p = 0; p < schedule.rows[r].size(); ++p) issue({r, p});
    for (const auto& [group, parties] : reductions_)
      for (const Stand& holder : holders(parties)) holds_.insert(holder);
    for (std::size_t r = 0; r < schedule.ranks(); ++r) skip_what_does_not_hold(r);
  }

  Outcome run() {
    while (true) {
      while (start_something() || end_something()) {
      }
      std::optional<Nanoseconds> next;
      for (const Running& r : running_) next = std::min(next.value_or(r.end), r.end);
      if (!next) break;
      now_ = *next;
    }
    for (const Stand& item : all_)
      if (!outcome_.ran.contains(item)) outcome_.blocked.insert(item);
    return std::move(outcome_);
  }

 private:
  struct Ends {
    std::optional<Stand> send, recv;
  };

  const Cell& cell(const Stand& s) const { return schedule_.rows[s.rank][s.position]; }
  static bool computes(const Cell& c) {
    const auto* a = std::get_if<Action>(&c);
    return std::holds_alternative<Overlap>(c) ||
           (a && (is_compute(a->op) || a->op == Op::OptimizerStep));
  }
  const Action* copy_at(const Stand& at) const {
    const auto* a = std::get_if<Action>(&cell(at));
    return a && is_copy(a->op) ? a : nullptr;
  }
  bool holds_rank(const Stand& at) const {
    if (computes(cell(at))) return true;
    const auto* a = std::get_if<Action>(&cell(at));
    if (!a || !semantics_.blocking) return false;
    return is_transfer(a->op) || (a->op == Op::ReduceGrad && holds_.contains(at));
  }
  /// Where a blocking reduction holds its ranks: the last REDUCE_GRAD of each.
  static std::vector<Stand> holders(const std::vector<Stand>& parties) {
    std::map<std::size_t, Stand> last;
    for (const Stand& party : parties) last[party.rank] = party;
    std::vector<Stand> found;
    for (const auto& [rank, party] : last) found.push_back(party);
    return found;
  }
  Parcel parcel_of(const Action& a) const {
    const StageId from = a.op == Op::Send ? a.stage : *a.peer,
                  to = a.op == Op::Send ? *a.peer : a.stage;
    return {from, to, *a.microbatch, a.direction};
  }

  // --- issuing: everything finds its queue before time starts
  void issue(Stand at) {
    if (computes(cell(at))) all_.insert(at);
    if (const Action* copy = copy_at(at)) {
      all_.insert(at);
      copied_[{copy->stage, *copy->microbatch}].insert(copy->op);
      engines_[{at.rank, copy->op == Op::Reload && !costs_.one_copy_engine}].push_back(at);
    }
    for_each_action(cell(at), [&](const Action& a) {
      if (a.op == Op::Backward || a.op == Op::BackwardWeight)
        gradients_[a.stage].insert(
            {a.stage, *a.microbatch, a.op == Op::Backward ? Op::BackwardInput : a.op});
    });
    const auto* action = std::get_if<Action>(&cell(at));
    if (!action) return;
    const Action& a = *action;
    if (is_transfer(a.op)) {
      Ends& ends = posted_[parcel_of(a)];
      (a.op == Op::Send ? ends.send : ends.recv) = at;
      if (a.op == Op::Send) all_.insert(at);
      if (!semantics_.blocking && semantics_.queues != Queues::None)
        queue_of(a, at.rank).push_back(parcel_of(a));
    }
    if (a.op == Op::ReduceGrad && !tie(a.stage).empty()) {
      auto& parties = reductions_[tie(a.stage)];
      if (parties.empty()) all_.insert(at);
      parties.push_back(at);
    }
  }
  /// Who waits behind whom: (rank, other rank, outgoing), as coarse as the setting says.
  std::vector<Parcel>& queue_of(const Action& a, std::size_t rank) {
    const std::size_t other = placement_.rank(*a.peer).index();
    switch (semantics_.queues) {
      case Queues::Edge:
        return queues_[{rank, other, a.op == Op::Send}];
      case Queues::Pair:
        return queues_[{rank, other, false}];
      default:
        return queues_[{rank, 0, false}];
    }
  }
  /// All stages that share parameters with this one, directly or through others; empty if none.
  std::set<StageId> tie(StageId stage) const {
    std::set<StageId> group;
    for (bool grown = true; grown;) {
      grown = false;
      for (const StageReduction& r : costs_.reductions) {
        const bool touches = std::ranges::any_of(
            r.stages, [&](StageId s) { return group.empty() ? s == stage : group.contains(s); });
        for (const StageId s : r.stages)
          if (touches) grown |= group.insert(s).second;
      }
    }
    return group;
  }

  // --- time
  bool start_something() {
    bool any = false;
    for (std::size_t r = 0; r < schedule_.ranks(); ++r) any |= start_cell(r);
    for (const auto& [parcel, ends] : posted_) any |= start_transfer(parcel, ends);
    for (const auto& [group, parties] : reductions_) any |= start_reduction(group, parties);
    for (const auto& [engine, queue] : engines_)
      if (!queue.empty()) any |= start_copy(queue.front());
    return any;
  }
  bool end_something() {
    const auto over =
        std::ranges::find_if(running_, [&](const Running& r) { return r.end <= now_; });
    if (over == running_.end()) return false;
    const Stand item = over->item;
    running_.erase(over);
    finish(item);
    return true;
  }
  void start(Stand item, Nanoseconds duration) {
    outcome_.ran[item] = {now_, now_ + duration};
    running_.push_back({item, now_ + duration});
  }

  // --- computing
  void skip_what_does_not_hold(std::size_t r) {
    while (counter_[r] < schedule_.rows[r].size() && !holds_rank({r, counter_[r]})) ++counter_[r];
  }
  bool start_cell(std::size_t r) {
    if (busy_[r] || counter_[r] == schedule_.rows[r].size()) return false;
    const Stand at{r, counter_[r]};
    const auto* action = std::get_if<Action>(&cell(at));
    if (!computes(cell(at))) return false;  // blocking: its own start_... looks for it
    bool ready = true;
    Nanoseconds duration{0};
    for_each_action(cell(at), [&](const Action& a) {
      ready = ready && has_inputs(a, r);
      duration += time_of(a);
    });
    if (!ready) return false;
    if (!action)
      duration =
          Nanoseconds{std::llround(static_cast<double>(duration.count()) * costs_.overlap_factor)};
    busy_[r] = true;
    start(at, launch_ + duration);
    return true;
  }
  Nanoseconds time_of(const Action& a) const {
    const StageCost& cost = costs_.stages[a.stage.index()];
    if (a.op == Op::Forward) return cost.forward;
    if (a.op == Op::BackwardInput) return cost.backward_input;
    if (a.op == Op::BackwardWeight) return cost.backward_weight;
    if (a.op == Op::Backward) return cost.backward_input + cost.backward_weight;
    return cost.optimizer;
  }
  bool has_inputs(const Action& a, std::size_t rank) const {
    if (a.op == Op::OptimizerStep) {
      const auto at = reductions_.find(tie(a.stage));
      return at == reductions_.end() || reduced_.contains(at->first);
    }
    const MicrobatchId m = *a.microbatch;
    if (a.op == Op::BackwardWeight) return computed_.contains({a.stage, m, Op::BackwardInput});
    if (a.op != Op::Forward && !computed_.contains({a.stage, m, Op::Forward})) return false;
    const auto copies = copied_.find({a.stage, m});
    if (makes_input_gradient(a.op) && copies != copied_.end() &&
        copies->second.contains(Op::Reload) && !computed_.contains({a.stage, m, Op::Reload}))
      return false;
    return std::ranges::all_of(costs_.pairs, [&](const StagePair& pair) {
      if (a.op == Op::Forward)
        return pair.to != a.stage ||
               here_.contains({rank, {pair.from, pair.to, m, Direction::Forward}});
      return pair.from != a.stage || !pair.has_gradient ||
             here_.contains({rank, {pair.to, pair.from, m, Direction::Backward}});
    });
  }

  void finish(const Stand& item) {
    const auto* action = std::get_if<Action>(&cell(item));
    if (action && action->op == Op::Send) return finish_transfer(parcel_of(*action));
    if (action && is_copy(action->op)) {
      computed_.insert({action->stage, *action->microbatch, action->op});
      for (auto& [engine, queue] : engines_) std::erase(queue, item);
      return;
    }
    if (action && action->op == Op::ReduceGrad) {
      reduced_.insert(tie(action->stage));
      if (semantics_.blocking)
        for (const Stand& holder : holders(reductions_.at(tie(action->stage)))) {
          busy_[holder.rank] = false;
          advance(holder.rank);
        }
      return;
    }
    for_each_action(cell(item), [&](const Action& a) { deliver(a); });
    busy_[item.rank] = false;
    advance(item.rank);
  }
  void advance(std::size_t r) {
    ++counter_[r];
    skip_what_does_not_hold(r);
  }
  /// What the action made lies on its own rank for every reader; readers elsewhere get it by
  /// transfer.
  void deliver(const Action& a) {
    if (a.op == Op::OptimizerStep) return;
    const bool gradient = makes_input_gradient(a.op);
    computed_.insert({a.stage, *a.microbatch, gradient ? Op::BackwardInput : a.op});
    const std::size_t rank = placement_.rank(a.stage).index();
    for (const StagePair& pair : costs_.pairs) {
      if (a.op == Op::Forward && pair.from == a.stage)
        here_.insert({rank, {pair.from, pair.to, *a.microbatch, Direction::Forward}});
      if (gradient && pair.to == a.stage)
        here_.insert({rank, {pair.to, pair.from, *a.microbatch, Direction::Backward}});
    }
  }

  // --- transfers
  bool start_transfer(const Parcel& parcel, const Ends& ends) {
    const auto& [from, to, m, direction] = parcel;
    if (outcome_.ran.contains(*ends.send)) return false;
    if (!computed_.contains(
            {from, m, direction == Direction::Forward ? Op::Forward : Op::BackwardInput}))
      return false;
    if (semantics_.blocking) {
      for (const Stand& end : {*ends.send, *ends.recv})
        if (counter_[end.rank] != end.position || busy_[end.rank]) return false;
      busy_[ends.send->rank] = busy_[ends.recv->rank] = true;
    }
    for (const auto& [name, queue] : queues_)
      if (std::ranges::find(queue, parcel) != queue.end() && queue.front() != parcel) return false;
    const bool onward = direction == Direction::Forward;
    const StagePair* pair = find_pair(costs_, onward ? from : to, onward ? to : from);
    start(*ends.send, onward ? pair->forward_time : pair->backward_time);
    return true;
  }
  void finish_transfer(const Parcel& parcel) {
    const Ends& ends = posted_.at(parcel);
    here_.insert({ends.recv->rank, parcel});
    for (auto& [name, queue] : queues_) std::erase(queue, parcel);
    if (!semantics_.blocking) return;
    for (const Stand& end : {*ends.send, *ends.recv}) {
      busy_[end.rank] = false;
      advance(end.rank);
    }
  }

  // --- copies: once the rank is past all that holds it before them
  bool start_copy(const Stand& at) {
    if (outcome_.ran.contains(at) || counter_[at.rank] < at.position) return false;
    const Action& copy = *copy_at(at);
    const Op needed = copy.op == Op::Offload ? Op::Forward : Op::Offload;
    if (!computed_.contains({copy.stage, *copy.microbatch, needed})) return false;
    const StageCost& cost = costs_.stages[copy.stage.index()];
    start(at, copy.op == Op::Offload ? cost.offload : cost.reload);
    return true;
  }

  // --- reductions
  bool start_reduction(const std::set<StageId>& group, const std::vector<Stand>& parties) {
    if (outcome_.ran.contains(parties.front())) return false;
    for (const Stand& party : parties)
      for (const auto& gradient : gradients_[std::get<Action>(cell(party)).stage])
        if (!computed_.contains(gradient)) return false;
    if (semantics_.blocking) {
      for (const Stand& holder : holders(parties))
        if (counter_[holder.rank] != holder.position || busy_[holder.rank]) return false;
      for (const Stand& holder : holders(parties)) busy_[holder.rank] = true;
    }
    Nanoseconds duration{0};
    for (const StageReduction& r : costs_.reductions)
      if (group.contains(r.stages.front())) duration += r.time;
    start(parties.front(), duration);
    return true;
  }

  const Schedule& schedule_;
  const StageCosts& costs_;
  const Placement& placement_;
  const Semantics semantics_;
  const Nanoseconds launch_;

  Nanoseconds now_{0};
  std::vector<std::size_t> counter_;  // [rank] the cell it is at
  std::vector<bool> busy_;            // [rank] that cell runs
  std::map<Parcel, Ends> posted_;
  std::map<std::tuple<std::size_t, std::size_t, bool>, std::vector<Parcel>> queues_;
  std::map<std::set<StageId>, std::vector<Stand>> reductions_;
  std::set<Stand> holds_;  // REDUCE_GRADs that hold their rank if they block
  std::map<StageId, std::set<std::tuple<StageId, MicrobatchId, Op>>> gradients_;
  std::set<std::set<StageId>> reduced_;
  std::map<std::pair<StageId, MicrobatchId>, std::set<Op>> copied_;
  std::map<std::pair<std::size_t, bool>, std::vector<Stand>> engines_;  // (rank, back)
  std::set<std::tuple<StageId, MicrobatchId, Op>> computed_;
  std::set<std::pair<std::size_t, Parcel>> here_;  // rank, parcel
  std::vector<Running> running_;
  std::set<Stand> all_;
  Outcome outcome_;
};

}  // namespace

Outcome interpret(const Schedule& lowered, const StageCosts& costs, const Placement& placement,
                  const Semantics& semantics, Nanoseconds launch) {
  return Machine(lowered, costs, placement, semantics, launch).run();
}

}  // namespace pfeife::testing
