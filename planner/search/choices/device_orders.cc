#include "planner/search/choices/device_orders.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/basics/parallel.h"
#include "planner/search/choices/sent_time.h"
#include "planner/search/cuts/local_search.h"
#include "planner/search/cuts/min_max.h"
#include "planner/search/orders/every_order.h"

namespace pfeife {
namespace {

using DeviceOrder = std::vector<DeviceId>;

constexpr std::size_t kEnumerated = 20'000;  ///< orders to look at one by one
constexpr std::size_t kJudged = 400;         ///< of them, different ones to judge
constexpr std::size_t kStarts = 4;           ///< of exchanging devices
constexpr std::size_t kRounds = 12;          ///< of all exchanges, from each start
constexpr std::size_t kFewMoves = 3;         ///< of the cuts of each
constexpr std::size_t kRefined = 4;          ///< times the orders to keep: judged with more moves
constexpr std::size_t kCutMoves = 20;        ///< of the cuts of these

/// All that a contention-free estimate takes from the paths between devices, as small numbers.
class PathClasses {
 public:
  explicit PathClasses(const Cluster& cluster) : cluster_(cluster) {
    std::vector<const Path*> known;
    for (const Path& path : cluster.paths) {
      const auto same = std::ranges::find_if(known, [&](const Path* other) {
        return other->latency == path.latency && other->bandwidth == path.bandwidth &&
               other->links.empty() == path.links.empty();
      });
      class_.push_back(static_cast<std::size_t>(same - known.begin()));
      if (same == known.end()) known.push_back(&path);
    }
  }
  std::size_t operator()(DeviceId from, DeviceId to) const {
    return class_[from.index() * cluster_.devices() + to.index()];
  }
  std::size_t kind(DeviceId device) const { return cluster_.kind_of_device[device.index()]; }

  /// Exchanging a and b changes nothing for anybody else, nor between them.
  bool interchangeable(DeviceId a, DeviceId b, const DeviceOrder& devices) const {
    if (kind(a) != kind(b) || (*this)(a, b) != (*this)(b, a)) return false;
    return std::ranges::all_of(devices, [&](DeviceId c) {
      return c == a || c == b || ((*this)(a, c) == (*this)(b, c) && (*this)(c, a) == (*this)(c, b));
    });
  }
  /// Equal for two orders exactly if no estimate tells them apart.
  std::vector<std::size_t> signature(const DeviceOrder& order) const {
    std::vector<std::size_t> text;
    for (const DeviceId a : order) {
      text.push_back(kind(a));
      for (const DeviceId b : order)
        if (a != b) text.push_back((*this)(a, b));
    }
    return text;
  }

 private:
  const Cluster& cluster_;
  std::vector<std::size_t> class_;  // [from * devices + to]
};

/// Orders of numbers with repetitions, or more than `most`.
bool fewer_than(const std::vector<std::size_t>& sizes, std::size_t most) {
  double orders = 1;
  std::size_t placed = 0;
  for (const std::size_t size : sizes)
    for (std::size_t k = 1; k <= size; ++k)
      orders = orders * static_cast<double>(++placed) / static_cast<double>(k);
  return orders < static_cast<double>(most) + 0.5;
}

/// How good orders of devices look.
class Judge {
 public:
  Judge(const Problem& problem, const std::vector<Priced>& plans, const Semantics& semantics)
      : problem_(problem),
        plans_(plans),
        semantics_(semantics),
        model_(problem.layers, problem.cluster, problem.memory_rule, problem.recomputes_all()) {}

