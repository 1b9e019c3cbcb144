#include "planner/ir/result/measured_pairs.h"

#include <algorithm>

namespace pfeife {
namespace {

std::vector<std::size_t> measured_by_step(const std::vector<PlanRecord>& plans) {
  std::vector<std::size_t> order;
  for (std::size_t p = 0; p < plans.size(); ++p)
    if (plans[p].row.measure && plans[p].measured) order.push_back(p);
  std::ranges::stable_sort(order, {}, [&](std::size_t p) { return *plans[p].row.measure; });
  return order;
}

bool predicted_faster(const ResultRow& a, const ResultRow& b) {
  return a.simulate && b.simulate ? *a.simulate < *b.simulate : a.estimate < b.estimate;
}

}  // namespace

std::vector<MeasuredPair> measured_pairs(const CaseRecord& record) {
  const std::vector<std::size_t> order = measured_by_step(record.plans);
  std::vector<MeasuredPair> pairs;
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      MeasuredPair pair{.faster = order[i], .slower = order[j]};
      const auto rounds = [&](std::size_t p) {
        return std::span(record.plans[p].measured->rounds);
      };
      if (rounds(pair.faster).size() != rounds(pair.slower).size()) continue;
      auto longer = paired_difference(rounds(pair.faster), rounds(pair.slower));
      if (longer && longer->median < 0) {  // the medians say otherwise: rounds differed
        std::swap(pair.faster, pair.slower);
        longer = paired_difference(rounds(pair.faster), rounds(pair.slower));
      }
      if (!longer) continue;
      pair.longer = *longer;
      pair.predicted =
          predicted_faster(record.plans[pair.faster].row, record.plans[pair.slower].row);
      pairs.push_back(pair);
    }
  return pairs;
}

}  // namespace pfeife
