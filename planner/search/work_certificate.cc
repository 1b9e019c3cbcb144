#include "planner/search/work_certificate.h"

#include <algorithm>
#include <limits>

#include "planner/schedules/families.h"
#include "planner/search/any_order.h"
#include "planner/search/proof_record.h"

namespace pfeife {

std::shared_ptr<const Certificate> work_certificate(const Problem& given) {
  Problem problem = given;
  // Times without recomputation bound every choice of it.
  if (problem.recompute == Recompute::None) problem.recompute = Recompute::Choose;
  const CutModel model(problem.layers, problem.cluster, problem.memory_rule,
                       problem.recompute == Recompute::Full);
  std::vector<CertifiedProof> proofs;
  double least = std::numeric_limits<double>::infinity();
  for (const ScheduleSpec& spec : problem.schedules) {
    const auto same = [&](const CertifiedProof& proof) {
      return placement_for(proof.spec).rank_of_stage == placement_for(spec).rank_of_stage;
    };
    if (std::ranges::any_of(proofs, same)) continue;
    const AnyOrder any(model, problem, spec);
    proofs.push_back(any.proof_by_rows());
    if (spec.stages() <= static_cast<std::size_t>(model.last()))
      least = std::min(least, any.bound_by_rows());
  }
  if (least < 1 || proofs.empty()) return nullptr;
  const std::int64_t bound = least < std::numeric_limits<double>::infinity()
                                 ? static_cast<std::int64_t>(least)
                                 : Certificate::kNothingFits;
  return std::make_shared<Certificate>(certificate_of(problem, bound, std::move(proofs)));
}

}  // namespace pfeife
