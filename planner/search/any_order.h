// What no order of the actions goes below, for any cuts into stages of a placement, whatever the
// memory.
//
// Whatever the order, a rank has its work to do after something and before something. `AnyOrderRow`
// names a chain: the first microbatch comes to one of the rank's stages, on its way forward or
// back; the rank does all that is left of its work, for all microbatches; then it is done, or the
// last microbatch goes back to the first stage. The length of each is a sum over the stages, so
// that weights of rows turn into a bound as those of paths do (cut_bound.h).
#pragma once

#include <optional>

#include "planner/search/cut_bound.h"
#include "planner/search/search.h"

namespace pfeife {

struct AnyOrderRow {
  std::uint32_t rank = 0;
  std::size_t stages_passed = 0;  ///< on the way forward, 0 .. V - 1
  /// The first microbatch comes to the rank's last stage but `stages_back` - 1 on its way back,
  /// 1 .. V; 0 = it comes forward.
  std::size_t stages_back = 0;
  /// The last microbatch leaves the rank's stage number `leaves` - 1 (in their order) on its way
  /// back, 1 .. V; 0 = the rank's own end counts.
  std::size_t leaves = 0;

  /// As certificates write it: f for every stage passed, b for every stage back, d for `leaves`.
  CertifiedPath certified() const;
};

class AnyOrder {
 public:
  /// Keeps nothing of its arguments. With listed schedules, too: only the placement matters.
  AnyOrder(const CutModel& model, const Problem& problem, const ScheduleSpec& spec);

  /// Step time (ns) that no order of any kind goes below.
  double bound() const { return bound_; }
  /// What proves it to the judge. `least_load` ([stage], as in CertifiedProof) must make sure that
  /// every stage sends to the next.
  CertifiedProof proof(std::vector<std::int64_t> least_load) const;

 private:
  ScheduleSpec spec_;
  double bound_ = 0;
  std::vector<AnyOrderRow> rows_;      // those that have weight together
  std::vector<std::int64_t> weights_;  // [row] of rows_
  std::vector<AnyOrderRow> alone_;     // one stage a rank: those that count one by one
};

}  // namespace pfeife
