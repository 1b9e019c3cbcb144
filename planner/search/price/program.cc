#include "planner/search/price/program.h"

#include <algorithm>
#include <map>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {
constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr std::uint32_t kThere = 0, kUnread = 1;  // slots: always zero; written, never read
}  // namespace

/// Runs the schedule once with unit costs (a sweep over the ranks = a time step) and writes down
/// what it sees.
class ProgramBuilder {
 public:
  ProgramBuilder(const Schedule& schedule, const Placement& placement, Program& program)
      : schedule_(schedule),
        program_(program),
        microbatches_(microbatch_count(schedule)),
        last_(last_forwards(schedule, placement.stages())) {
    const std::size_t stages = placement.stages();
    program.stages_ = stages;
    program.stages_of_rank_.resize(placement.ranks());
    program.last_step_.assign(placement.ranks(), kNone);
    program.last_gradient_.assign(stages, kNone);
    for (const RankId r : placement.rank_of_stage)
      program.rank_of_stage_.push_back(static_cast<std::uint32_t>(r.index()));
    program.sums_begin_ = (program.last_apart_ ? 7 : 6) * stages + 1;
    std::size_t actions = 0;
    for (const auto& row : schedule.rows) actions += row.size();
    program.steps_.reserve(actions);
    program.origins_.reserve(actions);
    for (auto& maker : maker_) maker.assign(stages * microbatches_, kNone);
    for (auto& slot : slot_) slot.assign(stages * microbatches_, kNone);
    for (auto& step : program.step_of_) step.assign(stages * microbatches_, kNone);
  }

