// A plain event loop over compute-only rows whose ranks share the output layer, written apart from
// the dependency graph: for tests. Times in ns; messages and collectives hold no rank.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// When the last action ends; none if the rows hang. One stage a rank, B in one piece.
inline std::optional<std::int64_t> plain_loop(const Schedule& schedule, const StageCosts& costs) {
  const std::size_t ranks = schedule.ranks(), last = ranks - 1;
  std::map<std::tuple<Op, std::size_t, MicrobatchId>, std::int64_t> end;
  const auto ended = [&](Op op, std::size_t stage, MicrobatchId m) -> std::optional<std::int64_t> {
    const auto at = end.find({op, stage, m});
    return at == end.end() ? std::nullopt : std::optional(at->second);
  };
  /// The last of all ranks, and what their collective takes.
  const auto joined = [&](Op op, MicrobatchId m, Nanoseconds time) -> std::optional<std::int64_t> {
    std::int64_t latest = 0;
    for (std::size_t s = 0; s < ranks; ++s) {
      const auto done = ended(op, s, m);
      if (!done) return std::nullopt;
      latest = std::max(latest, *done);
    }
    return latest + time.count();
  };
  const auto later = [](std::optional<std::int64_t> time, Nanoseconds by) {
    return time ? std::optional(*time + by.count()) : time;
  };
  std::vector<std::size_t> next(ranks, 0);
  std::vector<std::int64_t> free(ranks, 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t r = 0; r < ranks; ++r)
      while (next[r] < schedule.rows[r].size()) {
        const Action a = std::get<Action>(schedule.rows[r][next[r]]);
        const MicrobatchId m = *a.microbatch;
        const StageCost& stage = costs.stages[r];
        std::optional<std::int64_t> ready = 0;
        Nanoseconds time{0};
        if (a.op == Op::Forward) {
          time = stage.forward;
          if (r > 0) ready = later(ended(a.op, r - 1, m), costs.pairs[r - 1].forward_time);
        } else if (a.op == Op::HeadShare) {
          time = stage.head_share;
          ready = later(ended(Op::Forward, last, m), costs.head->broadcast);
        } else if (a.op == Op::HeadRest) {
          time = stage.head_rest;
          ready = joined(Op::HeadShare, m, costs.head->after_share);
        } else {
          time = stage.backward();
          ready = r < last ? later(ended(a.op, r + 1, m), costs.pairs[r].backward_time)
                  : costs.head->barriers == 1 ? joined(Op::HeadShare, m, costs.head->after_share)
                                              : joined(Op::HeadRest, m, costs.head->after_rest);
        }
        if (!ready) break;
        free[r] = std::max(free[r], *ready) + time.count();
        end[{a.op, r, m}] = free[r];
        ++next[r], progress = true;
      }
  }
  for (std::size_t r = 0; r < ranks; ++r)
    if (next[r] < schedule.rows[r].size()) return std::nullopt;
  return *std::ranges::max_element(free);
}

}  // namespace pfeife
