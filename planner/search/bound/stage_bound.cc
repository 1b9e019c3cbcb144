#include "planner/search/bound/stage_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace pfeife {
namespace {

/// What a stage does of its own between two moments of its rank's row.
struct RowWork {
  double forward = 0, input = 0, weight = 0;
};

/// One stage: all it does; what it has done before its first B or I, and by the end of its last.
struct Moments {
  RowWork all, before, until;
};

std::vector<Moments> moments(const Schedule& schedule, std::size_t stages) {
  std::vector<Moments> found(stages);
  for (const auto& row : schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& action) {
        Moments& counts = found[action.stage.index()];
        const bool input = makes_input_gradient(action.op);
        if (input && counts.all.input == 0) counts.before = counts.all;
        counts.all.forward += action.op == Op::Forward;
        counts.all.input += input;
        counts.all.weight += makes_weight_gradient(action.op);
        if (input) counts.until = counts.all;
      });
  return found;
}

class Chain {
 public:
  Chain(const CutModel& model, const CutCosts& costs, const Schedule& schedule,
        std::span<const CutCosts::Latency> latency)
      : model_(model),
        costs_(costs),
        moments_(moments(schedule, latency.size())),
        forward_(fastest_times(model, costs.kinds(), {Work::Forward})),
        input_(fastest_times(model, costs.kinds(), {Work::BackwardInput})),
        up_(latency.size(), 0.0),
        down_(latency.size(), 0.0) {
    for (std::size_t s = 1; s < latency.size(); ++s) {
      up_[s] = up_[s - 1] + costs.action_overhead(s - 1) + std::max(0.0, latency[s].forward);
      down_[s] = down_[s - 1] + costs.action_overhead(s - 1) + std::max(0.0, latency[s].backward);
    }
  }

  /// The four paths through stage s of the segments [p, q), as StagePath numbers them.
  std::array<double, 4> paths(std::size_t s, std::size_t p, std::size_t q) const {
    const Moments& m = moments_[s];
    if (model_.forward_only()) return {0, forward_path(s, p, q), 0, 0};
    const double exit = input_[p] + down_[s];
    const double comes = forward_[p] + up_[s];
    const std::size_t last = moments_.size() - 1;
    // All overheads of the last stage's F and of B or I behind s; the F of s itself comes before.
    const double turn = forward_.back() + up_[last] + costs_.action_overhead(last) + input_.back() -
                        input_[q] + down_[last] - down_[s] +
                        (last > s ? costs_.action_overhead(last) - costs_.action_overhead(s) : 0);
    const double step = part(s, p, q, Work::Optimizer) + costs_.step_overhead(s);
    return {comes + row_time(s, p, q, {}, m.all) + step,
            comes + row_time(s, p, q, {}, m.until) + exit,
            turn + row_time(s, p, q, m.before, m.all) + step,
            turn + row_time(s, p, q, m.before, m.until) + exit};
  }
  double longest(std::size_t s, std::size_t p, std::size_t q) const {
    return std::ranges::max(paths(s, p, q));
  }

  std::size_t stages() const { return moments_.size(); }
  std::size_t end() const { return forward_.size() - 1; }

  /// How far stage s can go from p if none of its paths is to be above `time` and as many positions
  /// are to be left as stages; p itself if it can take nothing.
  std::size_t reach(std::size_t s, std::size_t p, double time) const {
    std::size_t low = p, high = end() - (stages() - 1 - s);
    while (low < high) {
      const std::size_t middle = (low + high + 1) / 2;
      if (longest(s, p, middle) <= time)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }

  /// Some cuts leave no path above `time`. Where a stage can take nothing, they end the stage
  /// before it earlier.
  bool suffices(double time) const {
    std::size_t p = 0;
    for (std::size_t s = 0; s < stages(); ++s) p = reach(s, p, time);
    return p == end();
  }

  /// The least whole number of ns that suffices, of those above `low` up to `high`.
  double least(double low, double high) const {
    while (high - low > 1) {
      const double middle = std::floor((low + high) / 2);
      (suffices(middle) ? high : low) = middle;
    }
    return high;
  }

 private:
  /// Forward only: the first microbatch comes to the stage, which does all of its own; the last one
  /// goes on through the stages behind it.
  double forward_path(std::size_t s, std::size_t p, std::size_t q) const {
    const std::size_t last = moments_.size() - 1;
    const double goes_on = forward_.back() - forward_[q] + up_[last] - up_[s] +
                           costs_.action_overhead(last) - costs_.action_overhead(s);
    return forward_[p] + up_[s] + row_time(s, p, q, {}, moments_[s].all) + goes_on;
  }
  double part(std::size_t s, std::size_t p, std::size_t q, Work work) const {
    const std::vector<double>& prefix = model_.time(costs_.kind(s), work);
    return prefix[q] - prefix[p];
  }
  double row_time(std::size_t s, std::size_t p, std::size_t q, const RowWork& from,
                  const RowWork& to) const {
    const double forwards = to.forward - from.forward, inputs = to.input - from.input;
    return forwards * part(s, p, q, Work::Forward) + inputs * part(s, p, q, Work::BackwardInput) +
           (to.weight - from.weight) * part(s, p, q, Work::BackwardWeight) +
           (forwards + inputs) * costs_.action_overhead(s);
  }

  const CutModel& model_;
  const CutCosts& costs_;
  std::vector<Moments> moments_;         // [stage]
  std::vector<double> forward_, input_;  // [position]
  std::vector<double> up_, down_;        // [stage] overheads and transfers to it, and from it
};

}  // namespace

double stage_bound(const CutModel& model, const CutCosts& costs, const Schedule& compute_only,
                   std::span<const CutCosts::Latency> latency, double enough) {
  const Chain chain(model, costs, compute_only, latency);
  const double most = std::floor(enough);
  return chain.suffices(most - 1) ? chain.least(0, most) : most;
}

std::vector<StagePath> binding_paths(const CutModel& model, const CutCosts& costs,
                                     const Schedule& compute_only,
                                     std::span<const CutCosts::Latency> latency, double bound) {
  const Chain chain(model, costs, compute_only, latency);
  std::vector<StagePath> found;
  std::size_t begin = 0;
  for (std::size_t s = 0; s < chain.stages(); ++s) {
    const std::size_t end = chain.reach(s, begin, bound - 1);
    if (end < chain.end() - (chain.stages() - 1 - s)) {
      const auto paths = chain.paths(s, begin, end + 1);
      const auto longest = std::ranges::max_element(paths) - paths.begin();
      found.push_back({s, (longest & 1) != 0, (longest & 2) != 0});
    }
    begin = end;
  }
  return found;
}

Cuts stage_cuts(const CutModel& model, const CutCosts& costs, const Schedule& compute_only) {
  const std::size_t stages = costs.kinds().size();
  const std::vector<CutCosts::Latency> none(stages, {0, 0});
  const Chain chain(model, costs, compute_only, none);
  double high = 1;
  while (!chain.suffices(high)) high *= 2;
  const double time = chain.least(0, high);
  Cuts cuts(stages + 1, 0);
  for (std::size_t s = 0; s < stages; ++s) {
    const auto p = static_cast<std::size_t>(cuts[s]);
    cuts[s + 1] = static_cast<std::int32_t>(std::max(p + 1, chain.reach(s, p, time)));
  }
  cuts[stages] = model.last();
  return cuts;
}

}  // namespace pfeife
