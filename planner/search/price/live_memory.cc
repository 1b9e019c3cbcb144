#include "planner/search/price/live_memory.h"

#include <algorithm>
#include <array>

namespace pfeife {
namespace {

bool covers(const LiveMoment& a, const LiveMoment& b) {
  if (a.running != b.running || a.op != b.op) return false;
  if (b.restores && !a.restores) return false;
  for (std::size_t i = 0; i < a.saved.size(); ++i)
    if (a.saved[i] < b.saved[i] || a.weight_saved[i] < b.weight_saved[i]) return false;
  return true;
}

void keep_largest(std::vector<LiveMoment>& moments, const LiveMoment& moment) {
  for (const LiveMoment& known : moments)
    if (covers(known, moment)) return;
  std::erase_if(moments, [&](const LiveMoment& known) { return covers(moment, known); });
  moments.push_back(moment);
}

}  // namespace

LiveMemory::LiveMemory(const Schedule& compute_only, const Placement& placement, Stages which)
    : stages_(placement.ranks()), moments_(placement.ranks()), running_(placement.ranks()) {
  std::vector<std::size_t> local(placement.stages());
  for (std::size_t s = 0; s < placement.stages(); ++s) {
    auto& stages = stages_[placement.rank_of_stage[s].index()];
    local[s] = stages.size();
    stages.push_back(s);
  }
  for (std::size_t r = 0; r < placement.ranks(); ++r) {
    LiveMoment now{std::vector<double>(stages_[r].size()), std::vector<double>(stages_[r].size()),
                   -1};
    const auto note = [&](std::size_t running, Op op) {
      now.running = static_cast<std::int32_t>(running), now.op = op;
      const bool restores = makes_input_gradient(op);
      LiveMoment moment = now;
      if (which == Stages::Either) moment.restores = restores;
      if (which == Stages::Recomputed) {
        std::ranges::fill(moment.saved, 0);
        if (restores) moment.saved[running] = 1;
      }
      if (which == Stages::Blocks) std::ranges::fill(moment.saved, 0);
      keep_largest(moments_[r], moment);
      ++now.action;
    };
    for (const Cell& cell : compute_only.rows[r])
      for_each_action(cell, [&](const Action& a) {
        const std::size_t at = local[a.stage.index()];
        const Operation& kind = operation(a.op);
        if (kind.saved > 0) now.saved[at] += kind.saved;
        note(at, a.op);
        if (kind.saved < 0) now.saved[at] += kind.saved;
        now.weight_saved[at] += kind.weight_saved;
      });
    for (const LiveMoment& moment : moments_[r]) {
      const auto at = static_cast<std::size_t>(moment.running);
      auto same = std::ranges::find_if(running_[r], [&](const Running& other) {
        return other.at == at && other.op == moment.op;
      });
      if (same == running_[r].end()) same = running_[r].insert(same, Running{at, moment.op, {}});
      for (std::size_t k = 0; k < moment.saved.size(); ++k)
        same->kept.insert(same->kept.end(), {moment.saved[k], moment.weight_saved[k]});
    }
  }
}

std::size_t LiveMemory::numbers() const {
  std::size_t count = 0;
  for (const std::vector<Running>& rank : running_)
    for (const Running& running : rank) count += running.kept.size();
  return count;
}

double LiveMemory::held(const CutModel& model, const LiveMoment& moment, std::size_t at,
                        std::int32_t from, std::int32_t to) {
  const auto sum = [&](const std::vector<double>& prefix) { return between(prefix, from, to); };
  double bytes = sum(model.held(Hold::Fixed)) + moment.saved[at] * sum(model.held(Hold::Saved));
  if (moment.weight_saved[at] != 0)
    bytes += moment.weight_saved[at] * sum(model.held(Hold::WeightSaved));
  if (moment.running == static_cast<std::int32_t>(at))
    bytes += model.temporary(moment.op, from, to);
  return bytes;
}

double LiveMemory::held(const CutModel& model, const LiveMoment& moment, const Cuts& cuts,
                        std::size_t rank) const {
  double bytes = 0;
  for (std::size_t at = 0; at < stages_[rank].size(); ++at) {
    const std::size_t s = stages_[rank][at];
    bytes += held(model, moment, at, cuts[s], cuts[s + 1]);
  }
  return bytes;
}

/// The largest held() of all moments; `held` has room for two numbers of each stage of the rank.
double LiveMemory::highest(const CutModel& model, const Cuts& cuts, std::size_t rank,
                           std::span<double> held) const {
  double fixed = 0;
  for (std::size_t k = 0; k < stages_[rank].size(); ++k) {
    const std::size_t s = stages_[rank][k];
    fixed += of_stage(model.held(Hold::Fixed), cuts, s);
    held[2 * k] = of_stage(model.held(Hold::Saved), cuts, s);
    held[2 * k + 1] = of_stage(model.held(Hold::WeightSaved), cuts, s);
  }
  double highest = 0;
  for (const Running& running : running_[rank]) {
    const std::size_t s = stages_[rank][running.at];
    const double besides = fixed + model.temporary(running.op, cuts[s], cuts[s + 1]);
    for (auto kept = running.kept.begin(); kept != running.kept.end();) {
      double bytes = besides;
      for (const double stage_bytes : held) bytes += *kept++ * stage_bytes;
      highest = std::max(highest, bytes);
    }
  }
  return highest;
}

double LiveMemory::peak(const CutModel& model, const Cuts& cuts, std::size_t rank) const {
  std::array<double, 16> few;  // asked for very often
  const std::size_t numbers = 2 * stages_[rank].size();
  if (numbers <= few.size()) return highest(model, cuts, rank, std::span(few).first(numbers));
  std::vector<double> many(numbers);
  return highest(model, cuts, rank, many);
}

double LiveMemory::peak(const CutModel& model, const Cuts& cuts, std::size_t rank,
                        const std::vector<bool>& recompute) const {
  double highest = 0;
  for (const LiveMoment& moment : moments_[rank]) {
    double bytes = 0;
    for (std::size_t at = 0; at < stages_[rank].size(); ++at) {
      const std::size_t s = stages_[rank][at];
      bytes += held(model, moment, at, cuts[s], cuts[s + 1]);
      if (!recompute[s]) continue;
      const bool here = moment.restores && moment.running == static_cast<std::int32_t>(at);
      const double back = here ? 1 : 0;
      bytes -= (moment.saved[at] - back) * of_stage(model.held(Hold::Saved), cuts, s);
    }
    highest = std::max(highest, bytes);
  }
  return highest;
}

PeakMemo::PeakMemo(const LiveMemory& live) : ranks_(live.ranks()) {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r].positions.assign(kKept * 2 * live.stages(r).size(), -1);
    ranks_[r].peak.resize(kKept);
  }
}

double PeakMemo::peak(const LiveMemory& live, const CutModel& model, const Cuts& cuts,
                      std::size_t rank) {
  constexpr std::uint32_t kFactor = 2654435769U;  // 2^32 / golden ratio: spreads the low bits
  key_.clear();
  std::uint32_t hash = 0;
  for (const std::size_t s : live.stages(rank))
    for (const std::int32_t position : {cuts[s], cuts[s + 1]}) {
      key_.push_back(position);
      hash = (hash ^ static_cast<std::uint32_t>(position)) * kFactor;
    }
  Rank& memo = ranks_[rank];
  const std::size_t at = (hash >> 16) % kKept;
  const auto known = memo.positions.begin() + static_cast<std::ptrdiff_t>(at * key_.size());
  if (!std::equal(key_.begin(), key_.end(), known)) {
    memo.peak[at] = live.peak(model, cuts, rank);
    std::ranges::copy(key_, known);
  }
  return memo.peak[at];
}

}  // namespace pfeife
