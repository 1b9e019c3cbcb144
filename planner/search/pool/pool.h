// What the steps of planning find, in one place: plans, shortages of memory, bounds. A step
// proposes plans or claims a bound; the pool orders them, and alone writes the Answer.
//   Pool pool(search(problem, options));
//   pool.add({plan});
//   std::puts(name_of(pool.answer().plans.front()).c_str());
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "planner/ir/result/answer.h"
#include "planner/ir/result/need.h"

namespace pfeife {

/// Joins two claims into one that holds for the plans of both: the lower bound. Claims nothing if
/// either does.
Claim joined(Claim claim, const Claim& other);

class Pool {
 public:
  /// `memory_limit`: [rank], by which plans are full.
  explicit Pool(std::vector<Bytes> memory_limit) : memory_limit_(std::move(memory_limit)) {}
  /// Goes on from what a search came to.
  Pool(Answer begun, std::vector<Bytes> memory_limit)
      : answer_(std::move(begun)), memory_limit_(std::move(memory_limit)) {}

  const Answer& answer() const { return answer_; }
  Answer take() && { return std::move(answer_); }

  /// Plans that fit, each the best that a proposer has of its schedule. The fastest go first; of
  /// equally fast ones the first that was added. With a plan, nothing is infeasible.
  void add(std::vector<Priced> plans);
  /// These plans in place of all that there are.
  void replace(std::vector<Priced> plans);
  /// Plans for the front alone: beside the best, or less full.
  void add_near(std::vector<Priced> plans);
  /// Answer::plans are the `most` fastest of all, and no schedule that has one is rejected.
  void keep(std::size_t most);
  /// Empties Answer::all.
  std::vector<Priced> take_all();

  void reject(Rejected rejected) { answer_.rejected.push_back(std::move(rejected)); }
  void reject(std::vector<Rejected> rejected);
  /// Some choice lacks so much memory. Kept, if it is the least of all, until there is a plan.
  void add(const std::optional<Infeasible>& lack);
  /// Kept, if it is the least of all.
  void note_host_lack(HostLack lack);
  /// It is proven that nothing fits, or no longer.
  void prove_infeasible(bool proven);

  /// Holds for all plans of the pool, in place of what was claimed before.
  void claim(Claim claim);
  /// Proves what is claimed, or that nothing fits.
  void prove(std::shared_ptr<const Certificate> certificate) {
    answer_.certificate = std::move(certificate);
  }
  /// No plan of any problem that was open is below `bound`: what is then claimed, if anything is.
  void rebound(Nanoseconds bound);
  /// The bound holds, proven so.
  void raise(Nanoseconds bound, std::shared_ptr<const Certificate> certificate);
  /// Orders built for the costs may be below the bound.
  void leave_out_orders(bool left_out) { answer_.orders_left_out = left_out; }
  /// What is claimed besides, without a certificate.
  void set_uncertified(Uncertified besides) { answer_.uncertified = std::move(besides); }
  /// Costs have changed since: nothing is claimed any more, and of the plans none is known.
  void forget_claims();

  /// Candidates that were judged, and effort that was spent, besides.
  void count(std::size_t candidates, std::size_t effort = 0);
  /// Steps of the history came after so many other candidates.
  void count_before(std::size_t candidates);
  void spend(double seconds) { answer_.seconds += seconds; }

  void set_recompute(Recompute recompute) { answer_.recompute = recompute; }
  void set_history(std::vector<SearchStep> history);
  void set_alternatives(std::vector<Alternative> alternatives) {
    answer_.alternatives = std::move(alternatives);
  }
  void set_cut_places(const CutPlaces& places) { answer_.cut_places = places; }
  void set_links_bound(std::optional<Nanoseconds> bound) { answer_.links_bound = bound; }
  void set_tried(std::vector<TriedChange> tried) { answer_.tried = std::move(tried); }
  void leave_unfinished(const Unfinished& rest) { answer_.unfinished.push_back(rest); }

 private:
  void cap_history();

  Answer answer_;
  std::vector<Bytes> memory_limit_;
};

}  // namespace pfeife
