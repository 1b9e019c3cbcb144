#include "planner/search/orders/microbatch_permutation.h"

#include <algorithm>
#include <numeric>

#include "planner/ir/basics/error.h"
#include "planner/search/cuts/cut_moves.h"

namespace pfeife {
namespace {

/// Every microbatch a kind of its own, so that each position has durations of its own.
StageGraph with_distinct_microbatches(const StageCosts& costs) {
  StageGraph graph = stage_graph(costs);
  std::iota(graph.kind_of.begin(), graph.kind_of.end(), 0u);
  return graph;
}

/// The first microbatch of each kind.
std::vector<MicrobatchId> representatives(const std::vector<std::uint32_t>& kind_of) {
  std::vector<MicrobatchId> first;
  for (std::size_t m = 0; m < kind_of.size(); ++m)
    if (kind_of[m] == first.size()) first.emplace_back(m);
  return first;
}

/// An order of kinds as one of microbatches: those of a kind in the order given.
MicrobatchOrder microbatches_of(const std::vector<std::uint32_t>& kinds,
                                const std::vector<std::uint32_t>& kind_of) {
  std::vector<std::vector<std::uint32_t>> left(kind_of.size());
  for (std::size_t m = kind_of.size(); m-- > 0;)
    left[kind_of[m]].push_back(static_cast<std::uint32_t>(m));
  MicrobatchOrder order;
  for (const std::uint32_t kind : kinds) {
    order.push_back(left[kind].back());
    left[kind].pop_back();
  }
  return order;
}

/// Not more than `most` distinct orders.
bool few_orders(const std::vector<std::uint32_t>& kind_of, std::size_t most) {
  std::vector<std::size_t> count(kind_of.size(), 0);
  double orders = 1;
  for (std::size_t i = 0; i < kind_of.size(); ++i) {
    orders *= static_cast<double>(i + 1) / static_cast<double>(++count[kind_of[i]]);
    if (orders > static_cast<double>(most) + 0.5) return false;
  }
  return true;
}

/// Kinds by their length: ranks [kind], so that an order of kinds is one of lengths.
std::vector<std::uint32_t> by_length(std::vector<std::uint32_t> kinds,
                                     const std::vector<double>& load) {
  std::ranges::stable_sort(kinds, {}, [&](std::uint32_t k) { return std::pair{load[k], k}; });
  return kinds;
}

std::vector<std::uint32_t> middle_last(const std::vector<std::uint32_t>& ascending) {
  std::vector<std::uint32_t> front, back;
  for (std::size_t i = 0; i < ascending.size(); ++i)
    (i % 2 == 0 ? front : back).push_back(ascending[i]);
  front.insert(front.end(), back.rbegin(), back.rend());
  return front;
}

class Search {
 public:
  using Kinds = std::vector<std::uint32_t>;

  Search(PermutedTimes& times, const Kinds& kind_of, const std::vector<double>& load,
         const OrderSearchOptions& options)
      : times_(times), kind_of_(kind_of), load_(load), options_(options) {
    most_ = std::max<std::size_t>(1, options.work / std::max<std::size_t>(1, times.work()));
  }

  OrderSearch run() {
    if (few_orders(kind_of_, most_))
      try_all();
    else
      try_some();
    OrderSearch result;
    for (const auto& [time, kinds] : best_)
      result.best.push_back({time, microbatches_of(kinds, kind_of_)});
    result.worst = {worst_.first, microbatches_of(worst_.second, kind_of_)};
    result.tried = tried_, result.exact = exact_;
    return result;
  }

 private:
  using Timed = std::pair<std::int64_t, Kinds>;

  std::int64_t time(const Kinds& kinds) {
    ++tried_;
    const std::int64_t time = times_.time(kinds);
    if (worst_.second.empty() || time > worst_.first) worst_ = {time, kinds};
    if (best_.size() < options_.keep || time < best_.back().first) {
      const bool kept =
          std::ranges::any_of(best_, [&](const Timed& best) { return best.second == kinds; });
      if (!kept) {
        const auto at = std::ranges::upper_bound(best_, time, {}, &Timed::first);
        best_.insert(at, {time, kinds});
        if (best_.size() > options_.keep) best_.pop_back();
      }
    }
    return time;
  }

  void try_all() {
    // Next permutations of the lengths' ranks are in the order of the lengths.
    Kinds sorted = by_length(kind_of_, load_);
    std::vector<std::uint32_t> rank_of(kind_of_.size()), kind_at;
    for (const std::uint32_t kind : sorted)
      if (kind_at.empty() || kind_at.back() != kind) {
        rank_of[kind] = static_cast<std::uint32_t>(kind_at.size());
        kind_at.push_back(kind);
      }
    std::vector<std::uint32_t> ranks;
    for (const std::uint32_t kind : sorted) ranks.push_back(rank_of[kind]);
    Kinds kinds = sorted;
    do {
      std::ranges::transform(ranks, kinds.begin(), [&](std::uint32_t r) { return kind_at[r]; });
      time(kinds);
    } while (std::next_permutation(ranks.begin(), ranks.end()));
    exact_ = true;
  }

