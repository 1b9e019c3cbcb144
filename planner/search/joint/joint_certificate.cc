#include "planner/search/joint/joint_certificate.h"

#include <algorithm>
#include <limits>
#include <map>

#include "planner/schedules/families.h"
#include "planner/search/bound/proof_record.h"
#include "planner/search/bound/stage_paths.h"

namespace pfeife {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// [stage] The least loads by which every stage of `spec` surely sends to the next, and gradients
/// back; nullopt = none are known.
std::optional<std::vector<std::int64_t>> sure_loads(const Searched& in, const ScheduleSpec& spec) {
  const auto rank_of_stage = placement_for(spec).rank_of_stage;
  for (const Contender& c : in.contenders)
    if (c.proof && c.proof->links_sure() &&
        c.candidates->placement().rank_of_stage == rank_of_stage)
      return c.proof->certificate(1).least_load;
  return std::nullopt;
}

/// Of each schedule what can be proven of it, and from that what can be proven of all.
class Provable {
 public:
  Provable(const Searched& in, double said) : in_(in), said_(said), bound_(said) {}

  /// By its own tree, or of any order or by the paths of its stages alone if that proves more.
  void add(const Contender& c) {
    One one{in_.problem.schedules[c.number], c.proof.get()};
    double bound = c.proof ? c.proof->bound() : 0;
    if (c.impossible.empty() && bound < said_ && said_ < kInfinite) {
      const AnyOrder& any = any_order(one.spec);
      if (bound_of(one.spec, any) > bound)
        bound = bound_of(one.spec, any), one = {one.spec, nullptr, &any};
      if (const double stages = bound < said_ ? bound_of_stages(c) : 0; stages > bound)
        bound = stages, one = {one.spec, nullptr, nullptr, c.candidates.get()};
    }
    if (c.impossible.empty()) bound_ = std::min(bound_, bound);
    all_.push_back(one);
  }
  void add(const AnyOrder& any) {
    bound_ = std::min(bound_, bound_of(any.spec(), any));
    all_.push_back({any.spec(), nullptr, &any});
  }

  double bound() const { return bound_; }
  std::vector<CertifiedProof> proofs(std::int64_t bound) const {
    std::vector<CertifiedProof> proofs;
    for (const One& one : all_)
      proofs.push_back(one.any_order ? proof_of(one.spec, *one.any_order)
                       : one.stages  ? stage_proof(*one.stages, bound)
                       : one.tree    ? one.tree->certificate(bound)
                                     : CertifiedProof{.spec = one.spec});
    return proofs;
  }

 private:
  struct One {
    ScheduleSpec spec;
    const BranchAndBound* tree = nullptr;
    const AnyOrder* any_order = nullptr;  // else
    const Candidates* stages = nullptr;   // else; without all three it has no cuts
  };

  /// Schedules of one placement have the same.
  const AnyOrder& any_order(const ScheduleSpec& spec) {
    auto& known = any_order_[{placement_for(spec).rank_of_stage, spec.microbatches}];
    if (!known) known = std::make_unique<AnyOrder>(in_.model, in_.problem, spec);
    return *known;
  }
  double bound_of(const ScheduleSpec& spec, const AnyOrder& any) const {
    return linked_only(in_) || sure_loads(in_, spec) ? any.bound() : any.bound_by_rows();
  }
  double bound_of_stages(const Contender& c) const {
    if (!linked_only(in_) && !in_.model.all_linked()) return 0;
    const std::vector<CutCosts::Latency> none(c.candidates->stages(), {0, 0});
    return stage_bound(in_.model, c.candidates->costs(), c.candidates->schedule(), none, said_);
  }
  CertifiedProof proof_of(const ScheduleSpec& spec, const AnyOrder& any) const {
    const auto loads = sure_loads(in_, spec);
    const bool linked = !loads && linked_only(in_);
    CertifiedProof proof = loads    ? any.proof(*loads)
                           : linked ? any.proof(std::vector<std::int64_t>(spec.stages(), 0))
                                    : any.proof_by_rows();
    proof.spec = spec, proof.linked = linked;
    return proof;
  }

  const Searched& in_;
  double said_, bound_;
  std::vector<One> all_;
  std::map<std::pair<std::vector<RankId>, std::size_t>, std::unique_ptr<AnyOrder>> any_order_;
};

}  // namespace

std::shared_ptr<const Certificate> joint_certificate(const Searched& in,
                                                     const std::vector<AnyOrder>& built,
                                                     const SearchOutcome& outcome) {
  if (!outcome.bound && !(outcome.infeasible && outcome.infeasible->proven)) return nullptr;
  Provable provable(in,
                    outcome.bound ? static_cast<double>(outcome.bound->time.count()) : kInfinite);
  for (const Contender& c : in.contenders) provable.add(c);
  if (!outcome.plans.empty() && outcome.plans.front().order)
    for (const AnyOrder& one : built) provable.add(one);
  if (provable.bound() < 1 || (!outcome.bound && provable.bound() < kInfinite)) return nullptr;
  const std::int64_t bound =
      outcome.bound ? static_cast<std::int64_t>(provable.bound()) : Certificate::kNothingFits;
  return std::make_shared<Certificate>(certificate_of(in.problem, bound, provable.proofs(bound)));
}

}  // namespace pfeife
