// Better cuts from given ones: steepest descent, and annealing in batches of sixteen.
//
// Budgets are counts and random numbers come from the seed alone, so the same call gives the same
// cuts anywhere. Cuts that are too full by Candidates::excess count as slower than any that are
// not, by how much they exceed.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/cuts/cut_moves.h"
#include "planner/search/price/candidate.h"

namespace pfeife {

/// Cuts and what they are worth: step time in ns if they seem to fit, else 1e15 + bytes too many.
/// Never infinite, so that any cuts are better than none.
struct Scored {
  Cuts cuts;
  double score = 0;
};
Scored score(Candidates& candidates, const Cuts& cuts);

/// Moves one cut, or a row of neighbouring cuts together, as long as the best such move gains;
/// at most `passes` moves, fewer for schedules of very many actions.
Scored descend(Candidates& candidates, Scored from, std::size_t passes);

/// Simulated annealing: `batches` times sixteen random moves (CutMoves), of which the first that
/// the present temperature accepts is made. The temperature falls from 1 % to 0.001 % of the score.
/// Returns the best seen.
Scored anneal(Candidates& candidates, const Scored& from, std::size_t batches, std::uint64_t seed);

/// One call of anneal(): its number, which makes its seed, and its batches.
struct AnnealingRun {
  std::size_t number = 0, batches = 0;
  friend bool operator==(const AnnealingRun&, const AnnealingRun&) = default;
};
/// The runs that start when the budget of batches, which all runs share, rises from `before` to
/// `until`. Run k takes 300 * 2^k batches, and starts once the budget covers runs 0 to k; run 0
/// starts at once.
std::vector<AnnealingRun> annealing_runs(std::size_t before, std::size_t until);

}  // namespace pfeife
