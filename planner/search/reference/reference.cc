#include "planner/search/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "planner/cost/estimate/evaluate.h"
#include "planner/ir/basics/error.h"
#include "planner/schedules/families.h"
#include "planner/search/pool/pool.h"
#include "planner/search/price/candidate.h"
#include "planner/search/price/lack.h"
#include "planner/search/price/numbers.h"

namespace pfeife {

std::vector<ScheduleSpec> reference_set(std::size_t ranks, std::size_t microbatches,
                                        const std::vector<std::size_t>& stages_per_rank) {
  std::vector<std::size_t> ascending = stages_per_rank;
  std::ranges::sort(ascending);
  std::vector<ScheduleSpec> set;
  for (const std::size_t v : ascending) {
    if (v > 1 && microbatches < ranks) continue;
    for (std::size_t batch = v == 1 ? microbatches : ranks; batch <= microbatches; ++batch) {
      if (v > 1 && batch > ranks && microbatches % batch != 0) continue;
      for (std::size_t prefetch = 0; prefetch < ranks; ++prefetch) {
        const ScheduleSpec spec{"looped", ranks, microbatches, v, batch, {prefetch}};
        if (!refusal(spec)) set.push_back(spec);
      }
    }
  }
  return set;
}

namespace {

constexpr std::size_t kWidth = 2;
constexpr std::size_t kRounds = 100;
constexpr std::int32_t kRadius = 10;
constexpr double kMeanForward = 3e6;  ///< ns; shorter stages are not looped unless V is given

/// Cuts on or behind the last segment move back, so that every stage has one.
void move_back(Cuts& cuts) {
  for (std::size_t i = cuts.size() - 1; i-- > 1;) cuts[i] = std::min(cuts[i], cuts[i + 1] - 1);
}

/// The cuts shifted to the left, the first one most.
Cuts shifted(const Cuts& from) {
  const std::size_t k = from.size() - 2;
  const double delta = 0.08 * from[1];
  Cuts cuts = from;
  cuts[1] = std::max(1, from[1] - std::max(1, static_cast<std::int32_t>(std::nearbyint(delta))));
  for (std::size_t i = 1; i < k; ++i) {
    const double share = 0.9 * static_cast<double>(k - i) / static_cast<double>(k) + 0.1;
    const auto by = static_cast<std::int32_t>(std::nearbyint(delta * share));
    cuts[i + 1] = std::max(cuts[i] + 1, from[i + 1] - by);
  }
  move_back(cuts);
  return cuts;
}

/// Move B: cut j goes to q, the gaps on either side of it in proportion. Empty if out of order.
Cuts stretched(const Cuts& cuts, std::size_t j, std::int32_t q) {
  const std::int32_t n = cuts.back(), p = cuts[j];
  Cuts moved = cuts;
  double at = 1;
  for (std::size_t i = 1; i + 1 < cuts.size(); ++i) {
    const double gap = cuts[i] - (i == 1 ? 1 : cuts[i - 1]);
    at += gap * (i <= j ? static_cast<double>(q) / p
                        : static_cast<double>(n - 1 - q) / static_cast<double>(n - 1 - p));
    moved[i] = static_cast<std::int32_t>(std::nearbyint(at));
    if (moved[i] == moved[i - 1]) ++moved[i];
    if (moved[i] <= moved[i - 1] || moved[i] >= n) return {};
  }
  return moved;
}

/// All moves of all cuts, in order, each once.
std::vector<Cuts> neighbours(const Cuts& cuts) {
  const std::int32_t n = cuts.back();
  const auto stages = static_cast<std::int32_t>(cuts.size()) - 1;
  const std::int32_t gap = std::max(1, n / (8 * stages));
  std::vector<Cuts> moves;
  for (std::size_t j = 1; j + 1 < cuts.size(); ++j) {
    const std::int32_t p = cuts[j], left = j == 1 ? 1 : cuts[j - 1],
                       right = j + 2 == cuts.size() ? n - 2 : cuts[j + 1];
    const std::int32_t first = std::max(1, std::min(std::max(left + gap, p - kRadius), p));
    const std::int32_t last = std::max(std::min(right - gap, p + kRadius), p);
    for (std::int32_t q = first; q <= last; ++q) {
      if (q == p) continue;
      moves.push_back(cuts);
      moves.back()[j] = q;
      if (p < n - 1) moves.push_back(stretched(cuts, j, q));
      if (moves.back().empty() || moves.back() == cuts) moves.pop_back();
    }
  }
  return moves;
}

/// Beam search over the cuts of one schedule.
class Beam {
 public:
  Beam(const Problem& problem, Candidates& candidates)
      : problem_(problem), candidates_(candidates), schedule_(candidates.schedule()) {}

