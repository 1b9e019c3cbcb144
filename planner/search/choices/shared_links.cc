#include "planner/search/choices/shared_links.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/parallel.h"
#include "planner/schedules/families.h"
#include "planner/search/choices/sent_time.h"
#include "planner/search/cuts/cut_moves.h"
#include "planner/search/orders/built_orders.h"
#include "planner/search/orders/every_order.h"
#include "planner/search/price/price.h"
#include "planner/search/search.h"

namespace pfeife {
namespace {

constexpr double kBinds = 1.01;            ///< times what the best plan takes alone: links bind
constexpr std::size_t kFirst = 5;          ///< of the known plans, those with the least bounds
constexpr std::size_t kAtOnce = 16;        ///< timed together, then bounds are looked at again
constexpr double kPoolTasks = 500'000;     ///< of known plans; kFirst are timed whatever they have
constexpr double kTasksPerEffort = 3'000;  ///< of plans that are searched
constexpr std::size_t kSlowedEffort = 10;  ///< of a search for slower links
constexpr std::size_t kElite = 6;          ///< plans from which the search goes on
constexpr std::size_t kMoves = 64;         ///< random moves of one plan's cuts
constexpr std::size_t kTimedMoves = 32;    ///< of all changes of one plan
constexpr double kPricing = 0.125;         ///< of the time of a simulation
/// Shares of the progress: once known plans are timed, once slower links are searched.
constexpr double kPoolDone = 0.2, kSlowerDone = 0.6;

/// A plan and what is known of its time without a simulation.
struct Weighed : Priced {
  Nanoseconds bound{0};
  Nanoseconds busiest{0};  ///< of the links, and of the queues
  double tasks = 0;        ///< about how many a step has
};

class SharedLinks {
 public:
  SharedLinks(const Problem& problem, const SearchOptions& options, const LinkSimulator& simulator)
      : problem_(problem),
        options_(options),
        simulator_(simulator),
        left_(kTasksPerEffort * static_cast<double>(options.effort())) {}

  SharedLinksOutcome run(std::vector<Priced> known, std::vector<Priced> asked) {
    for (const Priced& plan : known) {
      Nanoseconds& least = estimates_.try_emplace(plan.spec, plan.estimate).first->second;
      least = std::min(least, plan.estimate);
    }
    time(weighed(std::move(asked)));
    time_pool(weighed(std::move(known)));
    reached(kPoolDone);
    SharedLinksOutcome found;
    found.links_bind = links_bind();
    if (found.links_bind) {
      if (!problem_.cuts) search_slower_links();
      search_from_best();
    }
    found.unfinished = unfinished_;
    found.timed = timed_.size();
    sort();
    timed_.resize(std::min(timed_.size(), options_.keep));
    for (Timed& timed : timed_) found.plans.push_back(std::move(timed));
    return found;
  }

 private:
  struct Timed : TimedPlan {
    bool searched = false;  ///< its neighbours were looked at
  };

  Weighed weigh(Priced plan) const {
    const std::shared_ptr<const CostedRows> rows =
        plan.rows ? plan.rows : price(problem_, plan).rows;
    Weighed candidate{std::move(plan)};
    const Placement& placement = candidate.placement;
    const StageCosts& costs = rows->costs;
    candidate.bound = candidate.estimate;
    const std::size_t microbatches = candidate.spec.microbatches;
    const Nanoseconds queue = fullest_queue(costs, placement, simulator_.queues, microbatches);
    candidate.busiest =
        std::max(busiest_link(costs, placement, problem_.cluster, microbatches), queue);
    candidate.bound =
        std::max(candidate.bound, simulator_.links == Links::Shared ? candidate.busiest : queue);
    candidate.tasks = static_cast<double>(candidate.spec.microbatches *
                                          (3 * costs.stages.size() + 2 * costs.pairs.size()));
    return candidate;
  }

  /// The least bounds first; of equal ones the earlier.
  std::vector<Weighed> weighed(std::vector<Priced> plans) const {
    std::vector<Weighed> all(plans.size());
    parallel_for(plans.size(), options_.threads,
                 [&](std::size_t i) { all[i] = weigh(std::move(plans[i])); });
    std::ranges::stable_sort(all, {}, &Weighed::bound);
    return all;
  }

