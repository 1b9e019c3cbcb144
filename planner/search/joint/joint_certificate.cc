#include "planner/search/joint/joint_certificate.h"

#include <algorithm>
#include <map>

#include "planner/schedules/families.h"
#include "planner/search/bound/proof_record.h"
#include "planner/search/bound/stage_paths.h"
#include "planner/search/price/numbers.h"

namespace pfeife {
namespace {

/// What can be proven of each schedule, and from that what can be proven of all.
class Provable {
 public:
  Provable(const Searched& in, double claimed) : in_(in), claimed_(claimed), bound_(claimed) {}

  /// By its own tree, or of any order or by the paths of its stages alone if that proves more.
  void add(const Contender& c) {
    ProofSource source{in_.problem.schedules[c.number], c.proof.get()};
    double bound = c.proof ? c.proof->bound() : 0;
    if (c.impossible.empty() && bound < claimed_ && claimed_ < kInfinite) {
      const AnyOrder& any = any_order(source.spec);
      if (any.bound_by_rows() > bound)
        bound = any.bound_by_rows(), source = {source.spec, nullptr, &any};
      if (const double stages = bound < claimed_ ? bound_of_stages(c) : 0; stages > bound)
        bound = stages, source = {source.spec, nullptr, nullptr, c.candidates.get()};
    }
    if (c.impossible.empty()) bound_ = std::min(bound_, bound);
    all_.push_back(source);
  }
  void add(const AnyOrder& any) {
    bound_ = std::min(bound_, any.bound_by_rows());
    all_.push_back({any.spec(), nullptr, &any});
  }

  bool empty() const { return all_.empty(); }
  double bound() const { return bound_; }
  std::vector<CertifiedProof> proofs(std::int64_t bound) const {
    std::vector<CertifiedProof> proofs;
    for (const ProofSource& source : all_)
      proofs.push_back(source.any_order ? proof_of(source.spec, *source.any_order)
                       : source.stages  ? stage_proof(*source.stages, bound)
                       : source.tree    ? source.tree->certificate(bound)
                                        : CertifiedProof{.spec = source.spec});
    return proofs;
  }

 private:
  struct ProofSource {
    ScheduleSpec spec;
    const BranchAndBound* tree = nullptr;
    const AnyOrder* any_order = nullptr;  // else
    const Candidates* stages = nullptr;   // else; without all three it has no cuts
  };

  /// Schedules of one placement have the same.
  const AnyOrder& any_order(const ScheduleSpec& spec) {
    const std::vector<RankId> ranks = placement_for(spec).rank_of_stage;
    auto& known = any_order_[{ranks, spec.microbatches}];
    if (!known)
      known = std::make_unique<AnyOrder>(in_.model, in_.problem, spec,
                                         cut_class(in_.contenders, ranks));
    return *known;
  }
  double bound_of_stages(const Contender& c) const {
    if (!linked_only(in_.contenders) && !in_.model.all_linked()) return 0;
    const std::vector<CutCosts::Latency> none(c.candidates->stages(), {0, 0});
    return stage_bound(in_.model, c.candidates->costs(), c.candidates->schedule(), none, claimed_);
  }
  CertifiedProof proof_of(const ScheduleSpec& spec, const AnyOrder& any) const {
    CertifiedProof proof = any.proof();
    proof.spec = spec;
    return proof;
  }

  const Searched& in_;
  double claimed_, bound_;
  std::vector<ProofSource> all_;
  std::map<std::pair<std::vector<RankId>, std::size_t>, std::unique_ptr<AnyOrder>> any_order_;
};

}  // namespace

std::shared_ptr<const Certificate> joint_certificate(const Searched& in,
                                                     const std::vector<AnyOrder>& built,
                                                     const Answer& outcome) {
  if (!outcome.bound && !(outcome.infeasible && outcome.infeasible->proven)) return nullptr;
  Provable provable(in,
                    outcome.bound ? static_cast<double>(outcome.bound->time.count()) : kInfinite);
  for (const Contender& c : in.contenders) provable.add(c);
  for (const AnyOrder& bounded : built)
    if (outcome.bound && std::ranges::find(outcome.bound->schedules, bounded.spec()) !=
                             outcome.bound->schedules.end())
      provable.add(bounded);
  if (provable.empty() || provable.bound() < 1 || (!outcome.bound && provable.bound() < kInfinite))
    return nullptr;
  const std::int64_t bound =
      outcome.bound ? static_cast<std::int64_t>(provable.bound()) : Certificate::kNothingFits;
  return std::make_shared<Certificate>(certificate_of(in.problem, bound, provable.proofs(bound)));
}

}  // namespace pfeife
