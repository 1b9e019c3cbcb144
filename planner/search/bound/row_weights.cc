#include "planner/search/bound/row_weights.h"

#include <algorithm>
#include <cmath>

#include "planner/search/price/numbers.h"

namespace pfeife {
RowWeigher::RowWeigher(const Candidates& candidates, ProofRecord* record)
    : candidates_(candidates), record_(record) {
  const CutModel& model = candidates.model();
  const double work = std::max(1.0, model.load(0).back());
  double longest = 0;
  for (std::size_t s = 0; s < candidates.stages(); ++s) {
    const std::size_t kind = candidates.costs().kind(s);
    longest = std::max(longest, model.load(kind).back() + model.time(kind, Work::Optimizer).back() +
                                    4 * candidates.costs().action_overhead(s));
  }
  // Weighted sums stay below 2^53, also where they are partial: a path counts a stage at most once
  // a microbatch.
  const auto microbatches = static_cast<double>(candidates.spec().microbatches);
  target_ = std::clamp(std::floor(kExact / (16 * longest * (microbatches + 1))), 1.0, 16777216.0);
  for (std::size_t r = 0; r < candidates.live().ranks(); ++r) {
    const double limit = std::max(1.0, static_cast<double>(candidates.memory_limit()[r].value));
    byte_scale_.push_back(work * microbatches / static_cast<double>(candidates.stages()) / limit);
  }
}

BoundRow RowWeigher::limit(std::size_t rank, const LiveMoment& moment) const {
  BoundRow row{
      PathCounts<std::int32_t>(candidates_.stages()), {}, static_cast<std::int32_t>(rank), &moment};
  const std::vector<std::size_t>& stages = candidates_.live().stages(rank);
  for (std::size_t k = 0; k < stages.size(); ++k) {
    row.counts.held[0][stages[k]] = 1;
    row.counts.held[1][stages[k]] = static_cast<std::int32_t>(moment.saved[k]);
    row.counts.held[2][stages[k]] = static_cast<std::int32_t>(moment.weight_saved[k]);
  }
  return row;
}

/// At least the weighted bytes of the limits that any cuts could have.
double RowWeigher::most_bytes(std::span<const Weighted> rows) const {
  const CutModel& model = candidates_.model();
  double sum = 0;
  for (const auto& [row, weight] : rows) {
    if (!row->is_limit()) continue;
    double saved = 0;
    for (std::size_t k = 0; k < row->moment->saved.size(); ++k)
      saved = std::max({saved, row->moment->saved[k], row->moment->weight_saved[k]});
    const auto rank = static_cast<std::size_t>(row->rank);
    const double most =
        model.held(Hold::Fixed).back() +
        saved * (model.held(Hold::Saved).back() + model.held(Hold::WeightSaved).back()) +
        model.most_temporary(row->moment->op);
    sum += weight * byte_scale_[rank] *
           std::max(most, static_cast<double>(candidates_.memory_limit()[rank].value));
  }
  return sum;
}

RowWeights RowWeigher::weigh(std::span<const Weighted> rows, double factor) const {
  const CutCosts& costs = candidates_.costs();
  const std::size_t stages = candidates_.stages();
  RowWeights found{PathCounts<double>(stages)};
  if (const double bytes = most_bytes(rows); bytes * factor > kExact / 8)
    factor = kExact / 8 / bytes;
  for (const auto& [row, weight] : rows) {
    const auto rank = static_cast<std::size_t>(std::max(row->rank, 0));
    const double whole =
        std::round(row->is_limit() ? weight * factor * byte_scale_[rank] : weight * factor);
    if (whole <= 0) continue;
    const PathCounts<std::int32_t>& counts = row->counts;
    for (std::size_t s = 0; s < stages; ++s) {
      for (std::size_t w = 0; w < kWorks; ++w) found.counts.work[w][s] += whole * counts.work[w][s];
      for (std::size_t h = 0; h < kHolds; ++h) found.counts.held[h][s] += whole * counts.held[h][s];
      found.counts.forward[s] += whole * counts.forward[s];
      found.counts.backward[s] += whole * counts.backward[s];
      found.constant +=
          whole * ((counts.work[0][s] + counts.work[1][s]) * costs.action_overhead(s) +
                   counts.work[3][s] * costs.step_overhead(s));
    }
    if (row->is_limit()) {
      found.counts.temporary.resize(stages);
      const auto running = static_cast<std::size_t>(row->moment->running);
      found.counts.temporary[candidates_.live().stages(rank)[running]]
                            [static_cast<std::size_t>(row->moment->op)] += whole;
      found.constant -= whole * static_cast<double>(candidates_.memory_limit()[rank].value);
    } else {
      found.sum += whole;
    }
    if (record_ == nullptr) continue;
    const auto number = row->is_limit()
                            ? record_->number(CertifiedMoment{static_cast<std::uint32_t>(rank),
                                                              row->moment->action})
                            : record_->number(row->turns);
    found.certified.push_back({number, static_cast<std::int64_t>(whole)});
  }
  return found;
}

}  // namespace pfeife
