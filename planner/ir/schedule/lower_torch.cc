// SEND and RECV where torch.distributed.pipelining (2.11, _add_send_recv) puts them, extended to
// skips.
//
// Ranks are visited in order, again and again; a visit takes the rank's next cell if its inputs are
// there, else passes. F of s is ready if every value it needs was received here or made here, I and
// B likewise with gradients, anything else always. After an action whose value goes elsewhere, SEND
// is appended here and RECV at once to the receiver's row. That is a projection of one global
// order, too, but RECVs stand where the producer was, not where the value is needed.
#include "planner/ir/schedule/lowering.h"

namespace pfeife::lowering {
namespace {

class TorchPlacement {
 public:
  TorchPlacement(const Schedule& schedule, const Context& context, bool reduce)
      : schedule_(schedule), context_(context), next_(schedule.ranks(), 0) {
    if (reduce) reductions_.emplace(schedule, context);
    result_.rows.resize(schedule.ranks());
    for (auto& computed : computed_)
      computed.assign(context.stages.stages * context.microbatches, false);
  }

  Schedule run() {
    std::size_t unfinished = 0;
    for (const auto& row : schedule_.rows) unfinished += !row.empty();
    while (unfinished > 0) {
      bool progress = false;
      for (std::size_t r = 0; r < schedule_.ranks(); ++r) {
        if (next_[r] == schedule_.rows[r].size() || missing(schedule_.rows[r][next_[r]])) continue;
        visit(r);
        unfinished -= next_[r] == schedule_.rows[r].size();
        progress = true;
      }
      if (!progress) report();
    }
    return std::move(result_);
  }

 private:
  std::size_t key(StageId s, const Action& a) const {
    return s.index() * context_.microbatches + a.microbatch->index();
  }

  /// The stage whose value (F) or gradient (B, I) the cell still lacks. A value is here as soon as
  /// it is made: locally by rank order, remotely because its RECV is placed at that moment.
  std::optional<Action> missing(const Cell& cell) const {
    std::optional<Action> lacking;
    for_each_action(cell, [&](const Action& a) {
      if (lacking) return;
      for_each_message_read(a, context_.stages, context_.edges,
                            [&](std::uint32_t, StageId source, Direction direction) {
                              if (!computed_[way(direction)][key(source, a)])
                                lacking = maker(source, *a.microbatch, direction);
                            });
    });
    return lacking;
  }

  void visit(std::size_t r) {
    const Cell& cell = schedule_.rows[r][next_[r]++];
    if (std::holds_alternative<std::monostate>(cell))
      return;  // an idle cell costs the visit and is gone
    result_.rows[r].push_back(cell);
    for_each_action(cell, [&](const Action& a) { hand_on(a); });
  }

  void hand_on(const Action& a) {
    if (const auto passed = operation(a.op).passes) computed_[way(*passed)][key(a.stage, a)] = true;
    for_each_message_made(a, context_.stages, context_.edges,
                          [&](std::uint32_t e, StageId to, Direction direction) {
                            if (!context_.crosses(context_.stages.edges[e])) return;
                            result_.rows[context_.rank(a.stage).index()].emplace_back(
                                send(a.stage, to, *a.microbatch, direction));
                            result_.rows[context_.rank(to).index()].emplace_back(
                                recv(to, a.stage, *a.microbatch, direction));
                          });
    if (!reductions_) return;
    if (const auto* stages = reductions_->completed_by(a))
      for (const StageId s : *stages)
        result_.rows[context_.rank(s).index()].emplace_back(stage_action(Op::ReduceGrad, s));
  }
  static std::size_t way(Direction direction) { return direction == Direction::Forward ? 0 : 1; }

  [[noreturn]] void report() const {
    std::vector<std::string> waiting;
    for (std::size_t r = 0; r < schedule_.ranks(); ++r) {
      if (next_[r] == schedule_.rows[r].size()) continue;
      const Cell& cell = schedule_.rows[r][next_[r]];
      waiting.push_back("rank " + std::to_string(r) + " waits at " + to_string(cell) + " for " +
                        to_string(*missing(cell)));
    }
    throw_cyclic(waiting);
  }

  const Schedule& schedule_;
  const Context& context_;
  Schedule result_;
  std::vector<std::size_t> next_;  // [rank]
  std::vector<bool> computed_[2];  // values, gradients: [stage * microbatches + microbatch]
  std::optional<TiedReductions> reductions_;
};

}  // namespace

Schedule add_transfers_torch(const Schedule& schedule, const Context& context, bool reduce) {
  return TorchPlacement(schedule, context, reduce).run();
}

}  // namespace pfeife::lowering
