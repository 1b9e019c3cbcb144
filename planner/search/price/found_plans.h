// What the search has found among the cuts of one schedule.
#pragma once

#include <limits>
#include <optional>
#include <set>

#include "planner/search/price/cut_model.h"
#include "planner/search/problem.h"

namespace pfeife {

class FoundPlans {
 public:
  /// A plan that takes this much longer than the best is forgotten, however small.
  static constexpr double kNear = 0.01;

  explicit FoundPlans(std::vector<Bytes> memory_limit) : memory_limit_(std::move(memory_limit)) {}
  const std::optional<Priced>& best() const { return best_; }
  /// The plans, of all that were kept or near, that are both slower and fuller than none; the
  /// fastest first.
  const std::vector<Priced>& front() const { return front_; }
  const Cuts& best_cuts() const { return best_cuts_; }
  double best_time() const { return best_time_; }
  const std::optional<Infeasible>& closest() const { return closest_; }
  double unsure() const { return unsure_; }

  /// Cuts of this time (ns) would be the best (ties: smaller cuts).
  bool would_be_best(const Cuts& cuts, double time) const {
    return time < best_time_ || (time == best_time_ && cuts < best_cuts_);
  }
  /// A plan of this time (ns) may be worth its smaller memory.
  bool is_near(double time) const { return time <= (1 + kNear) * best_time_; }
  /// `plan` is the best.
  void keep(const Cuts& cuts, double time, Priced plan) {
    best_ = plan, best_cuts_ = cuts, best_time_ = time;
    keep_near(std::move(plan));
  }
  void keep_near(Priced plan);
  /// Nothing better comes of these cuts.
  void set_aside(const Cuts& cuts) { set_aside_.insert(cuts); }
  bool is_set_aside(const Cuts& cuts) const { return set_aside_.contains(cuts); }
  /// Records cuts that do not fit; the smallest shortage is kept.
  void note_lack(const Infeasible& lack);
  /// Plans of this time (ns) may have been missed, faster ones not.
  void note_unsure(double time) { unsure_ = std::min(unsure_, time); }
  /// Takes what a copy has found.
  void join(FoundPlans& copy);

 private:
  std::vector<Bytes> memory_limit_;
  std::set<Cuts> set_aside_;
  std::vector<Priced> front_;
  std::optional<Priced> best_;
  Cuts best_cuts_;
  double best_time_ = std::numeric_limits<double>::infinity();
  std::optional<Infeasible> closest_;
  double unsure_ = std::numeric_limits<double>::infinity();
};

}  // namespace pfeife
