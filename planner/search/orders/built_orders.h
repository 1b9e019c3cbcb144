// Plans whose order is built for their costs (zb_greedy): order and cuts are chosen in turns.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/search/cuts/local_search.h"
#include "planner/search/orders/order_builder.h"
#include "planner/search/price/candidate.h"

namespace pfeife {

/// What came of one schedule of a family that is built for costs.
struct BuiltPlan {
  ScheduleSpec spec;
  std::vector<Bytes> memory_limit = {};  ///< [rank]
  std::optional<Priced> plan = {};       ///< with its order
  /// The judged plans that are both slower and fuller than none.
  std::vector<Priced> front = {};
  std::optional<Infeasible> closest;  ///< if there is no plan
  std::string impossible;             ///< why it has no cuts at all; "" = it may
  bool nothing_fits = false;          ///< proven of any order at all
  std::size_t candidates = 0;         ///< evaluated
};

/// Adds what came of another search for the same schedule.
void add(const BuiltPlan& other, BuiltPlan& result);
/// Adds a plan with its order.
void add(const Priced& plan, BuiltPlan& result);

/// An order with the cuts that are best under it: the fastest that fit, or else those that lack
/// least.
struct OrderedCuts {
  std::unique_ptr<Candidates> order;  ///< null: there is none yet
  Scored at{{}, std::numeric_limits<double>::infinity()};
};

/// The order of `spec` is built for costs.
bool is_built(const ScheduleSpec& spec);

/// An order for the given cuts, within the memory limits if one is found. Never null.
std::unique_ptr<Candidates> build_on_cuts(const CutModel& model, const Problem& problem,
                                          const ScheduleSpec& spec, const Cuts& cuts);

/// The search for the best plan of one schedule: builds orders, moves the cuts of the best with new
/// orders and under the one they have, builds again, and so on while that helps. It goes on from
/// where it is or, every other time, begins anew; what it has found stays. Deterministic.
class BuiltSearch {
 public:
  /// Keeps references to `model` and `problem`. `search` answers for a single microbatch. Several
  /// searches of the schedule may share a memo.
  BuiltSearch(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
              SearchFunction search,
              std::shared_ptr<OrderMemo> memo = std::make_shared<OrderMemo>())
      : model_(model),
        problem_(problem),
        allocated_(problem),
        search_(std::move(search)),
        memo_(std::move(memo)),
        result_{.spec = spec, .memory_limit = problem.memory_limit} {
    allocated_.allocator.reset();
  }

  /// Begins with the equal-time cuts and those of `starts` that make spec.stages() stages; later,
  /// with those that are new. `effort` as SearchOptions::iterations, of this call alone; calls with
  /// other seeds find other plans.
  void work(const std::vector<Partition>& starts, std::size_t effort, std::uint64_t seed);
  const BuiltPlan& result() const { return result_; }

 private:
  void work_once(const std::vector<Partition>& starts, std::size_t effort, std::uint64_t seed);
  void leave(Bytes free);
  bool keep_what_fits(const std::optional<Priced>& before);
  std::vector<Cuts> new_starts(const std::vector<Partition>& starts);
  void begin_anew(const OrderBuilder& builder, std::size_t effort, std::uint64_t seed);
  void try_one_by_one(const OrderBuilder& builder, std::size_t effort, std::uint64_t seed);
  void work_without_recomputation(const std::vector<Partition>& starts, std::size_t effort,
                                  std::uint64_t seed);

  const CutModel& model_;
  const Problem& problem_;
  /// Without the allocator, and with as much less memory as its plans were found to reserve more:
  /// many orders are built, and few of them played.
  Problem allocated_;
  SearchFunction search_;
  std::shared_ptr<OrderMemo> memo_;
  BuiltPlan result_;
  OrderedCuts best_;
  std::vector<Cuts> started_;  // from these
  Cuts first_;                 // the best of the first of them
  std::size_t calls_ = 0;      // of work()
  std::size_t worked_ = 0;     // effort
  bool tried_one_by_one_ = false;
  std::unique_ptr<Problem> kept_;         // of Recompute::Choose: the same with nothing recomputed
  std::unique_ptr<BuiltSearch> without_;  // and its search
};

/// What is known of a single microbatch on the placement of `spec`: no order of several needs less
/// memory, whether ranks do B or I and W.
struct OneMicrobatch {
  std::optional<Partition> cuts;  ///< by which it may fit
  bool nothing_fits = false;      ///< no cuts let it fit: proven
};
OneMicrobatch one_microbatch(const Problem& problem, const ScheduleSpec& spec,
                             const SearchFunction& search);
/// Where it does not fit with whole backwards, about the cuts by which the rank that lacks most
/// lacks least. nullopt: there are none at all, or it fits.
std::optional<Partition> least_lacking_cuts(const Problem& problem, const ScheduleSpec& spec,
                                            const SearchFunction& search);

}  // namespace pfeife