  /// The best score (local_search.h) of any plan's schedule, transfers included that wait: on given
  /// cuts, and on equal-time cuts after at most `moves` moves of them.
  double operator()(const DeviceOrder& order, std::size_t moves) const {
    const Problem placed = with_devices(problem_, order);
    double best = std::numeric_limits<double>::infinity();
    for (const Priced& plan : plans_) {
      if (plan.order && !runs_on_a_chain(*plan.order)) continue;
      Candidates candidates = plan.order ? Candidates(model_, placed, plan.spec, *plan.order)
                                         : Candidates(model_, placed, plan.spec);
      best = std::min(best, weigh(score(candidates, *model_.cuts(plan.partition)), candidates));
      const auto equal = equal_time_cuts(problem_.layers, candidates.placement(), problem_.cluster);
      if (!equal || problem_.cuts) continue;
      const Scored start = score(candidates, *model_.cuts(*equal));
      best = std::min(best, weigh(descend(candidates, start, moves), candidates));
    }
    return best;
  }

 private:
  /// The score, longer by what the busiest link or queue takes more than the busiest rank: one that
  /// is busy all the time is what a step waits for.
  double weigh(const Scored& scored, const Candidates& candidates) const {
    if (semantics_ == Semantics{}) return scored.score;
    const ScheduleSpec& spec = candidates.spec();
    const Placement& placement = candidates.placement();
    const StageCosts costs = stage_costs(model_.sums(), model_.partition(scored.cuts), placement,
                                         problem_.cluster, {}, problem_.norm);
    Nanoseconds sent = fullest_queue(costs, placement, semantics_.queues, spec.microbatches);
    if (semantics_.links == Links::Shared)
      sent = std::max(sent, busiest_link(costs, placement, problem_.cluster, spec.microbatches));
    std::vector<Nanoseconds> work(placement.ranks());
    for (std::size_t s = 0; s < costs.stages.size(); ++s)
      work[placement.rank_of_stage[s].index()] +=
          costs.stages[s].forward + costs.stages[s].backward();
    const Nanoseconds computed =
        std::ranges::max(work) * static_cast<std::int64_t>(spec.microbatches);
    return scored.score + static_cast<double>(std::max(sent - computed, Nanoseconds{0}).count());
  }

  const Problem& problem_;
  const std::vector<Priced>& plans_;
  const Semantics& semantics_;
  CutModel model_;
};

/// Scores of orders; each class of equal ones is judged once, after few moves of cuts: they take
/// most of the time, and the best orders get more.
class Ranking {
 public:
  Ranking(const Problem& problem, const std::vector<Priced>& plans, const SearchOptions& options)
      : judge_(problem, plans, options.semantics),
        classes_(problem.cluster),
        threads_(options.threads) {}

  void judge(const std::vector<DeviceOrder>& orders) {
    std::vector<DeviceOrder> fresh;
    for (const DeviceOrder& order : orders) {
      const auto [at, added] = known_.try_emplace(classes_.signature(order), Entry{0, order});
      if (added) fresh.push_back(order);
    }
    std::vector<double> scores(fresh.size());
    parallel_for(fresh.size(), threads_,
                 [&](std::size_t i) { scores[i] = judge_(fresh[i], kFewMoves); });
    for (std::size_t i = 0; i < fresh.size(); ++i)
      known_.at(classes_.signature(fresh[i])).score = scores[i];
  }
  double score(const DeviceOrder& order) const {
    return known_.at(classes_.signature(order)).score;
  }

  /// Best first, ties in lexicographic order.
  std::vector<DeviceOrder> best(std::size_t keep) const {
    std::vector<Entry> all;
    for (const auto& [signature, entry] : known_) all.push_back(entry);
    std::ranges::sort(all);
    all.resize(std::min(all.size(), kRefined * keep));
    parallel_for(all.size(), threads_,
                 [&](std::size_t i) { all[i].score = judge_(all[i].order, kCutMoves); });
    std::ranges::sort(all);
    std::vector<DeviceOrder> orders;
    for (Entry& entry : all)
      if (orders.size() < keep) orders.push_back(std::move(entry.order));
    return orders;
  }

