// Plans of schedules that the fast search does not know (slices, a shared output layer): priced in
// full, on cuts that are found for other schedules and then moved.
#pragma once

#include <optional>
#include <vector>

#include "planner/search/problem.h"

namespace pfeife {

/// Good cuts for the work of whole microbatches, as many stages as the schedules have.
std::vector<Partition> cuts_of_work(const Problem& problem,
                                    const std::vector<ScheduleSpec>& schedules,
                                    const SearchOptions& options, const SearchFunction& search);

/// The plans of such schedules, and why others have none.
class ExactPlans {
 public:
  /// Keeps a reference to `problem`. `most`: plans tried for a schedule by moving its cuts.
  ExactPlans(const Problem& problem, std::size_t most) : problem_(problem), most_(most) {}

  /// Adds the best plan on these cuts and around them, or the reason why there is none.
  void plan(const ScheduleSpec& spec, const std::vector<Partition>& cuts);

  std::vector<Priced> found;
  std::vector<Rejected> rejected;
  std::optional<Infeasible> closest;
  std::size_t candidates = 0;

 private:
  /// What is computed again of every plan.
  Activations all_or_nothing(const ScheduleSpec& spec) const;
  /// The choice with all recomputed that may be.
  Choice with_least_memory(Choice choice) const;
  /// The choice if it fits, else with stages that compute again what they save, and an order for
  /// that if its family builds one.
  std::optional<Priced> fitting_with_uses(const Choice& choice) const;
  /// With an order for its cuts, if its family builds one.
  Choice with_order(Choice choice) const;
  /// Order and uses stay while the cuts move under them; then the cuts get others of their own.
  Priced with_moved_cuts(Priced plan) const;

  const Problem& problem_;
  std::size_t most_;
};

}  // namespace pfeife
