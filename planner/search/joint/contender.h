// What the steps of the joint search share: every schedule with what is known of it so far.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "planner/search/bound/any_order_rows.h"
#include "planner/search/cuts/local_search.h"
#include "planner/search/orders/built_orders.h"
#include "planner/search/proof/branch_and_bound.h"

namespace pfeife {

/// One schedule of the problem on its way through the search.
struct Contender {
  std::size_t number = 0;  ///< in Problem::schedules
  std::unique_ptr<Candidates> candidates;
  std::unique_ptr<BranchAndBound> proof;
  double floor = 0;          ///< ns; a bound that took no search of the schedule's own cuts
  double certified = 0;      ///< ns; the part of that which a certificate can say
  std::vector<Cuts> simple;  ///< simple_cuts
  Scored start;
  bool tried_nearest_cuts = false;      ///< of the proof (BranchAndBound::nearest)
  bool tried_roomy_cuts = false;        ///< as a start (roomy_cuts)
  std::size_t rounds_without_plan = 0;  ///< of its tree
  double branched = 0;                  ///< about ns of one core that its tree has taken
  std::string impossible;               ///< why it has no cuts at all; "" = it may

  bool open() const { return impossible.empty() && !(proof && proof->closed()); }
  /// No cuts of it are faster (ns).
  double bound() const { return std::max(floor, searched_bound()); }
  /// The part of it that a certificate can say.
  double certifiable() const { return std::max(certified, searched_bound()); }
  /// About how many ns its candidates and its proof have taken: counted, not measured.
  double work() const { return candidates->work() + (proof ? proof->work() : 0); }
  /// If no plan is known: starts where memory is likely to suffice, if that is better.
  void make_room();
  /// Judges cuts if they are faster than the best so far.
  void offer(const Cuts& cuts);
  /// Descends, judges, and again: what the exact memory rule refuses, Candidates::excess knows
  /// better the next time.
  void descend_and_offer(const Cuts& cuts);
  /// The same from the cuts nearest to the proof (BranchAndBound::nearest), if they beat the start.
  void descend_from_nearest();

 private:
  double searched_bound() const {
    return proof ? std::min(proof->bound(), candidates->unsure()) : 0;
  }
};

/// No cuts of any of the schedules are faster (ns).
inline double least_bound(std::span<const Contender> contenders) {
  double least = std::numeric_limits<double>::infinity();
  for (const Contender& c : contenders)
    if (c.impossible.empty()) least = std::min(least, c.bound());
  return least;
}

/// The bound is of cuts alone whose neighbouring stages are linked.
bool linked_only(std::span<const Contender> contenders);
/// The cuts that the bound is of, for stages that are placed so: as far as is known.
CutClass cut_class(std::span<const Contender> contenders, const std::vector<RankId>& rank_of_stage);

/// Candidates of all of them.
inline std::size_t evaluated(std::span<const Contender> contenders,
                             std::span<const BuiltPlan> built) {
  std::size_t count = 0;
  for (const Contender& c : contenders)
    if (c.candidates) count += c.candidates->evaluated();
  for (const BuiltPlan& b : built) count += b.candidates;
  return count;
}

/// A time that is known, or nothing: 0 and infinity say that it is not.
inline std::optional<Nanoseconds> known(double time) {
  if (time <= 0 || time >= std::numeric_limits<double>::infinity()) return std::nullopt;
  return Nanoseconds{static_cast<std::int64_t>(time)};
}

}  // namespace pfeife