  bool feasible(const Cuts& cuts) const {
    if (candidates_.surely_too_full(cuts)) return false;
    const Prices plan =
        evaluate(problem_.layers, problem_.cluster, schedule_, candidates_.placement(),
                 candidates_.model().partition(cuts), problem_.memory_rule);
    for (std::size_t r = 0; r < plan.peak_memory.size(); ++r)
      if (plan.peak_memory[r] > problem_.memory_limit[r]) return false;
    return true;
  }

  /// The best feasible cuts it comes across; nullopt if there are none.
  std::optional<Cuts> run(const Cuts& start) {
    entries_ = {{start, candidates_.time(start), feasible(start), false}};
    for (std::size_t round = 0; round < kRounds; ++round) {
      const std::vector<Entry> present = entries_;
      bool grown = false;
      for (const Entry& entry : present)
        if (!entry.done) grown = explore(entry.cuts) || grown;
      if (!grown) break;
    }
    for (const Entry& entry : entries_)
      if (entry.feasible) return entry.cuts;
    return std::nullopt;
  }

 private:
  struct Entry {
    Cuts cuts;
    double time;
    bool feasible, done;
  };

  /// Looks at the neighbourhood of an entry of the beam; true if something of it joins.
  bool explore(const Cuts& cuts) {
    const auto self = std::ranges::find(entries_, cuts, &Entry::cuts);
    if (self != entries_.end()) self->done = true;
    const std::vector<Cuts> moves = neighbours(cuts);
    std::vector<double> times;
    candidates_.times(moves, times, kInfinite);
    std::vector<std::size_t> order(moves.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return times[i]; });
    std::vector<Entry> found;
    for (const std::size_t i : order) {
      if (found.size() == kWidth || (full() && times[i] >= entries_.back().time)) break;
      if (std::ranges::find(found, moves[i], &Entry::cuts) != found.end()) continue;
      if (std::ranges::find(entries_, moves[i], &Entry::cuts) != entries_.end()) continue;
      if (feasible(moves[i])) found.push_back({moves[i], times[i], true, false});
    }
    bool joined = false;
    for (Entry& entry : found) {
      if (full() && entry.time >= entries_.back().time) continue;
      entries_.push_back(std::move(entry));
      std::ranges::stable_sort(entries_, {}, &Entry::time);
      if (entries_.size() > kWidth) entries_.resize(kWidth);
      joined = true;
    }
    return joined;
  }
  bool full() const { return entries_.size() == kWidth; }

  const Problem& problem_;
  Candidates& candidates_;
  const Schedule schedule_;
  std::vector<Entry> entries_;
};

class ReferenceSearch {
 public:
  explicit ReferenceSearch(const Problem& problem)
      : problem_(problem),
        model_(problem.layers, problem.cluster, problem.memory_rule, false, problem.norm),
        pool_(problem.memory_limit) {}

