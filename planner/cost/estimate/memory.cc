#include "planner/cost/estimate/memory.h"

#include <algorithm>
#include <map>

#include "planner/cost/estimate/host_copies.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// Walks one row and keeps the books of the lifetimes rule.
class Ledger {
 public:
  Ledger(const StageCosts& costs, const Placement& placement, RankId rank, std::size_t microbatches,
         std::vector<bool> splits, std::vector<MicrobatchId> last, const HostCopies* copies)
      : costs_(costs),
        placement_(placement),
        rank_(rank),
        microbatches_(microbatches),
        splits_(std::move(splits)),
        last_(std::move(last)),
        copies_(copies),
        own_bytes_(saved_alone(costs.stages, costs.values, placement)),
        own_of_last_(saved_alone(costs.last.stages, costs.last.values, placement)) {
    for (const std::vector<StageCosts::Slice>* parts : {&costs.slices, &costs.kinds})
      for (const StageCosts::Slice& part : *parts)
        own_of_part_[&part] = saved_alone(part.stages, part.values, placement);
    leaving_.resize(costs.stages.size());
    entering_.resize(costs.stages.size());
    for (std::size_t v = 0; v < costs.values.size(); ++v) {
      const StageValue& value = costs.values[v];
      leaving_[value.from.index()].push_back(v);
      for (std::size_t i = 0; i < value.to.size(); ++i)
        entering_[value.to[i].index()].push_back({v, i, receives_alone(value, i, placement)});
    }
    holders_.assign(costs.values.size() * microbatches, 0);
    for (std::size_t s = 0; s < costs.stages.size(); ++s)
      if (placement.rank_of_stage[s] == rank) now_ += costs.stages[s].fixed();
  }

  Bytes now() const { return now_; }

  /// Books one cell; returns the highest level while it runs.
  Bytes book(const Cell& cell) {
    Bytes highest = now_;
    for_each_action(cell, [&](const Action& action) { highest = std::max(highest, book(action)); });
    return std::max(highest, now_);
  }

 private:
  struct Entry {
    std::size_t value, index;  // costs_.values[value], its receiver number
    bool alone;                // what is saved of it is among the stage's own bytes
  };

  /// The action's microbatch is one that StageCosts::last speaks of.
  bool is_last(const Action& action) const {
    return !own_of_last_.empty() && action.microbatch == last_[action.stage.index()];
  }
  const StageCost& stage_of(const Action& action) const {
    return stage_cost(costs_, action, is_last(action));
  }
  const std::vector<StageValue>& values_of(const Action& action) const {
    return is_last(action) ? costs_.last.values : values_of(*action.microbatch);
  }
  const std::vector<StageValue>& values_of(MicrobatchId m) const {
    const StageCosts::Slice* part = part_of(costs_, m);
    return part ? part->values : costs_.values;
  }
  Bytes own_bytes_of(const Action& action) const {
    const StageCosts::Slice* part = part_of(costs_, *action.microbatch);
    const std::vector<Bytes>& of_stages = part              ? own_of_part_.at(part)
                                          : is_last(action) ? own_of_last_
                                                            : own_bytes_;
    const Bytes own = of_stages[action.stage.index()];
    return copies_ ? std::max(own - copies_->offloaded(action), Bytes{0}) : own;
  }

  Bytes book(const Action& action) {
    switch (action.op) {
      case Op::Forward:
        return book_forward(action);
      case Op::Backward:
      case Op::BackwardInput:
        return book_backward(action);
      case Op::BackwardWeight:
        return book_weight(action);
      case Op::Send:
        return book_send(action);
      case Op::Recv:
        return book_recv(action);
      case Op::HeadShare:
        now_ += costs_.stages[action.stage.index()].head_saved;
        return now_ + costs_.stages[action.stage.index()].head_temporary;
      case Op::HeadRest:
        return book_head_rest(costs_.stages[action.stage.index()]);
      default:
        return now_;
    }
  }

  void hold(std::size_t value, MicrobatchId m) {
    if (holders_[value * microbatches_ + m.index()]++ == 0) now_ += values_of(m)[value].bytes;
  }
  void release(std::size_t value, MicrobatchId m) {
    int& holders = holders_[value * microbatches_ + m.index()];
    PFEIFE_CHECK(holders > 0, "value ", value, " released twice");
    if (--holders == 0) now_ -= values_of(m)[value].bytes;
  }
  bool local(StageId stage) const { return placement_.rank(stage) == rank_; }

