// 1F1B (PipeDream-Flush, Narayanan et al. 2021; DAPPLE, Fan et al. 2021): rank r does D - r
// forwards, then one backward and one forward in turn. Prefetch lets it start min(D - 1 - r, P)
// more forwards early ("eager" 1F1B), or as many as a vector says for each rank. It is the looped
// family with one stage a rank.
#include "planner/schedules/looped.h"

namespace pfeife {

static std::optional<Refusal> refuse_other_than_one_stage(const ScheduleSpec& spec) {
  if (auto refused = one_stage_a_rank(spec)) return refused;
  return refuse_cyclic(spec);
}

Family one_forward_one_backward() {
  return {.name = "1f1b",
          .rule = "D - r forwards on rank r (and `prefetch` more), then one B and one F in turn",
          .refuse = refuse_other_than_one_stage,
          .generate = looped_schedule,
          .placement = round_robin,
          .takes_prefetch = true};
}

}  // namespace pfeife
