// Pfeife's schedules (ICML 2025, section 3.3), in closed form. Rank r of D has the stages v D + r,
// v < V.
//
//  1. Forward list P: groups of B_l microbatches, each through all stages of the rank, first stage
//  first.
//  2. Backward list Q: the same groups, last stage first.
//  3. Warm-up: W_r = (V - 1) B_l + (D - r) + prefetch_r forwards come before the first backward; a
//  scalar prefetch P
//     gives rank r min(D - 1 - r, P) of them, because more would outrun the ranks after it.
//  4. One backward, one forward, alternating, until the forwards are used up; then the rest of Q.
//
// Cyclic points. A short last group of g = N mod B_l > 0 microbatches breaks the rhythm: with V >=
// 2 and (V-1) g >= 2 a scalar prefetch of g + 2 + (B_l - D) or more makes ranks wait for one
// another in a circle. (A rule found by enumeration for D <= B_l <= N; the tests compare it with
// the order itself.) Everything else, prefetch vectors among it, is judged by running the order.
#include "planner/schedules/looped.h"

#include <algorithm>

#include "planner/schedules/microbatch_order.h"
#include "planner/schedules/runnable.h"

namespace pfeife {

static std::size_t loop_batch(const ScheduleSpec& spec) {
  return spec.loop_batch.value_or(spec.ranks);
}

static std::size_t prefetch(const ScheduleSpec& spec, std::size_t rank) {
  if (spec.prefetch.empty()) return 0;
  if (spec.prefetch.size() == 1) return std::min(spec.ranks - 1 - rank, spec.prefetch[0]);
  return spec.prefetch[rank];
}

static std::size_t warm_up(const ScheduleSpec& spec, std::size_t rank) {
  return (spec.stages_per_rank - 1) * loop_batch(spec) + (spec.ranks - rank) + prefetch(spec, rank);
}

Schedule looped_schedule(const ScheduleSpec& spec) {
  const std::vector<Visit> forwards =
      forward_visits(spec.microbatches, spec.stages_per_rank, loop_batch(spec));
  const std::vector<Visit> backwards =
      backward_visits(spec.microbatches, spec.stages_per_rank, loop_batch(spec));
  Schedule schedule;
  schedule.rows.resize(spec.ranks);
  for (std::size_t r = 0; r < spec.ranks; ++r) {
    auto& row = schedule.rows[r];
    row.reserve(2 * forwards.size());
    const auto stage = [&](const Visit& visit) { return dealt_stage(visit.loop, r, spec.ranks); };
    const std::size_t warm = std::min(warm_up(spec, r), forwards.size());
    std::size_t f = 0;
    const auto next_forward = [&] {
      row.emplace_back(forward(stage(forwards[f]), MicrobatchId{forwards[f].microbatch}));
      ++f;
    };
    while (f < warm) next_forward();
    for (const Visit& visit : backwards) {
      row.emplace_back(backward(stage(visit), MicrobatchId{visit.microbatch}));
      if (f < forwards.size()) next_forward();
    }
  }
  return schedule;
}

std::size_t distinct_prefetches(const ScheduleSpec& spec) {
  // Rank D - 1 - k has early + k + min(k, P) of its V N forwards before the first backward. P + 1
  // instead of P is one more for k > P, if rank k = P + 1, which has fewest of them, has one left.
  const std::size_t forwards = spec.stages_per_rank * spec.microbatches;
  const std::size_t early = (spec.stages_per_rank - 1) * loop_batch(spec) + 1;
  return forwards > early ? std::min(spec.ranks, 1 + (forwards - early) / 2) : 1;
}

/// The rule at the head of this file holds: a scalar prefetch, D <= B_l <= N.
static bool has_rule(const ScheduleSpec& spec) {
  return spec.prefetch.size() <= 1 && spec.ranks <= loop_batch(spec) &&
         loop_batch(spec) <= spec.microbatches;
}

/// Largest scalar prefetch that keeps the order acyclic by the rule; empty if all do.
static std::optional<std::size_t> prefetch_limit(const ScheduleSpec& spec) {
  const std::size_t batch = loop_batch(spec), short_group = spec.microbatches % batch;
  if (spec.stages_per_rank < 2 || short_group == 0 || (spec.stages_per_rank - 1) * short_group < 2)
    return std::nullopt;
  return short_group + 1 + batch - spec.ranks;
}

static bool is_cyclic(const ScheduleSpec& spec) {
  if (spec.prefetch.empty() && spec.stages_per_rank == 1) return false;
  if (!has_rule(spec))
    return !stuck_cells(looped_schedule(spec), spec.stages(), spec.microbatches).empty();
  const auto limit = prefetch_limit(spec);
  return limit && !spec.prefetch.empty() && std::min(spec.prefetch[0], spec.ranks - 1) > *limit;
}

std::optional<Refusal> refuse_cyclic(const ScheduleSpec& spec) {
  if (!is_cyclic(spec)) return std::nullopt;
  const auto stuck = stuck_cells(looped_schedule(spec), spec.stages(), spec.microbatches);
  Refusal refusal{
      "the ranks would wait for one another in a circle (" + describe(stuck) + ")", {}, {}};
  if (has_rule(spec))
    refusal.reason += "; the last group has only " +
                      std::to_string(spec.microbatches % loop_batch(spec)) + " of " +
                      std::to_string(loop_batch(spec)) + " microbatches, prefetch up to " +
                      std::to_string(*prefetch_limit(spec)) + " works";
  refusal.microbatches = nearest(spec.microbatches, [&](std::size_t n) {
    ScheduleSpec other = spec;
    other.microbatches = n;
    return has_rule(other) && !is_cyclic(other);
  });
  return refusal;
}

Family looped() {
  return {
      .name = "looped",
      .rule =
          "Pfeife: V stages a rank, groups of `loop batch` microbatches, `prefetch` early forwards",
      .refuse = refuse_cyclic,
      .generate = looped_schedule,
      .placement = round_robin,
      .takes_loop_batch = true,
      .takes_prefetch = true};
}

}  // namespace pfeife
