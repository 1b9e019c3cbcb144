#include "planner/ir/lower.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "planner/ir/error.h"

namespace pfeife {
namespace {

/// A contention-free run of a compute-only schedule: when each cell starts and ends, in an order in
/// which it could run.
class FreeRun {
 public:
  struct Ran {
    std::uint32_t rank, position;
    Nanoseconds start, end;
  };

  FreeRun(const Schedule& schedule, const StageCosts& costs, const Placement& placement)
      : schedule_(schedule),
        costs_(costs),
        placement_(placement),
        microbatches_(microbatch_count(schedule)) {
    before_.resize(costs.stages.size());
    after_.resize(costs.stages.size());
    for (std::size_t p = 0; p < costs.pairs.size(); ++p) {
      before_[costs.pairs[p].to.index()].push_back(p);
      if (costs.pairs[p].gradient_bytes > Bytes{0})
        after_[costs.pairs[p].from.index()].push_back(p);
    }
    done_.assign(2 * costs.stages.size() * microbatches_, kNever);
    waiting_.assign(done_.size(), {});
  }

  /// Every cell that is not empty, in a topological order. Errors: ConfigError if some can never
  /// run.
  std::vector<Ran> run() {
    std::vector<std::uint32_t> ready(schedule_.ranks());
    std::iota(ready.begin(), ready.end(), 0U);
    next_.assign(schedule_.ranks(), 0);
    free_.assign(schedule_.ranks(), Nanoseconds{0});
    for (std::size_t i = 0; i < ready.size(); ++i) advance(ready[i], ready);
    for (std::uint32_t r = 0; r < schedule_.ranks(); ++r)
      if (next_[r] < schedule_.rows[r].size()) refuse();
    return std::move(ran_);
  }

 private:
  static constexpr Nanoseconds kNever = Nanoseconds::min();

  // Two keys a stage and microbatch: its forward and its (input) backward.
  std::size_t key(bool backward, StageId stage, MicrobatchId m) const {
    return (2 * stage.index() + (backward ? 1 : 0)) * microbatches_ + m.index();
  }

  /// Runs cells of `rank` until one has to wait; ranks that it wakes are appended to `ready`.
  void advance(std::uint32_t rank, std::vector<std::uint32_t>& ready) {
    const std::vector<Cell>& row = schedule_.rows[rank];
    for (; next_[rank] < row.size(); ++next_[rank]) {
      const Cell& cell = row[next_[rank]];
      if (std::holds_alternative<std::monostate>(cell)) continue;
      Nanoseconds start = free_[rank];
      std::size_t missing = done_.size();
      for_each_action(cell, [&](const Action& action) { await(action, start, missing); });
      if (missing != done_.size()) {
        waiting_[missing].push_back(rank);
        return;
      }
      const Nanoseconds end = start + duration(cell);
      ran_.push_back({rank, next_[rank], start, end});
      free_[rank] = end;
      for_each_action(cell, [&](const Action& action) {
        if (action.op == Op::BackwardWeight) return;
        const std::size_t made = key(action.op != Op::Forward, action.stage, *action.microbatch);
        done_[made] = end;
        ready.insert(ready.end(), waiting_[made].begin(), waiting_[made].end());
        waiting_[made].clear();
      });
    }
  }

  void await(const Action& action, Nanoseconds& start, std::size_t& missing) const {
    const MicrobatchId m = *action.microbatch;
    const auto need = [&](std::size_t wanted, Nanoseconds delay) {
      if (done_[wanted] == kNever)
        missing = wanted;
      else
        start = std::max(start, done_[wanted] + delay);
    };
    if (action.op == Op::Forward) {
      for (const std::size_t p : before_[action.stage.index()])
        need(key(false, costs_.pairs[p].from, m), costs_.pairs[p].forward_time);
      return;
    }
    need(key(action.op == Op::BackwardWeight, action.stage, m), Nanoseconds{0});  // own I, or own F
    if (action.op == Op::BackwardWeight) return;
    for (const std::size_t p : after_[action.stage.index()])
      need(key(true, costs_.pairs[p].to, m), costs_.pairs[p].backward_time);
  }

  Nanoseconds duration(const Cell& cell) const {
    Nanoseconds sum{0};
    std::size_t parts = 0;
    for_each_action(cell, [&](const Action& action) {
      const StageCost& stage = costs_.stages[action.stage.index()];
      sum += action.op == Op::Forward         ? stage.forward
             : action.op == Op::Backward      ? stage.backward()
             : action.op == Op::BackwardInput ? stage.backward_input
                                              : stage.backward_weight;
      ++parts;
    });
    return parts > 1
               ? Nanoseconds{std::llround(static_cast<double>(sum.count()) * costs_.overlap_factor)}
               : sum;
  }

  [[noreturn]] void refuse() const {
    std::string waiting;
    for (std::uint32_t r = 0; r < schedule_.ranks(); ++r)
      if (next_[r] < schedule_.rows[r].size())
        waiting += (waiting.empty() ? "" : ", ") +
                   stream_all("rank ", r, " waits at ", to_string(schedule_.rows[r][next_[r]]));
    throw ConfigError({}, "this order can never run, its actions wait for one another: " + waiting);
  }

