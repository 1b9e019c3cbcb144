#include "planner/cost/compute_order.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "planner/ir/action_time.h"
#include "planner/ir/error.h"

namespace pfeife {
namespace {

/// Of every stage and microbatch, in each direction.
template <class T>
using ByWay = std::array<std::vector<T>, 2>;  // [way_of(op)][stage * microbatches + microbatch]

/// Of F and of the gradient of inputs; W makes nothing that others wait for.
std::size_t way_of(Op op) { return op == Op::Forward ? 0 : 1; }

}  // namespace

ComputeOrder::ComputeOrder(const Schedule& compute_only, const Placement& placement)
    : microbatches_(microbatch_count(compute_only)) {
  const std::size_t stages = placement.stages();
  for (const RankId rank : placement.rank_of_stage)
    rank_of_stage_.push_back(static_cast<std::uint32_t>(rank.index()));
  ByWay<bool> made;
  for (auto& of_way : made) of_way.resize(stages * microbatches_);
  const auto is_made = [&](std::size_t way, std::size_t stage, const Action& a) {
    return stage >= stages || made[way][stage * microbatches_ + a.microbatch->index()];
  };
  const auto ready = [&](const Action& a) {
    const std::size_t s = a.stage.index();
    if (a.op == Op::Forward) return s == 0 || is_made(0, s - 1, a);
    return a.op == Op::BackwardWeight || is_made(1, s + 1, a);
  };
  std::vector<std::size_t> at(compute_only.ranks(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < at.size(); ++r)
      for (const auto& row = compute_only.rows[r]; at[r] < row.size(); ++at[r], moved = true) {
        bool all = true;
        for_each_action(row[at[r]], [&](const Action& a) { all = all && ready(a); });
        if (!all) break;
        const auto begin = static_cast<std::uint32_t>(parts_.size());
        for_each_action(row[at[r]], [&](const Action& a) {
          const auto s = static_cast<std::uint32_t>(a.stage.index());
          const auto m = static_cast<std::uint32_t>(a.microbatch->index());
          parts_.push_back({a.op, s, m});
          if (a.op != Op::BackwardWeight) made[way_of(a.op)][s * microbatches_ + m] = true;
        });
        const auto end = static_cast<std::uint32_t>(parts_.size());
        if (end > begin) cells_.push_back({static_cast<std::uint32_t>(r), begin, end});
      }
  }
  for (std::size_t r = 0; r < at.size(); ++r)
    if (at[r] < compute_only.rows[r].size())
      throw ConfigError({}, "rank " + std::to_string(r) + " waits for ever at " +
                                to_string(compute_only.rows[r][at[r]]));
}

Nanoseconds ComputeOrder::estimate(const StageCosts& costs) const {
  PFEIFE_CHECK(costs.reductions.empty(), "stages that share parameters");
  const std::size_t stages = rank_of_stage_.size();
  struct Source {
    std::size_t stage;
    std::int64_t delay;
  };
  ByWay<std::vector<Source>> sources;  // [way][stage]
  for (auto& of_way : sources) of_way.resize(stages);
  for (const StagePair& pair : costs.pairs) {
    const std::size_t from = pair.from.index(), to = pair.to.index();
    sources[0][to].push_back({from, pair.forward_time.count()});
    if (pair.gradient_bytes > Bytes{0})
      sources[1][from].push_back({to, pair.backward_time.count()});
  }
  std::array<std::vector<std::int64_t>, 4> time;  // [op][stage]
  for (const Op op : {Op::Forward, Op::Backward, Op::BackwardInput, Op::BackwardWeight})
    for (std::size_t s = 0; s < stages; ++s) {
      const Action action = stage_action(op, StageId{s});
      time[static_cast<std::size_t>(op)].push_back(action_time(action, costs).count());
    }
  ByWay<std::int64_t> made;
  for (auto& of_way : made) of_way.resize(stages * microbatches_);
  std::vector<std::int64_t> free(*std::ranges::max_element(rank_of_stage_) + 1, 0);  // [rank]
  for (const Cell& cell : cells_) {
    std::int64_t begin = free[cell.rank], lasts = 0;
    for (std::uint32_t k = cell.begin; k < cell.end; ++k) {
      const auto& [op, stage, microbatch] = parts_[k];
      lasts += time[static_cast<std::size_t>(op)][stage];
      if (op == Op::BackwardWeight) continue;
      for (const auto& [source, delay] : sources[way_of(op)][stage])
        begin = std::max(begin, made[way_of(op)][source * microbatches_ + microbatch] + delay);
    }
    if (cell.end - cell.begin > 1)
      lasts = std::llround(static_cast<double>(lasts) * costs.overlap_factor);
    free[cell.rank] = begin + lasts;
    for (std::uint32_t k = cell.begin; k < cell.end; ++k)
      if (const auto& [op, stage, microbatch] = parts_[k]; op != Op::BackwardWeight)
        made[way_of(op)][stage * microbatches_ + microbatch] = begin + lasts;
  }
  for (std::size_t s = 0; s < stages; ++s)
    free[rank_of_stage_[s]] += costs.stages[s].optimizer.count();
  return Nanoseconds{std::ranges::max(free)};
}

}  // namespace pfeife