  Bytes book_forward(const Action& action) {
    const std::size_t s = action.stage.index();
    const MicrobatchId m = *action.microbatch;
    const std::vector<StageValue>& values = values_of(action);
    const auto is_own = [&](const Entry& entry) {
      return entry.alone && values[entry.value].saved_by_receiver[entry.index];
    };
    for (const Entry& entry : entering_[s]) {
      if (is_own(entry))
        release(entry.value, m);
      else if (values[entry.value].saved_by_receiver[entry.index])
        hold(entry.value, m);
    }
    now_ += own_bytes_of(action);
    for (const std::size_t v : leaving_[s]) {
      if (values[v].saved_by_sender) hold(v, m);
      for (std::size_t i = 0; i < values[v].to.size(); ++i) hold(v, m);
    }
    const Bytes highest = now_ + stage_of(action).temporary.forward;
    for (const Entry& entry : entering_[s])
      if (!is_own(entry)) release(entry.value, m);  // receive buffer, or hand-over on this rank
    return highest;
  }

  Bytes book_backward(const Action& action) {
    const std::size_t s = action.stage.index();
    const MicrobatchId m = *action.microbatch;
    const StageCost& stage = stage_of(action);
    const std::vector<StageValue>& values = values_of(action);
    if (m.slices > 1 && m.slice() + 1 == m.slices)
      for (std::int32_t k = 0; k + 1 < m.slices; ++k) now_ += key_gradients(k, s);
    Bytes highest = now_ + within_backward(action);
    for (const Entry& entry : entering_[s]) now_ += values[entry.value].gradient_bytes;
    now_ -= own_bytes_of(action);
    if (m.slice() + 1 < m.slices) now_ -= key_gradients(m.slice(), s);
    for (const Entry& entry : entering_[s])
      if (values[entry.value].saved_by_receiver[entry.index] && !entry.alone)
        release(entry.value, m);
    for (const std::size_t v : leaving_[s]) {
      if (values[v].saved_by_sender) release(v, m);
      for (std::size_t i = 0; i < values[v].to.size(); ++i) now_ -= values[v].gradient_bytes;
    }
    if (action.op == Op::BackwardInput) now_ += stage.weight_saved;
    if (action.op == Op::Backward && splits_[s])  // I, then W
      highest = std::max(highest, now_ + stage.weight_saved + stage.temporary.weight);
    return highest;
  }
  /// Gradients of keys and values of slice k: the backward of the last slice makes those of all
  /// slices before it, and each is read by its own.
  Bytes key_gradients(std::int32_t k, std::size_t stage) const {
    return costs_.slices[static_cast<std::size_t>(k)].key_gradients[stage];
  }
  Bytes within_backward(const Action& action) const {
    const StageCost& stage = stage_of(action);
    Bytes most = action.op == Op::Backward ? stage.temporary.backward : stage.temporary.input;
    if (splits_[action.stage.index()]) most = std::max(most, stage.temporary.input);
    return std::max(most, stage.forward_again) + stage.recomputed;
  }

  Bytes book_head_rest(const StageCost& stage) {
    const Bytes highest = now_ + stage.head_temporary;
    now_ -= stage.head_saved;
    return highest;
  }

  Bytes book_weight(const Action& action) {
    const StageCost& stage = stage_of(action);
    const Bytes highest = now_ + stage.temporary.weight;
    now_ -= stage.weight_saved;
    return highest;
  }

  Bytes book_send(const Action& action) {
    const StageId peer = *action.peer;
    if (action.direction == Direction::Forward) {
      for (const std::size_t v : leaving_[action.stage.index()])
        if (std::ranges::binary_search(costs_.values[v].to, peer)) release(v, *action.microbatch);
    } else {
      for (const Entry& entry : entering_[action.stage.index()])
        if (costs_.values[entry.value].from == peer)
          now_ -= values_of(*action.microbatch)[entry.value].gradient_bytes;
    }
    return now_;
  }

  Bytes book_recv(const Action& action) {
    const StageId peer = *action.peer;
    if (action.direction == Direction::Forward) {
      for (const Entry& entry : entering_[action.stage.index()])
        if (costs_.values[entry.value].from == peer) hold(entry.value, *action.microbatch);
    } else {
      for (const std::size_t v : leaving_[action.stage.index()])
        if (std::ranges::binary_search(costs_.values[v].to, peer))
          now_ += values_of(*action.microbatch)[v].gradient_bytes;
    }
    return now_;
  }

  const StageCosts& costs_;
  const Placement& placement_;
  RankId rank_;
  std::size_t microbatches_;
  std::vector<bool> splits_;                    // [stage] its backward is in two parts
  std::vector<MicrobatchId> last_;              // [stage] that it runs forward
  const HostCopies* copies_;                    // what they are of is counted there
  std::vector<Bytes> own_bytes_, own_of_last_;  // [stage]
  std::map<const StageCosts::Slice*, std::vector<Bytes>> own_of_part_;  // [stage]
  std::vector<std::vector<std::size_t>> leaving_;                       // [stage] values
  std::vector<std::vector<Entry>> entering_;                            // [stage] values
  std::vector<int> holders_;  // [value * microbatches + m]
  Bytes now_{0};
};