  void build() {
    std::vector<std::size_t> at(schedule_.ranks(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      ready_limit_ = static_cast<std::uint32_t>(program_.steps_.size());
      for (std::size_t r = 0; r < at.size(); ++r) {
        const auto& row = schedule_.rows[r];
        while (at[r] < row.size() && std::holds_alternative<std::monostate>(row[at[r]])) ++at[r];
        if (at[r] == row.size() || !ready(row[at[r]])) continue;
        add(row[at[r]++], static_cast<std::uint32_t>(r));
        moved = true;
      }
    }
    for (std::size_t r = 0; r < at.size(); ++r)
      PFEIFE_CHECK(at[r] == schedule_.rows[r].size(), "a deadlocked order has no program");
    order_optimizers();
  }

 private:
  std::size_t key(const Action& a) const {
    return a.stage.index() * microbatches_ + a.microbatch->index();
  }
  bool crosses(std::size_t s, std::size_t t) const {
    return program_.rank_of_stage_[s] != program_.rank_of_stage_[t];
  }
  /// The neighbour whose value the action waits for, if it is on another rank.
  std::optional<std::size_t> source(const Action& a) const {
    const std::size_t s = a.stage.index();
    if (a.op == Op::Forward && s > 0 && crosses(s - 1, s)) return s - 1;
    const bool backward = makes_input_gradient(a.op);
    if (backward && s + 1 < program_.stages_ && crosses(s, s + 1)) return s + 1;
    return std::nullopt;
  }
  static std::size_t way(const Action& a) { return a.op == Op::Forward ? 0 : 1; }
  std::size_t source_key(const Action& a, std::size_t from) const {
    return from * microbatches_ + a.microbatch->index();
  }

  /// Everything it waits for was made in an earlier sweep.
  bool ready(const Cell& cell) const {
    bool all = true;
    for_each_action(cell, [&](const Action& a) {
      if (const auto from = source(a))
        all = all && maker_[way(a)][source_key(a, *from)] < ready_limit_;
    });
    return all;
  }

  std::uint32_t duration_of(const Cell& cell) {
    std::vector<std::uint32_t> parts;
    for_each_action(cell, [&](const Action& a) {
      const std::size_t s = a.stage.index();
      const auto add_part = [&](Work w) {
        parts.push_back(static_cast<std::uint32_t>(program_.work(w, s)));
      };
      if (a.op == Op::Forward) add_part(Work::Forward);
      if (makes_input_gradient(a.op)) {
        const bool last = a.microbatch == last_[s];
        parts.push_back(static_cast<std::uint32_t>(last ? program_.last_input(s)
                                                        : program_.work(Work::BackwardInput, s)));
      }
      if (makes_weight_gradient(a.op)) add_part(Work::BackwardWeight);
    });
    if (parts.size() == 1) return parts[0];
    const auto [known, added] =
        sum_of_.try_emplace(parts, static_cast<std::uint32_t>(program_.durations()));
    if (added) program_.sums_.push_back(parts);
    return known->second;
  }

  std::uint32_t take_slot() {
    if (!free_.empty()) {
      const std::uint32_t slot = free_.back();
      free_.pop_back();
      return slot;
    }
    return static_cast<std::uint32_t>(program_.slots_++);
  }

  void add(const Cell& cell, std::uint32_t rank) {
    std::vector<const Action*> actions;
    for_each_action(cell, [&](const Action& a) { actions.push_back(&a); });
    struct Input {
      std::uint32_t slot, producer;
    };
    std::vector<Input> inputs;
    std::vector<const Action*> outputs;
    for (const Action* a : actions) {
      if (const auto from = source(*a)) {
        const std::size_t k = source_key(*a, *from);
        inputs.push_back({slot_[way(*a)][k], maker_[way(*a)][k]});
        free_.push_back(slot_[way(*a)][k]);
      }
      if (a->op != Op::BackwardWeight) outputs.push_back(a);
    }
    const auto zero = static_cast<std::uint32_t>(6 * program_.stages_);
    // An action with several inputs or outputs is preceded and followed by steps of no duration.
    for (std::size_t i = 0; i + 1 < inputs.size(); ++i)
      push({rank, zero, inputs[i].slot, zero, kUnread}, inputs[i].producer, true);
    Program::Step main{rank, duration_of(cell), kThere, zero, kUnread};
    std::uint32_t producer = kNone;
    if (!inputs.empty()) main.in = inputs.back().slot, producer = inputs.back().producer;
    const std::uint32_t step = push(main, producer, false);
    bool first = true;
    for (const Action* a : outputs) {
      const std::size_t s = a->stage.index();
      const bool onward = a->op == Op::Forward;
      std::uint32_t sender = step;
      if (onward ? s + 1 < program_.stages_ && crosses(s, s + 1) : s > 0 && crosses(s - 1, s)) {
        if (!first) sender = push({rank, zero, kThere, zero, kUnread}, kNone, true);
        first = false;
        const std::uint32_t slot = take_slot();
        program_.steps_[sender].out = slot;
        program_.steps_[sender].latency = static_cast<std::uint32_t>(
            onward ? program_.forward_latency(s + 1) : program_.backward_latency(s));
        slot_[way(*a)][key(*a)] = slot;
      }
      maker_[way(*a)][key(*a)] = sender;
      program_.step_of_[way(*a)][key(*a)] = step;
    }
    for (const Action* a : actions)
      if (makes_weight_gradient(a->op))
        program_.last_gradient_[a->stage.index()] = program_.last_step_[rank];
    ++cells_;
  }

  std::uint32_t push(const Program::Step& step, std::uint32_t producer, bool join) {
    const auto index = static_cast<std::uint32_t>(program_.steps_.size());
    program_.steps_.push_back(step);
    program_.origins_.push_back({program_.last_step_[step.rank], producer, cells_});
    program_.last_step_[step.rank] = index;
    program_.joins_ += join;
    return index;
  }

  void order_optimizers() {
    std::vector<std::size_t> stages(program_.stages_);
    for (std::size_t s = 0; s < stages.size(); ++s) stages[s] = s;
    std::ranges::stable_sort(stages, {}, [&](std::size_t s) { return program_.last_gradient_[s]; });
    for (const std::size_t s : stages)  // forward only: there are no optimizer steps
      if (program_.last_gradient_[s] != kNone)
        program_.stages_of_rank_[program_.rank_of_stage_[s]].push_back(s);
  }

  const Schedule& schedule_;
  Program& program_;
  std::size_t microbatches_;
  std::vector<MicrobatchId> last_;  // [stage] that it runs forward
  std::uint32_t ready_limit_ = 0, cells_ = 0;
  std::array<std::vector<std::uint32_t>, 2> maker_, slot_;  // [way][stage * microbatches + m]
  std::vector<std::uint32_t> free_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> sum_of_;
};

Program::Program(const Schedule& compute_only, const Placement& placement, bool last_apart)
    : last_apart_(last_apart) {
  ProgramBuilder(compute_only, placement, *this).build();
  count_longest();
}

/// The longest path where one kind of duration is 1 and all others are 0 has most of that kind.
void Program::count_longest() {
  std::vector<double> ends;
  const auto most = [&](std::size_t begin, std::size_t end) {
    std::vector<double> ones(durations(), 0.0);
    std::fill(ones.begin() + static_cast<std::ptrdiff_t>(begin),
              ones.begin() + static_cast<std::ptrdiff_t>(end), 1.0);
    for (std::size_t s = 0; s < stages_; ++s)
      ones[last_input(s)] = ones[work(Work::BackwardInput, s)];
    complete(ones.data(), 1);
    return makespan(ones, ends);
  };
  for (std::size_t w = 0; w < kWorks; ++w) most_works_[w] = most(w * stages_, (w + 1) * stages_);
  most_transfers_ = most(4 * stages_, 6 * stages_);
}

template <class Number>
void Program::complete(Number* durations, std::size_t stride) const {
  for (std::size_t k = 0; k < stride; ++k) durations[6 * stages_ * stride + k] = 0;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    Number* const sum = durations + (sums_begin_ + i) * stride;
    for (std::size_t k = 0; k < stride; ++k) sum[k] = 0;
    for (const std::uint32_t part : sums_[i])
      for (std::size_t k = 0; k < stride; ++k) sum[k] += durations[part * stride + k];
  }
}
template void Program::complete(double*, std::size_t) const;
template void Program::complete(Narrow*, std::size_t) const;