  void reached(double share) const {
    if (options_.progress) options_.progress(share);
  }

  Nanoseconds best_time() const {
    Nanoseconds best = Nanoseconds::max();
    for (const Timed& timed : timed_) best = std::min(best, timed.time.shared);
    return best;
  }

  bool is_known(const Priced& plan) const {
    return std::ranges::any_of(
        timed_, [&](const Timed& timed) { return static_cast<const Priced&>(timed) == plan; });
  }

  /// Times all of them that are new.
  void time(std::vector<Weighed> plans) {
    std::vector<Priced> open;
    for (Weighed& plan : plans) {
      if (is_known(plan) || std::ranges::find(open, plan) != open.end()) continue;
      spent_ += plan.tasks;
      open.push_back(std::move(plan));
    }
    if (open.empty()) return;
    const std::vector<StepTime> times = simulator_.times(open);
    PFEIFE_CHECK(times.size() == open.size(), "a time of each plan");
    for (std::size_t i = 0; i < open.size(); ++i)
      timed_.push_back({{std::move(open[i]), times[i]}});
  }

  /// The same of those, least bounds first, that may be faster than the best plan.
  void time_promising(std::vector<Weighed> plans) {
    for (std::size_t begin = 0; begin < plans.size(); begin += kAtOnce) {
      const auto from = plans.begin() + static_cast<std::ptrdiff_t>(begin);
      std::vector<Weighed> batch(
          std::make_move_iterator(from),
          std::make_move_iterator(
              from + static_cast<std::ptrdiff_t>(std::min(kAtOnce, plans.size() - begin))));
      std::erase_if(batch,
                    [best = best_time()](const Weighed& plan) { return plan.bound >= best; });
      time(std::move(batch));
    }
  }

  /// The plans with the least bounds; the best of each family and number of stages a rank; for each
  /// number of stages a rank the one that loads links least.
  void time_pool(std::vector<Weighed> known) {
    std::set<std::pair<std::string, std::size_t>> families;
    std::map<std::size_t, std::size_t> least;  // [stages a rank] number of the one with least load
    for (std::size_t i = 0; i < known.size(); ++i) {
      const auto [at, added] = least.try_emplace(known[i].spec.stages_per_rank, i);
      if (!added && known[i].busiest < known[at->second].busiest) at->second = i;
    }
    std::vector<Weighed> pool;
    double tasks = 0;
    for (std::size_t i = 0; i < known.size(); ++i) {
      const ScheduleSpec& spec = known[i].spec;
      const bool first = families.insert({spec.family, spec.stages_per_rank}).second;
      const bool light = least.at(spec.stages_per_rank) == i;
      if (i >= kFirst && ((!first && !light) || tasks > kPoolTasks)) continue;
      tasks += known[i].tasks;
      pool.push_back(std::move(known[i]));
    }
    time_promising(std::move(pool));
  }

  bool links_bind() const {
    Nanoseconds alone = Nanoseconds::max();
    for (const Timed& timed : timed_) alone = std::min(alone, timed.time.alone);
    return !timed_.empty() &&
           static_cast<double>(best_time().count()) > kBinds * static_cast<double>(alone.count());
  }

  /// Schedules of which a plan is known whose estimate is below the best time. The others would
  /// need better cuts than the search found for them, and luck with links besides.
  std::vector<ScheduleSpec> promising() const {
    std::vector<ScheduleSpec> schedules = problem_.schedules;
    std::erase_if(schedules, [&, best = best_time()](const ScheduleSpec& spec) {
      const auto known = estimates_.find(spec);
      return known == estimates_.end() || known->second >= best;
    });
    return schedules;
  }

  /// What the search finds for them if all links are slower: it then prefers cuts that little
  /// crosses, and schedules that wait less for transfers.
  void search_slower_links() {
    double done = kPoolDone;
    for (const double slower : {2.0, 4.0}) {
      const double begin = std::exchange(done, done + (kSlowerDone - kPoolDone) / 2);
      const std::vector<ScheduleSpec> schedules = promising();
      if (schedules.empty()) return;
      Cluster cluster = problem_.cluster;
      for (Path& path : cluster.paths)
        for (BandwidthCurve::Point& point : path.bandwidth.points) point.rate.value /= slower;
      Problem problem = with_cluster(problem_, cluster);
      problem.schedules = schedules;
      SearchOptions brief = part_of(options_, begin, done);
      brief.certificate = false;
      brief.iterations = std::min(options_.effort(), kSlowedEffort);
      time_pool(weighed(priced(search(problem, brief).all)));
    }
  }

