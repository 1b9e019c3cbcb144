#include "tests/plots/example_traces.h"

#include <map>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

StageId stage(std::size_t s) { return StageId{s}; }
MicrobatchId microbatch(std::size_t m) { return MicrobatchId{m}; }
RankId rank(std::size_t r) { return RankId{r}; }

/// The k-th forward of rank r: microbatches in groups of D, each group through all stages of the
/// rank.
Action kth(const Example& e, std::size_t r, std::size_t k, bool backwards) {
  const std::size_t group = e.ranks * e.stages_per_rank;
  std::size_t loop = e.stages_per_rank == 1 ? 0 : k % group / e.ranks;
  const std::size_t m = e.stages_per_rank == 1 ? k : k / group * e.ranks + k % e.ranks;
  if (backwards) loop = e.stages_per_rank - 1 - loop;
  const StageId s = stage(loop * e.ranks + r);
  return backwards ? backward(s, microbatch(m)) : forward(s, microbatch(m));
}

std::vector<Action> row(const Example& e, std::size_t r) {
  const std::size_t total = e.microbatches * e.stages_per_rank;
  const std::size_t ahead = e.stages_per_rank == 1
                                ? e.ranks - 1 - r
                                : (e.ranks - 1 - r) * 2 + (e.stages_per_rank - 1) * e.ranks;
  std::vector<Action> actions;
  std::size_t f = 0, b = 0;
  while (f < std::min(ahead, total)) actions.push_back(kth(e, r, f++, false));
  while (b < total) {
    if (f < total) actions.push_back(kth(e, r, f++, false));
    const Action full = kth(e, r, b++, true);
    if (e.split) {
      actions.push_back(backward_input(full.stage, *full.microbatch));
      actions.push_back(backward_weight(full.stage, *full.microbatch));
    } else {
      actions.push_back(full);
    }
  }
  return actions;
}

class Runner {
 public:
  explicit Runner(const Example& e) : e_(e) {
    trace_.source = e.source;
    trace_.ranks = e.ranks;
  }

  Trace run() {
    std::vector<std::vector<Action>> rows;
    for (std::size_t r = 0; r < e_.ranks; ++r) rows.push_back(row(e_, r));
    std::vector<std::size_t> next(e_.ranks, 0);
    last_.assign(e_.ranks, std::nullopt);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < e_.ranks; ++r)
        while (next[r] < rows[r].size() && ready(rows[r][next[r]])) {
          compute(r, rows[r][next[r]++]);
          moved = true;
        }
    }
    for (std::size_t r = 0; r < e_.ranks; ++r) {
      PFEIFE_CHECK(next[r] == rows[r].size(), "stuck on rank ", r);
      add(TaskKind::Optimizer, r, r, stage_action(Op::OptimizerStep, stage(r)), last_[r],
          e_.optimizer);
      memory(r);
    }
    return trace_;
  }

 private:
  bool first_stage(const Action& a) const { return a.op == Op::Forward && a.stage.value == 0; }
  bool last_stage(const Action& a) const {
    return a.op != Op::Forward && a.stage.index() + 1 == e_.ranks * e_.stages_per_rank;
  }
  /// What must have happened before, besides what the rank itself did.
  std::optional<std::size_t> input(const Action& a) const {
    if (a.op == Op::BackwardWeight || first_stage(a) || last_stage(a)) return std::nullopt;
    const auto at = arrived_.find({a.op == Op::Forward, a.stage, *a.microbatch});
    return at == arrived_.end() ? std::nullopt : std::optional(at->second);
  }
  bool ready(const Action& a) const {
    return a.op == Op::BackwardWeight || first_stage(a) || last_stage(a) || input(a).has_value();
  }
  Nanoseconds duration(const Action& a) const {
    return a.op == Op::Forward ? e_.forward : a.op == Op::Backward ? e_.backward : e_.backward / 2;
  }

  std::size_t add(TaskKind kind, std::size_t r, std::size_t peer, const Action& a,
                  std::optional<std::size_t> cause, Nanoseconds length) {
    Event event;
    event.kind = kind;
    event.rank = rank(r);
    event.peer = rank(peer);
    event.cell = a;
    event.waited_for = cause;
    event.posted = event.start = cause ? trace_.events[*cause].end : Nanoseconds{0};
    event.end = event.start + length;
    trace_.events.push_back(event);
    return trace_.events.size() - 1;
  }

  void compute(std::size_t r, const Action& a) {
    std::optional<std::size_t> cause = last_[r];
    if (const auto in = input(a))
      if (!cause || trace_.events[*in].end > trace_.events[*cause].end) cause = in;
    const std::size_t done = add(TaskKind::Compute, r, r, a, cause, duration(a));
    last_[r] = done;
    const std::size_t stages = e_.ranks * e_.stages_per_rank;
    if (a.op == Op::Forward && a.stage.index() + 1 < stages)
      hand_over(done, a, a.stage.index() + 1, Direction::Forward);
    if (makes_input_gradient(a.op) && a.stage.index() > 0)
      hand_over(done, a, a.stage.index() - 1, Direction::Backward);
  }
  void hand_over(std::size_t done, const Action& a, std::size_t to, Direction way) {
    const std::size_t r = a.stage.index() % e_.ranks, peer = to % e_.ranks;
    std::size_t from = done;
    if (peer != r)
      from = add(TaskKind::Transfer, r, peer, send(a.stage, stage(to), *a.microbatch, way), done,
                 e_.transfer);
    arrived_[{way == Direction::Forward, stage(to), *a.microbatch}] = from;
  }

  void memory(std::size_t r) {
    std::vector<MemorySample> samples{{Nanoseconds{0}, e_.held}};
    for (const Event& event : trace_.events) {  // of one rank: in order of time
      if (event.kind != TaskKind::Compute || event.rank != rank(r)) continue;
      const Op op = std::get<Action>(event.cell).op;
      if (op == Op::Forward) samples.push_back({event.start, samples.back().bytes + e_.saved});
      if (makes_weight_gradient(op))
        samples.push_back({event.end, samples.back().bytes - e_.saved});
    }
    trace_.memory.push_back(samples);
  }

  Example e_;
  Trace trace_;
  std::vector<std::optional<std::size_t>> last_;
  std::map<std::tuple<bool, StageId, MicrobatchId>, std::size_t> arrived_;
};

}  // namespace

Trace example_trace(const Example& example) { return Runner(example).run(); }

}  // namespace pfeife