  const Schedule& schedule_;
  const StageCosts& costs_;
  const Placement& placement_;
  std::size_t microbatches_;
  std::vector<std::vector<std::size_t>> before_, after_;  // [stage] pairs
  std::vector<Nanoseconds> done_;                         // [key]
  std::vector<std::vector<std::uint32_t>> waiting_;       // [key] ranks
  std::vector<std::uint32_t> next_;                       // [rank]
  std::vector<Nanoseconds> free_;                         // [rank]
  std::vector<Ran> ran_;
};

/// Ready order. Every cell has the key (start, number in the run) and every transfer (end of its
/// source, number of its source, after it): sorted by key, all of them form one sequence in which
/// each comes after all it waits for, since starts never precede the ends they wait for and numbers
/// grow along dependencies. A row is that sequence seen from one rank. Whatever the queues, and
/// with blocking SEND and RECV too, the first unfinished item of the sequence can always run:
/// everything before it in any row or queue is before it in the sequence. So there is no deadlock.
class ReadyOrder {
 public:
  ReadyOrder(const Schedule& schedule, const StageCosts& costs, const Placement& placement)
      : schedule_(schedule), costs_(costs), placement_(placement) {
    const std::size_t stages = costs.stages.size();
    onward_.resize(stages);
    back_.resize(stages);
    for (const StagePair& pair : costs.pairs) {
      if (placement.rank(pair.from) == placement.rank(pair.to)) continue;
      onward_[pair.from.index()].push_back(pair.to);
      if (pair.gradient_bytes > Bytes{0}) back_[pair.to.index()].push_back(pair.from);
    }
  }

  Schedule place() {
    const std::vector<FreeRun::Ran> ran = FreeRun(schedule_, costs_, placement_).run();
    struct Item {
      Nanoseconds time;
      std::uint32_t source;    // number in `ran`
      std::uint32_t transfer;  // 0: the cell itself, else 1 + index into `transfers`
    };
    std::vector<Item> items;
    std::vector<Action> transfers;
    items.reserve(ran.size() * 2);
    for (std::uint32_t i = 0; i < ran.size(); ++i) {
      items.push_back({ran[i].start, i, 0});
      for_each_action(schedule_.rows[ran[i].rank][ran[i].position], [&](const Action& action) {
        if (action.op == Op::BackwardWeight) return;
        const bool onward = action.op == Op::Forward;
        for (const StageId to : (onward ? onward_ : back_)[action.stage.index()]) {
          transfers.push_back(send(action.stage, to, *action.microbatch,
                                   onward ? Direction::Forward : Direction::Backward));
          items.push_back({ran[i].end, i, static_cast<std::uint32_t>(transfers.size())});
        }
      });
    }
    std::ranges::sort(items, {}, [](const Item& item) {
      return std::tuple{item.time, item.source, item.transfer};
    });

    Schedule lowered;
    lowered.rows.resize(schedule_.ranks());
    for (const Item& item : items) {
      const FreeRun::Ran& source = ran[item.source];
      if (item.transfer == 0) {
        lowered.rows[source.rank].push_back(schedule_.rows[source.rank][source.position]);
        continue;
      }
      const Action& sent = transfers[item.transfer - 1];
      lowered.rows[source.rank].emplace_back(sent);
      lowered.rows[placement_.rank(*sent.peer).index()].emplace_back(
          recv(*sent.peer, sent.stage, *sent.microbatch, sent.direction));
    }
    return lowered;
  }

 private:
  const Schedule& schedule_;
  const StageCosts& costs_;
  const Placement& placement_;
  std::vector<std::vector<StageId>> onward_,
      back_;  // [stage] stages on other ranks that get its value, its gradient
};

/// Adds the reductions of tied stages, each after its stage's last backward, and the optimizer
/// steps, stage by stage in the order in which they finish.
std::vector<Cell> finish(const std::vector<Cell>& row, const std::vector<bool>& tied,
                         const LoweringOptions& options) {
  std::vector<std::size_t> last(tied.size(), row.size());
  for (std::size_t p = 0; p < row.size(); ++p)
    for_each_action(row[p], [&](const Action& action) {
      if (is_compute(action.op) && action.op != Op::Forward) last[action.stage.index()] = p;
    });
  std::vector<Cell> out;
  std::vector<StageId> finished;
  for (std::size_t p = 0; p < row.size(); ++p) {
    out.push_back(row[p]);
    for_each_action(row[p], [&](const Action& action) {
      if (!is_compute(action.op) || last[action.stage.index()] != p) return;
      finished.push_back(action.stage);
      if (options.reduce_grad && tied[action.stage.index()])
        out.emplace_back(stage_action(Op::ReduceGrad, action.stage));
    });
  }
  if (options.optimizer_step)
    for (const StageId stage : finished) out.emplace_back(stage_action(Op::OptimizerStep, stage));
  return out;
}

}  // namespace

Schedule lower(const Schedule& compute_only, const StageCosts& costs, const Placement& placement,
               const LoweringOptions& options) {
  PFEIFE_CHECK(options.transfers == TransferOrder::Ready && !options.unshard && !options.keep_idle);
  Schedule lowered = ReadyOrder(compute_only, costs, placement).place();
  std::vector<bool> tied(costs.stages.size(), false);
  for (const StageReduction& reduction : costs.reductions)
    for (const StageId stage : reduction.stages) tied[stage.index()] = true;
  for (std::vector<Cell>& row : lowered.rows) row = finish(row, tied, options);
  return lowered;
}

}  // namespace pfeife
