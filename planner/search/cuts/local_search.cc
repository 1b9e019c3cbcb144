#include "planner/search/cuts/local_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

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
  double time = candidates.search_time(cuts);
  if (std::isinf(time)) time = candidates.time(cuts);  // a skip binds
  return {cuts, candidates.weigh(cuts, time)};
}

namespace {

/// What cuts that take at least `time` are worth. Exact times may cost as much as thousands of
/// bounds, so few are asked for, and each once: the same moves come again and again.
class Worth {
 public:
  explicit Worth(Candidates& candidates) : candidates_(candidates) {}
  /// Only below `enough` is it sure to be exact.
  double operator()(const Cuts& cuts, double time, bool exact, double enough) {
    const double value = candidates_.weigh(cuts, time);
    if (exact || value >= enough || value >= kTooFull) return value;
    const auto [at, added] = exact_.try_emplace(cuts, 0.0);
    if (added) at->second = candidates_.weigh(cuts, candidates_.search_time(cuts));
    return at->second;
  }

 private:
  Candidates& candidates_;
  std::map<Cuts, double> exact_;
};

/// The one of the moves from cuts that are too full that lacks least, if that is less than `least`,
/// by which it becomes kTooFull + bytes too many; nullopt: some fit, and need a time.
std::optional<std::size_t> roomiest(Candidates& candidates, const std::vector<Cuts>& moves,
                                    double& least) {
  std::size_t best = moves.size();
  for (std::size_t k = 0; k < moves.size(); ++k) {
    const double much = candidates.excess(moves[k]);
    if (much <= 0) return std::nullopt;
    if (kTooFull + much < least) least = kTooFull + much, best = k;
  }
  return best;
}

/// The one of the moves that is worth least, if that is less than `least`, which it becomes;
/// moves.size() if none is.
class Fastest {
 public:
  Fastest(Candidates& candidates, double most)
      : worth_(candidates), candidates_(candidates), most_(most) {}
  std::size_t operator()(const std::vector<Cuts>& moves, double& least) {
    candidates_.search_times(moves, times_, exact_);
    order_.clear();
    for (std::size_t k = 0; k < moves.size(); ++k)
      if (times_[k] < least) order_.push_back(k);
    std::ranges::stable_sort(order_, {}, [&](std::size_t k) { return times_[k]; });
    std::size_t best = moves.size();
    for (const std::size_t k : order_) {
      if (times_[k] >= least || candidates_.work() > most_) break;
      const double value = worth_(moves[k], times_[k], exact_[k] != 0, least);
      if (value < least) least = value, best = k;
    }
    return best;
  }

 private:
  Worth worth_;
  Candidates& candidates_;
  double most_;
  std::vector<double> times_;
  std::vector<char> exact_;
  std::vector<std::size_t> order_;
};

}  // namespace

Scored descend(Candidates& candidates, Scored from, std::size_t passes) {
  std::vector<Cuts> moves;
  std::size_t left = kDescentNodes / candidates.program().compute_nodes();
  const double most = candidates.work() + kDescentWork;
  Fastest fastest(candidates, most);
  for (std::size_t pass = 0; pass < passes; ++pass) {
    neighbourhood(from.cuts, moves);
    if (left < moves.size() || candidates.work() > most) break;
    left -= moves.size();
    double least = from.score;
    std::optional<std::size_t> best;
    if (least >= kTooFull) best = roomiest(candidates, moves, least);
    if (!best) least = std::min(from.score, kTooFull), best = fastest(moves, least);
    if (*best == moves.size()) break;
    from = {std::move(moves[*best]), least};
  }
  return from;
}

/// score(), of which only what fits needs the time.
static double score_by_room(Candidates& candidates, const Cuts& cuts) {
  const double much = candidates.excess(cuts);
  return much > 0 ? kTooFull + much : score(candidates, cuts).score;
}

Scored anneal(Candidates& candidates, const Scored& from, std::size_t batches, std::uint64_t seed) {
  if (from.cuts.size() < 3 || std::isinf(from.score)) return from;
  Random random(seed);
  const CutMoves cut_moves(candidates.model(), candidates.placement());
  Scored now = from, best = from;
  std::vector<Cuts> moves(Program::kLanes);
  std::vector<double> times;
  std::vector<char> exact;
  Worth worth(candidates);
  for (std::size_t batch = 0; batch < batches; ++batch) {
    const double done = static_cast<double>(batch) / static_cast<double>(batches);
    const double scale = now.score < kTooFull ? now.score : now.score - kTooFull;
    const double temperature = scale * 1e-2 * std::pow(1e-3, done);
    for (Cuts& move : moves) move = cut_moves.random(now.cuts, random);
    const double chance = random.unit();
    const double limit = now.score - temperature * std::log(std::max(chance, 1e-12));
    const bool fits = now.score < kTooFull;  // else few moves need a time
    if (fits) candidates.search_times(moves, times, exact);
    for (std::size_t k = 0; k < moves.size(); ++k) {
      if ((fits && times[k] > limit) || moves[k] == now.cuts) continue;
      const double value = fits ? worth(moves[k], times[k], exact[k] != 0, limit)
                                : score_by_room(candidates, moves[k]);
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
