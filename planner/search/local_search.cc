#include "planner/search/local_search.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace pfeife {
namespace {

constexpr double kTooFull = Candidates::kTooFull;
constexpr std::size_t kFirstRun = 300;            ///< batches
constexpr std::size_t kDescentNodes = 500000000;  ///< compute nodes a descent may evaluate
constexpr double kDescentWork = 1e9;  ///< ns of it, with the exact times that it asks for

void shift(Cuts& cuts, std::size_t first, std::size_t last, std::int32_t by) {
  for (std::size_t i = first; i <= last; ++i) cuts[i] += by;
}

/// All single moves up to a radius and all moves of rows of cuts by a few positions.
void neighbourhood(const Cuts& cuts, std::vector<Cuts>& moves) {
  const std::size_t stages = cuts.size() - 1;
  moves.clear();
  const auto add = [&](std::size_t first, std::size_t last, std::int32_t by) {
    // Only the outermost cut in the direction of travel can collide.
    if (by > 0 ? cuts[last] + by >= cuts[last + 1] : cuts[first] + by <= cuts[first - 1]) return;
    moves.push_back(cuts);
    shift(moves.back(), first, last, by);
  };
  const std::size_t reach = stages <= 32 ? stages : 512 / stages + 1;  // longest row of cuts
  for (std::size_t first = 1; first < stages; ++first)
    for (std::size_t last = first; last < std::min(stages, first + reach); ++last) {
      const std::int32_t radius = last == first ? 24 : 3;
      for (std::int32_t by = 1; by <= radius; ++by) add(first, last, by), add(first, last, -by);
    }
}

}  // namespace

Scored score(Candidates& candidates, const Cuts& cuts) {
  return {cuts, candidates.weigh(cuts, candidates.search_time(cuts))};
}

namespace {

/// What cuts that take at least `time` are worth. Exact times may cost as much as thousands of
/// bounds, so few are asked for, and each once: the same moves come again and again.
class Worth {
 public:
  explicit Worth(Candidates& candidates) : candidates_(candidates) {}
  /// Only below `enough` is it sure to be exact.
  double operator()(const Cuts& cuts, double time, bool sure, double enough) {
    const double value = candidates_.weigh(cuts, time);
    if (sure || value >= enough || value >= kTooFull) return value;
    const auto [at, added] = exact_.try_emplace(cuts, 0.0);
    if (added) at->second = candidates_.weigh(cuts, candidates_.search_time(cuts));
    return at->second;
  }

 private:
  Candidates& candidates_;
  std::map<Cuts, double> exact_;
};

}  // namespace

Scored descend(Candidates& candidates, Scored from, std::size_t passes) {
  std::vector<Cuts> moves;
  std::vector<double> times;
  std::vector<char> sure;
  std::vector<std::size_t> order;
  Worth worth(candidates);
  std::size_t left = kDescentNodes / candidates.program().compute_nodes();
  const double most = candidates.work() + kDescentWork;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    neighbourhood(from.cuts, moves);
    if (left < moves.size() || candidates.work() > most) break;
    left -= moves.size();
    candidates.search_times(moves, times, sure);
    order.clear();
    for (std::size_t k = 0; k < moves.size(); ++k)
      if (times[k] < from.score) order.push_back(k);
    std::ranges::stable_sort(order, {}, [&](std::size_t k) { return times[k]; });
    std::size_t best = moves.size();
    double least = from.score;
    for (const std::size_t k : order) {
      if ((times[k] >= least && least < kTooFull) || candidates.work() > most) break;
      const double value = worth(moves[k], times[k], sure[k] != 0, least);
      if (value < least) least = value, best = k;
    }
    if (best == moves.size()) break;
    from = {moves[best], least};
  }
  return from;
}

Scored anneal(Candidates& candidates, const Scored& from, std::size_t batches, std::uint64_t seed) {
  if (from.cuts.size() < 3 || std::isinf(from.score)) return from;
  Random random(seed);
  const CutMoves some(candidates.model(), candidates.placement());
  Scored now = from, best = from;
  std::vector<Cuts> moves(Program::kLanes);
  std::vector<double> times;
  std::vector<char> sure;
  Worth worth(candidates);
  for (std::size_t batch = 0; batch < batches; ++batch) {
    const double done = static_cast<double>(batch) / static_cast<double>(batches);
    const double scale = now.score < kTooFull ? now.score : now.score - kTooFull;
    const double temperature = scale * 1e-2 * std::pow(1e-3, done);
    for (Cuts& move : moves) move = some.random(now.cuts, random);
    const double chance = random.unit();
    const double limit = now.score - temperature * std::log(std::max(chance, 1e-12));
    candidates.search_times(moves, times, sure);
    for (std::size_t k = 0; k < moves.size(); ++k) {
      if (times[k] > limit || moves[k] == now.cuts) continue;
      const double value = worth(moves[k], times[k], sure[k] != 0, limit);
      if (value > limit) continue;
      now = {moves[k], value};
      if (value < best.score) best = now;
      break;
    }
  }
  return best;
}

std::vector<AnnealingRun> annealing_runs(std::size_t before, std::size_t until) {
  std::vector<AnnealingRun> runs;
  for (AnnealingRun run{0, kFirstRun};; ++run.number, run.batches *= 2) {
    const std::size_t all = 2 * run.batches - kFirstRun;  // with those before it
    const bool first = run.number == 0;
    if (all > until && !first) return runs;
    if (first ? before == 0 : all > before) runs.push_back(run);
  }
}

}  // namespace pfeife