  void try_some() {
    const Kinds ascending = by_length(kind_of_, load_);
    const Kinds descending(ascending.rbegin(), ascending.rend());
    for (const Kinds& start : {kind_of_, ascending, descending, middle_last(ascending)})
      time(start);
    for (std::size_t i = 0; i < 4 && i < best_.size(); ++i) {
      const Timed start = best_[i];
      descend(start.second, start.first, most_ / 8);
    }
    Random random(options_.seed);
    while (tried_ < most_) {
      Kinds kinds = best_.front().second;
      for (std::size_t change = 0; change < 3; ++change)
        std::swap(kinds[random.below(kinds.size())], kinds[random.below(kinds.size())]);
      const std::int64_t from = time(kinds);
      descend(std::move(kinds), from, most_ / 8);
    }
  }

  /// Takes the first exchange or move that helps, until none does or so many were tried.
  void descend(Kinds kinds, std::int64_t best, std::size_t most) {
    const std::size_t end = tried_ + most;
    for (bool faster = true; faster;) {
      faster = false;
      for (std::size_t i = 0; i < kinds.size(); ++i)
        for (std::size_t j = 0; j < kinds.size(); ++j) {
          if (i == j) continue;
          if (tried_ >= end || tried_ >= most_) return;
          Kinds next = kinds;
          if (i < j) {
            if (kinds[i] == kinds[j]) continue;
            std::swap(next[i], next[j]);
            if (const std::int64_t now = time(next); now < best) {
              best = now, kinds = next, faster = true;
              continue;
            }
            next = kinds;
          }
          // The one at i goes to j.
          const auto at = next.begin();
          const auto first = static_cast<std::ptrdiff_t>(i), last = static_cast<std::ptrdiff_t>(j);
          if (i < j)
            std::rotate(at + first, at + first + 1, at + last + 1);
          else
            std::rotate(at + last, at + first, at + first + 1);
          if (next == kinds) continue;
          if (const std::int64_t now = time(next); now < best)
            best = now, kinds = std::move(next), faster = true;
        }
    }
  }

  PermutedTimes& times_;
  const Kinds& kind_of_;
  const std::vector<double>& load_;
  const OrderSearchOptions& options_;
  std::size_t most_ = 0, tried_ = 0;
  bool exact_ = false;
  std::vector<Timed> best_;
  Timed worst_;
};

}  // namespace

Schedule relabelled(Schedule rows, const MicrobatchOrder& order) {
  const auto relabel = [&](Action& action) {
    if (!action.microbatch) return;
    PFEIFE_CHECK(action.microbatch->slices == 1 && action.microbatch->index() < order.size(),
                 to_string(action));
    action.microbatch = MicrobatchId{order[action.microbatch->index()]};
  };
  for (std::vector<Cell>& row : rows.rows)
    for (Cell& cell : row) {
      if (auto* action = std::get_if<Action>(&cell)) relabel(*action);
      if (auto* overlap = std::get_if<Overlap>(&cell))
        std::ranges::for_each(overlap->parts, relabel);
    }
  return rows;
}

MicrobatchOrder forward_order(const Schedule& rows) {
  MicrobatchOrder order;
  for (const std::vector<Cell>& row : rows.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& action) {
        if (action.op == Op::Forward && action.stage.value == 0)
          order.push_back(static_cast<std::uint32_t>(action.microbatch->value));
      });
  return order;
}

PermutedTimes::PermutedTimes(const Schedule& lowered, const StageCosts& costs,
                             const Placement& placement)
    : graph_([&] {
        const DependencyGraph graph =
            dependencies(lowered, with_distinct_microbatches(costs), placement, Semantics{});
        const std::vector<MicrobatchId> first = representatives(costs.kind_of);
        kinds_ = first.size();
        for (const DurationSlot& slot : graph.slots) {
          Slot& added = slots_.emplace_back();
          for (const Action& part : slot.parts)
            if (part.microbatch)
              added.positions.push_back(static_cast<std::uint32_t>(part.microbatch->value));
          std::size_t combinations = 1;
          for (std::size_t i = 0; i < added.positions.size(); ++i) combinations *= kinds_;
          for (std::size_t c = 0; c < combinations; ++c) {
            DurationSlot of_kinds = slot;
            std::size_t left = c;
            for (Action& part : of_kinds.parts)
              if (part.microbatch) part.microbatch = first[left % kinds_], left /= kinds_;
            added.times.push_back(slot_durations({&of_kinds, 1}, costs).front().count());
          }
        }
        return CompiledGraph(graph);
      }()) {}

std::int64_t PermutedTimes::time(std::span<const std::uint32_t> kinds) {
  durations_.resize(slots_.size());
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    std::size_t at = 0, scale = 1;
    for (const std::uint32_t position : slots_[s].positions)
      at += scale * kinds[position], scale *= kinds_;
    durations_[s] = slots_[s].times[at];
  }
  return graph_.makespan(durations_);
}

OrderSearch search_microbatch_order(PermutedTimes& times, const std::vector<std::uint32_t>& kind_of,
                                    const std::vector<double>& load,
                                    const OrderSearchOptions& options) {
  PFEIFE_CHECK(!kind_of.empty(), "no microbatches");
  return Search(times, kind_of, load, options).run();
}

MicrobatchOrder longest_in_the_middle(const std::vector<std::uint32_t>& kind_of,
                                      const std::vector<double>& load) {
  return microbatches_of(middle_last(by_length(kind_of, load)), kind_of);
}

}  // namespace pfeife
