#include "planner/search/joint/contender.h"

#include "planner/search/cuts/start_cuts.h"

namespace pfeife {

void Contender::make_room() {
  if (tried_roomy_cuts || candidates->best()) return;
  tried_roomy_cuts = true;
  start = score(*candidates, roomy_cuts(*candidates, start.cuts));
  offer(start.cuts);
}

void Contender::offer(const Cuts& cuts) {
  double time = candidates->search_time(cuts);
  if (time > candidates->best_time()) return;
  if (candidates->is_large()) time = candidates->time(cuts);
  candidates->offer(cuts, time);
}

void Contender::descend_and_offer(const Cuts& cuts) {
  Scored from = score(*candidates, cuts);
  if (cuts == start.cuts) start = from;  // its score may have been a lower bound
  for (int attempt = 0; attempt < 4; ++attempt) {
    from = descend(*candidates, from, 400);
    offer(from.cuts);
    if (candidates->best_time() <= from.score) break;
    from = score(*candidates, from.cuts);
  }
  if (from.score < start.score ||
      candidates->best_time() == std::numeric_limits<double>::infinity())
    start = from;
}

void Contender::descend_from_nearest() {
  if (proof && !proof->nearest().empty()) {
    tried_nearest_cuts = true;
    const Scored found = score(*candidates, proof->nearest());
    if (found.score < start.score) start = found;
  }
  descend_and_offer(start.cuts);
}

bool linked_only(std::span<const Contender> contenders) {
  return std::ranges::any_of(contenders,
                             [](const Contender& c) { return c.proof && c.proof->linked_only(); });
}

CutClass cut_class(std::span<const Contender> contenders,
                   const std::vector<RankId>& rank_of_stage) {
  for (const Contender& c : contenders)
    if (c.proof && c.proof->always_linked() &&
        c.candidates->placement().rank_of_stage == rank_of_stage)
      return {.least_load = c.proof->certificate(1).least_load};
  return {.linked = linked_only(contenders)};
}

}  // namespace pfeife