  /// Plans with estimate and memory of the true links; those that do not fit are left out.
  std::vector<Priced> priced(std::vector<Priced> plans) {
    std::vector<std::optional<Priced>> fit(plans.size());
    parallel_for(plans.size(), options_.threads,
                 [&](std::size_t i) { fit[i] = fitting(problem_, std::move(plans[i])); });
    std::vector<Priced> found;
    for (std::optional<Priced>& plan : fit)
      if (plan) found.push_back(*std::move(plan));
    return found;
  }

  /// Changes of the best plans, again and again.
  void search_from_best() {
    const CutModel model(problem_.layers, problem_.cluster, problem_.memory_rule,
                         problem_.recomputes_all(), problem_.norm);
    const double before = spent_, most = spent_ + left_;
    for (std::uint64_t round = 0;; ++round) {
      sort();
      const auto next = std::find_if(
          timed_.begin(),
          timed_.begin() + static_cast<std::ptrdiff_t>(std::min(kElite, timed_.size())),
          [](const Timed& timed) { return !timed.searched; });
      if (next == timed_.begin() + static_cast<std::ptrdiff_t>(std::min(kElite, timed_.size())))
        return;
      if (spent_ >= most) {
        unfinished_ = true;
        return;
      }
      next->searched = true;
      std::vector<Priced> changed = changes(*next, model, round);
      std::erase_if(changed, [&](const Priced& plan) { return is_known(plan); });
      std::vector<Weighed> candidates = weighed(priced(std::move(changed)));
      for (const Weighed& plan : candidates) spent_ += kPricing * plan.tasks;
      std::erase_if(candidates,
                    [best = best_time()](const Weighed& plan) { return plan.bound >= best; });
      if (candidates.size() > kTimedMoves) candidates.resize(kTimedMoves);
      time_promising(std::move(candidates));
      reached(kSlowerDone + (1 - kSlowerDone) * std::min(1.0, (spent_ - before) / left_));
    }
  }

  /// The plan with slightly other cuts, and with other schedules on its cuts.
  std::vector<Priced> changes(const Priced& plan, const CutModel& model,
                              std::uint64_t round) const {
    std::vector<Priced> changed;
    const Placement& placement = plan.placement;
    const auto cuts = model.cuts(plan.partition);
    const bool keeps_running = !plan.order || runs_on_a_chain(*plan.order);
    if (!problem_.cuts && cuts && cuts->size() > 2 && keeps_running) {
      const CutMoves moves(model, placement);
      Random random(options_.seed + round);
      std::set<Cuts> moved;
      for (std::size_t i = 0; i < kMoves; ++i) moved.insert(moves.random(*cuts, random));
      for (const Cuts& moved_cuts : moved) {
        Priced& other = changed.emplace_back(plan);
        other.partition = model.partition(moved_cuts);
      }
    }
    for (const ScheduleSpec& spec : problem_.schedules) {
      if (is_built(spec) || spec == plan.spec ||
          placement_for(spec).rank_of_stage != placement.rank_of_stage)
        continue;
      Priced& other = changed.emplace_back(plan);
      other.spec = spec;
      other.order.reset();
    }
    return changed;
  }

  void sort() {
    std::ranges::stable_sort(timed_, {}, [](const Timed& timed) {
      return std::tuple(timed.time.shared, timed.estimate, timed.spec);
    });
  }

  const Problem& problem_;
  const SearchOptions& options_;
  const LinkSimulator& simulator_;
  double left_, spent_ = 0;  // tasks
  bool unfinished_ = false;
  std::map<ScheduleSpec, Nanoseconds> estimates_;  // the least of known plans
  std::vector<Timed> timed_;
};

}  // namespace

SharedLinksOutcome fastest_with_shared_links(const Problem& problem, std::vector<Priced> known,
                                             std::vector<Priced> asked,
                                             const SearchOptions& options,
                                             const LinkSimulator& simulator) {
  return SharedLinks(problem, options, simulator).run(std::move(known), std::move(asked));
}

}  // namespace pfeife