double Program::rank_end(std::size_t rank, std::span<const double> durations,
                         const std::vector<double>& ends) const {
  double end = last_step_[rank] == kNone ? 0 : ends[last_step_[rank]];
  for (const std::size_t s : stages_of_rank_[rank]) end += durations[work(Work::Optimizer, s)];
  return end;
}

std::vector<Program::SkipWait> Program::skip_waits(std::span<const SkipTransfer> skips) const {
  std::vector<SkipWait> found;
  const std::size_t microbatches = step_of_[0].size() / stages_;
  const auto add = [&](std::size_t way, std::size_t from, std::size_t to, double latency) {
    if (latency == kNever || step_of_[way][to * microbatches] == kNone) return;
    for (std::size_t m = 0; m < microbatches; ++m)
      found.push_back(
          {step_of_[way][to * microbatches + m], step_of_[way][from * microbatches + m], latency});
  };
  for (const SkipTransfer& skip : skips) {
    add(0, skip.from, skip.to, skip.forward);
    add(1, skip.to, skip.from, skip.backward);
  }
  std::ranges::sort(found, {}, &SkipWait::step);
  return found;
}

double Program::makespan(std::span<const double> durations, std::vector<double>& ends,
                         const ReductionTail* tail, std::span<const SkipTransfer> skips) const {
  thread_local std::vector<double> state;
  state.assign(ranks() + slots_, 0.0);
  ends.resize(steps_.size());
  double* const rank = state.data();
  double* const slot = rank + ranks();
  const double* const d = durations.data();
  double* const end = ends.data();
  std::size_t at = 0;
  const auto run_to = [&](std::size_t last) {
    for (; at < last; ++at) {
      const Step& step = steps_[at];
      const double t = std::max(rank[step.rank], slot[step.in]) + d[step.duration];
      rank[step.rank] = t;
      slot[step.out] = t + d[step.latency];
      end[at] = t;
    }
  };
  for (const SkipWait& wait : skip_waits(skips)) {
    run_to(wait.step);
    double& free = rank[steps_[wait.step].rank];
    free = std::max(free, end[wait.source] + wait.latency);
  }
  run_to(steps_.size());
  if (tail != nullptr) return tail_end(durations, ends, *tail);
  double longest = 0;
  for (std::size_t r = 0; r < ranks(); ++r)
    longest = std::max(longest, rank_end(r, durations, ends));
  return longest;
}

double Program::tail_end(std::span<const double> durations, const std::vector<double>& ends,
                         const ReductionTail& tail) const {
  std::vector<double> reduced(stages_, -1);
  double longest = 0;
  for (const ReductionTail::Group& group : tail.groups) {
    double end = 0;
    for (const std::size_t s : group.stages) end = std::max(end, ends[last_gradient_[s]]);
    for (const std::size_t s : group.stages) reduced[s] = end + group.time;
    longest = std::max(longest, end + group.time);
  }
  for (std::size_t r = 0; r < ranks(); ++r) {
    double end = last_step_[r] == kNone ? 0 : ends[last_step_[r]];
    if (!tail.replicas.empty()) end = std::max(end, replicas_end(r, ends, tail));
    if (tail.behind_all) {
      longest = std::max(longest, end);
      continue;
    }
    for (const bool tied : {false, true})
      for (const std::size_t s : stages_of_rank_[r])
        if ((reduced[s] >= 0) == tied)
          end = std::max(end, reduced[s]) + durations[work(Work::Optimizer, s)];
    longest = std::max(longest, end);
  }
  return longest + tail.behind_all.value_or(0);
}