/// [stage] the row has I of it.
std::vector<bool> split_in(const std::vector<Cell>& row, std::size_t stages) {
  std::vector<bool> split(stages, false);
  for (const Cell& cell : row)
    for_each_action(cell, [&](const Action& action) {
      if (action.op == Op::BackwardInput) split[action.stage.index()] = true;
    });
  return split;
}

MemoryCurve curve_of(const Schedule& lowered, RankId rank, const StageCosts& costs,
                     const Placement& placement, const HostCopies* copies) {
  const std::vector<Cell>& row = lowered.rows[rank.index()];
  const std::size_t stages = costs.stages.size();
  Ledger ledger(costs, placement, rank, microbatch_count(row), split_in(row, stages),
                last_forwards(row, stages), copies);
  MemoryCurve curve;
  curve.fixed = ledger.now();
  curve.steps.reserve(row.size());
  for (std::size_t p = 0; p < row.size(); ++p) {
    MemoryStep step{ledger.book(row[p]), ledger.now()};
    if (copies) {
      const HostCopies::Window& at = copies->windows[p];
      step.during += copies->device.most(at.start, at.end);
      step.after += copies->device.most(at.end, at.next);
    }
    curve.steps.push_back(step);
  }
  return curve;
}

}  // namespace

Bytes MemoryCurve::peak() const {
  Bytes highest = fixed;
  for (const MemoryStep& step : steps) highest = std::max({highest, step.during, step.after});
  return highest;
}

MemoryCurve memory(const Schedule& lowered, RankId rank, const StageCosts& costs,
                   const Placement& placement) {
  const std::vector<HostCopies> copies = host_copies(lowered, costs, placement);
  return curve_of(lowered, rank, costs, placement,
                  copies.empty() ? nullptr : &copies[rank.index()]);
}

std::vector<Bytes> peak_memory(const Schedule& lowered, const StageCosts& costs,
                               const Placement& placement) {
  const std::vector<HostCopies> copies = host_copies(lowered, costs, placement);
  std::vector<Bytes> peaks;
  for (std::size_t r = 0; r < lowered.ranks(); ++r)
    peaks.push_back(
        curve_of(lowered, RankId{r}, costs, placement, copies.empty() ? nullptr : &copies[r])
            .peak());
  return peaks;
}

std::vector<Bytes> host_peak_memory(const Schedule& lowered, const StageCosts& costs,
                                    const Placement& placement) {
  std::vector<Bytes> peaks;
  for (const HostCopies& rank : host_copies(lowered, costs, placement))
    peaks.push_back(rank.host.most());
  return peaks;
}

std::vector<Bytes> memory_of_hosts(const Schedule& lowered, const StageCosts& costs,
                                   const Placement& placement, const Cluster& cluster) {
  const std::vector<Bytes> away = host_peak_memory(lowered, costs, placement);
  if (away.empty()) return {};
  const std::size_t size =
      cluster.devices_per_node > 0 ? cluster.devices_per_node : cluster.devices();
  std::vector<Bytes> hosts((cluster.devices() + size - 1) / size, Bytes{0});
  for (std::size_t r = 0; r < away.size(); ++r)
    hosts[placement.device(RankId{r}).index() / size] += away[r];
  return hosts;
}

void add_memory(Trace& trace, const DependencyGraph& graph, const Schedule& lowered,
                const StageCosts& costs, const Placement& placement) {
  trace.memory.assign(lowered.ranks(), {});
  std::vector<std::vector<std::size_t>> task_at(lowered.ranks());
  for (std::size_t r = 0; r < lowered.ranks(); ++r)
    task_at[r].assign(lowered.rows[r].size(), graph.size());
  for (std::size_t t = 0; t < graph.size(); ++t) {
    const Task& task = graph.tasks[t];
    if (task.kind == TaskKind::Compute || task.kind == TaskKind::Optimizer)
      task_at[task.rank.index()][task.position] = t;
  }
  const std::vector<HostCopies> copies = host_copies(lowered, costs, placement);
  for (std::size_t r = 0; r < lowered.ranks(); ++r) {
    const MemoryCurve curve =
        curve_of(lowered, RankId{r}, costs, placement, copies.empty() ? nullptr : &copies[r]);
    std::vector<MemorySample>& samples = trace.memory[r];
    const auto sample = [&](Nanoseconds time, Bytes bytes) {
      if (samples.empty() || samples.back().bytes != bytes) samples.push_back({time, bytes});
    };
    Nanoseconds time{0};
    sample(time, curve.fixed);
    for (std::size_t p = 0; p < curve.steps.size(); ++p) {
      if (task_at[r][p] != graph.size()) {
        const Event& event = trace.events[task_at[r][p]];
        sample(event.start, curve.steps[p].during);
        time = event.end;
      }
      sample(time, curve.steps[p].after);
    }
  }
}

}  // namespace pfeife