 private:
  struct Entry {
    double score = 0;
    DeviceOrder order;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  Judge judge_;
  PathClasses classes_;
  std::size_t threads_;
  std::map<std::vector<std::size_t>, Entry> known_;  // by signature
};

/// Exchanges the two devices that gain most, as long as any exchange does.
void exchange(DeviceOrder order, Ranking& ranking) {
  ranking.judge({order});
  for (std::size_t round = 0; round < kRounds; ++round) {
    std::vector<DeviceOrder> exchanged;
    for (std::size_t a = 0; a < order.size(); ++a)
      for (std::size_t b = a + 1; b < order.size(); ++b) {
        exchanged.push_back(order);
        std::swap(exchanged.back()[a], exchanged.back()[b]);
      }
    ranking.judge(exchanged);
    const auto best = std::ranges::min_element(exchanged, {}, [&](const DeviceOrder& o) {
      return std::pair{ranking.score(o), o};
    });
    if (best == exchanged.end() || ranking.score(*best) >= ranking.score(order)) return;
    order = *best;
  }
}

}  // namespace

std::optional<std::vector<DeviceOrder>> device_orders(const Cluster& cluster,
                                                      const DeviceOrder& devices,
                                                      std::size_t most) {
  const PathClasses classes(cluster);
  DeviceOrder sorted = devices;
  std::ranges::sort(sorted);
  std::vector<DeviceOrder> groups;  // of interchangeable devices
  for (const DeviceId device : sorted) {
    const auto group = std::ranges::find_if(groups, [&](const DeviceOrder& g) {
      return classes.interchangeable(g.front(), device, sorted);
    });
    if (group == groups.end())
      groups.push_back({device});
    else
      group->push_back(device);
  }
  std::vector<std::size_t> sizes, labels;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    sizes.push_back(groups[g].size());
    labels.insert(labels.end(), groups[g].size(), g);
  }
  if (!fewer_than(sizes, most)) return std::nullopt;
  std::map<std::vector<std::size_t>, DeviceOrder> smallest;
  do {
    std::vector<std::size_t> next(groups.size(), 0);
    DeviceOrder order;
    for (const std::size_t g : labels) order.push_back(groups[g][next[g]++]);
    const auto [at, added] = smallest.try_emplace(classes.signature(order), order);
    if (!added) at->second = std::min(at->second, order);
  } while (std::ranges::next_permutation(labels).found);
  std::vector<DeviceOrder> orders;
  for (auto& [signature, order] : smallest) orders.push_back(std::move(order));
  std::ranges::sort(orders);
  return orders;
}

Problem with_devices(const Problem& problem, const DeviceOrder& device_of_rank) {
  Problem changed = problem;
  changed.device_of_rank = device_of_rank;
  for (std::size_t r = 0; r < device_of_rank.size(); ++r) {
    const auto at = std::ranges::find(problem.device_of_rank, device_of_rank[r]);
    changed.memory_limit[r] =
        problem.memory_limit[static_cast<std::size_t>(at - problem.device_of_rank.begin())];
  }
  return changed;
}

PromisingOrders promising_orders(const Problem& problem, const std::vector<Priced>& plans,
                                 std::size_t keep, const SearchOptions& options) {
  const auto all = device_orders(problem.cluster, problem.device_of_rank, kEnumerated);
  if (all && all->size() <= keep) return {*all, true};
  Ranking ranking(problem, plans, options);
  if (all && all->size() <= kJudged) {
    ranking.judge(*all);
    return {ranking.best(keep), false};
  }
  DeviceOrder start = problem.device_of_rank;
  std::mt19937_64 random(1);
  for (std::size_t s = 0; s < kStarts; ++s) {
    exchange(start, ranking);
    if (options.progress)
      options.progress(static_cast<double>(s + 1) / static_cast<double>(kStarts));
    for (std::size_t i = start.size(); i > 1; --i) std::swap(start[i - 1], start[random() % i]);
  }
  return {ranking.best(keep), false};
}

}  // namespace pfeife
