// Random tiny problems with certificates.
#pragma once

#include "planner/search/bound/any_order.h"
#include "planner/search/bound/proof_record.h"
#include "tests/search/random_instance.h"

namespace pfeife {

inline Answer certified_search(const Problem& problem) {
  SearchOptions options;
  options.iterations = 30;
  options.certificate = true;
  return search(problem, options);
}

/// Random layers, and what no order of a random schedule's stages goes below, whatever the cuts.
struct OfAnyOrder {
  explicit OfAnyOrder(std::mt19937& random)
      : instance(random_instance(random, 1, 0.5)), spec(instance.schedules[0]) {
    for (Bytes& limit : instance.memory_limit) limit = Bytes{1 << 30};
    const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
    if (model.last() < static_cast<std::int32_t>(spec.stages())) return;
    const AnyOrder any(model, instance.problem(), spec);
    bound = any.bound();
    certificate = certificate_of(instance.problem(), static_cast<std::int64_t>(any.bound_by_rows()),
                                 {any.proof()});
  }
  Instance instance;
  ScheduleSpec spec;
  double bound = 0;
  std::optional<Certificate> certificate;  // nullopt: there are no cuts
};

}  // namespace pfeife