double Program::replicas_end(std::size_t rank, const std::vector<double>& ends,
                             const ReductionTail& tail) const {
  double end = kNever;  // of the link's work so far
  for (const std::size_t s : stages_of_rank_[rank])
    end =
        std::max(end + tail.replicas[s].beside, ends[last_gradient_[s]]) + tail.replicas[s].behind;
  return end;
}

template <class Over, class Visit>
void Program::walk(std::size_t rank, const Over& over, const Visit& visit) const {
  for (std::uint32_t at = last_step_[rank]; at != kNone;) {
    const bool crosses = origins_[at].producer != kNone && over(at);
    visit(at, crosses);
    at = crosses ? origins_[at].producer : origins_[at].rank_before;
  }
}

template <class Over>
PathCounts<std::int32_t> Program::counts(std::size_t rank, const Over& over) const {
  PathCounts<std::int32_t> counts(stages_);
  for (const std::size_t s : stages_of_rank_[rank])
    ++counts.work[static_cast<std::size_t>(Work::Optimizer)][s];
  const auto count = [&](std::uint32_t index) {
    if (index < 4 * stages_) ++counts.work[index / stages_][index % stages_];
    if (index > 6 * stages_)
      ++counts.work[static_cast<std::size_t>(Work::BackwardInput)][index - 6 * stages_ - 1];
  };
  walk(rank, over, [&](std::uint32_t at, bool crosses) {
    const Step& step = steps_[at];
    if (step.duration >= sums_begin_)
      for (const std::uint32_t part : sums_[step.duration - sums_begin_]) count(part);
    else
      count(step.duration);
    if (!crosses) return;
    const std::uint32_t latency = steps_[origins_[at].producer].latency;
    if (latency < 5 * stages_)
      ++counts.forward[latency - 4 * stages_];
    else if (latency < 6 * stages_)
      ++counts.backward[latency - 5 * stages_];
  });
  return counts;
}

template <class Over>
CertifiedPath Program::turns(std::size_t rank, const Over& over) const {
  CertifiedPath path{static_cast<std::uint32_t>(rank), ""};
  std::size_t steps = stages_of_rank_[rank].size();  // from the last optimizer step on
  walk(rank, over, [&](std::uint32_t at, bool crosses) {
    if (crosses) {
      path.turns.append(steps, 'r');
      path.turns += steps_[origins_[at].producer].latency < 5 * stages_ ? "fd" : "bd";
      steps = 0;
    } else if (const std::uint32_t before = origins_[at].rank_before; before != kNone) {
      steps += origins_[before].cell != origins_[at].cell;
    }
  });
  path.turns.append(steps, 'r');
  return path;
}

std::size_t Program::last_rank(std::span<const double> durations,
                               const std::vector<double>& ends) const {
  std::size_t last = 0;
  for (std::size_t r = 1; r < ranks(); ++r)
    if (rank_end(r, durations, ends) > rank_end(last, durations, ends)) last = r;
  return last;
}
bool Program::waits(std::uint32_t at, std::span<const double> durations,
                    const std::vector<double>& ends) const {
  const auto& [before, producer, cell] = origins_[at];
  return ends[producer] + durations[steps_[producer].latency] >
         (before == kNone ? 0 : ends[before]);
}

PathCounts<std::int32_t> Program::critical_path(std::span<const double> durations,
                                                const std::vector<double>& ends) const {
  return counts(last_rank(durations, ends),
                [&](std::uint32_t at) { return waits(at, durations, ends); });
}
CertifiedPath Program::critical_turns(std::span<const double> durations,
                                      const std::vector<double>& ends) const {
  return turns(last_rank(durations, ends),
               [&](std::uint32_t at) { return waits(at, durations, ends); });
}
PathCounts<std::int32_t> Program::rank_path(std::size_t rank) const {
  return counts(rank, [](std::uint32_t) { return false; });
}
CertifiedPath Program::rank_turns(std::size_t rank) const {
  return turns(rank, [](std::uint32_t) { return false; });
}

}  // namespace pfeife
