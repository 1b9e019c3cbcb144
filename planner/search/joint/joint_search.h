// The state of a joint search, and its steps. search.h is the door.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "planner/ir/basics/parallel.h"
#include "planner/search/bound/any_order.h"
#include "planner/search/joint/contender.h"
#include "planner/search/problem.h"

namespace pfeife {

class JointSearch {
 public:
  /// `built`: schedules beside problem.schedules whose order is built for the costs. Keeps
  /// references to `problem` and `options`. `search` answers for smaller problems.
  JointSearch(const Problem& problem, const std::vector<ScheduleSpec>& built,
              const SearchOptions& options, const SearchFunction& search);
  Answer run();
  /// Each name once, in the order in which they are first done.
  static std::vector<std::string_view> step_names();

 private:
  struct TimedStep {
    std::string_view name;
    void (JointSearch::*run)();
    bool reports = true;  ///< report() follows
  };
  static std::span<const TimedStep> first_steps();
  static std::span<const TimedStep> steps_of_span();
  static std::span<const TimedStep> last_steps();
  bool is_done() const { return begun_ >= effort_ || !may_find_faster(); }
  void run_steps(std::span<const TimedStep> steps, double begin, double end);

  static constexpr std::size_t kSideBySide = 8;  ///< begun before a budget is looked at

  // joint_search_plans.cc
  void place_start();
  void find_first();
  void polish_first();
  void descend_all();
  bool may_beat(Contender& c, double target);
  void descend_more();
  void anneal_best();
  void anneal_run(Contender& c, AnnealingRun run);
  void share_cuts();
  void build_orders();
  void try_all_orders();
  bool may_build_faster(std::size_t i) const;
  bool may_find_faster() const;
  // joint_search_proofs.cc
  void bound_all();
  void bound_again();
  void bound_more();
  void raise_floors(double target);
  void bound_unproven();
  void bound_any_order();
  void bound(Contender& c, double target);
  void branch();
  std::vector<std::size_t> promising() const;
  void branch_round(const std::vector<std::size_t>& order);

  /// Tells of progress: that share of the step that runs is done.
  void reached(double of_step);
  void report();
  double best_time() const;
  /// Numbers of the contenders with a plan, the fastest first.
  std::vector<std::size_t> by_time() const;
  /// Numbers of the contenders that may yet give a faster plan, smallest key first. (Where a
  /// certificate is wanted, only those are out of which it can say so.)
  template <class Key>
  std::vector<std::size_t> ranked(const Key& key) const {
    std::vector<std::size_t> order;
    const double best = best_time();
    for (const Contender& c : contenders_)
      if (c.open() && (options_.certificate ? c.certifiable() : c.bound()) < best)
        order.push_back(c.number);
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return key(contenders_[i]); });
    return order;
  }
  template <class Work>
  void visit(const std::vector<std::size_t>& numbers, const Work& work) {
    parallel_for(numbers.size(), options_.threads,
                 [&](std::size_t i) { work(contenders_[numbers[i]]); });
  }

  /// The same in this order until about `budget` ns of one core are spent: counted, not measured.
  template <class Work>
  void visit_within(double budget, const std::vector<std::size_t>& numbers, const Work& work) {
    parallel_while(budget, numbers.size(), kSideBySide, options_.threads, [&](std::size_t k) {
      Contender& c = contenders_[numbers[k]];
      const double before = c.work();
      work(c);
      return c.work() - before;
    });
  }

  const Problem& problem_;
  const std::vector<ScheduleSpec> to_build_;
  const SearchOptions& options_;
  std::size_t effort_;
  CutModel model_;
  std::vector<Contender> contenders_;
  std::vector<BuiltSearch> by_itself_, from_others_;  // [to_build_]
  std::vector<BuiltPlan> built_;                      // [to_build_]
  std::vector<AnyOrder> any_order_;       // of to_build_ that have cuts, once there is a plan
  std::size_t begun_ = 0;                 // effort at which the present span began
  std::size_t span_ = 0;                  // its effort
  double step_begin_ = 0, step_end_ = 0;  // of the step that runs, as shares of the search
  double branched_ = 0;                   // about ns of one core that branch() took
  std::vector<SearchStep> history_;
};

}  // namespace pfeife