  Answer run() {
    std::map<std::size_t, std::vector<ScheduleSpec>> by_stages_per_rank;
    for (const ScheduleSpec& spec : problem_.schedules)
      by_stages_per_rank[spec.stages_per_rank].push_back(spec);
    for (const auto& [stages_per_rank, specs] : by_stages_per_rank) {
      const bool given = by_stages_per_rank.size() == 1;
      if (model_.last() < static_cast<std::int32_t>(specs.front().stages()) + 4) {
        reject(specs, 0, "the model has too few nodes for so many stages");
        break;
      }
      const double mean =
          model_
              .time(model_.cluster().kind_of_device[problem_.device_of_rank[0].index()],
                    Work::Forward)
              .back() /
          static_cast<double>(specs.front().stages());
      if (stages_per_rank > 1 && !given && mean <= kMeanForward)
        reject(specs, 0, "skipped: a stage is shorter than 3 ms");
      else
        try_all(specs);
    }
    if (best_) pool_.add({*best_});
    pool_.add(closest_);
    return std::move(pool_).take();
  }

 private:
  void reject(const std::vector<ScheduleSpec>& specs, std::size_t first, const char* reason) {
    for (std::size_t i = first; i < specs.size(); ++i)
      pool_.reject({specs[i], {.why = Why::NotTried, .words = reason}});
  }

  /// The schedules of one V, until one of them gains less than 1 %.
  void try_all(const std::vector<ScheduleSpec>& specs) {
    std::optional<Cuts> last;  // that improved the best at this V
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const double before = best_time();
      Candidates candidates(model_, problem_, specs[i]);
      std::optional<Cuts> found = search_one(candidates, last);
      pool_.count(candidates.evaluated());
      if (found && candidates.best_time() < before) {
        if (best_) pool_.reject({best_->spec, {.why = Why::Slower}});
        best_ = candidates.best();
        last = std::move(found);
      } else {
        pool_.reject({specs[i], {.why = found ? Why::Slower : Why::NothingFound}});
      }
      if (!(best_time() < 0.99 * before)) {
        reject(specs, i + 1, "not tried: the one before gained less than 1 %");
        return;
      }
    }
  }

  std::optional<Cuts> search_one(Candidates& candidates, const std::optional<Cuts>& last) {
    Beam beam(problem_, candidates);
    std::optional<Cuts> start = last;
    if (!start)
      start =
          reference_cuts(model_.held(Hold::Fixed), model_.held(Hold::Saved), candidates.stages(),
                         [&](const Cuts& cuts) { return beam.feasible(cuts); });
    if (!start) return std::nullopt;
    const std::optional<Cuts> found = beam.run(*start);
    const Cuts& shown = found ? *found : *start;
    candidates.offer(shown, candidates.time(shown));
    note_closest(candidates.closest(), closest_);
    return found;
  }

  double best_time() const {
    return best_ ? static_cast<double>(best_->estimate.count()) : kInfinite;
  }

  const Problem& problem_;
  CutModel model_;
  Pool pool_;
  std::optional<Priced> best_;
  std::optional<Infeasible> closest_;
};

}  // namespace

std::optional<Cuts> reference_cuts(const std::vector<double>& weight,
                                   const std::vector<double>& kept, std::size_t stages,
                                   const std::function<bool(const Cuts&)>& feasible) {
  const std::size_t n = weight.size() - 1;
  if (stages > n) return std::nullopt;
  const double mean = (weight.back() + kept.back()) / static_cast<double>(stages);
  Cuts cuts{0};
  double load = 0, parameters = 0;
  for (std::size_t l = 0; l < n && cuts.size() < stages; ++l) {
    const double layer_weight = weight[l + 1] - weight[l];
    const double layer = layer_weight + kept[l + 1] - kept[l];
    if (load + layer > mean && parameters > 0) {
      cuts.push_back(static_cast<std::int32_t>(l) + 1);
      load = layer, parameters = layer_weight;
    } else {
      load += layer, parameters += layer_weight;
    }
  }
  if (cuts.size() < stages) return std::nullopt;
  cuts.push_back(static_cast<std::int32_t>(n));
  move_back(cuts);
  Cuts attempt = cuts;
  for (int round = 0; round <= 10 && stages > 1; ++round) {
    if (feasible(attempt)) return attempt;
    attempt = shifted(attempt);
  }
  return cuts;
}

Answer reference_search(const Problem& problem) {
  PFEIFE_CHECK(!problem.cuts, "reference mode chooses cuts");
  return ReferenceSearch(problem).run();
}

}  // namespace pfeife
