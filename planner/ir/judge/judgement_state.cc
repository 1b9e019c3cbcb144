// What a stage does besides computing microbatches: parameters are there when needed, gradients are
// reduced when complete, the optimizer comes after that.
#include <map>
#include <set>

#include "planner/ir/judge/judgement.h"

namespace pfeife::judgement {
namespace {

class StateJudge {
 public:
  StateJudge(const Reading& reading, Findings& findings) : reading_(reading), findings_(findings) {
    for (const Life& life : reading.lives)
      if (const auto last = life.last(); last) {
        auto& known = last_backward_[life.stage];
        if (!known || *known < *last) known = last;
      }
  }

  void judge() {
    for (std::uint32_t r = 0; r < reading_.schedule.ranks(); ++r) judge_row(r);
    judge_reductions_missing();
    judge_optimizers_missing();
    judge_norms_missing();
  }

 private:
  void judge_row(std::uint32_t r) {
    std::set<StageId>
        sharded;  // stages of this row that have UNSHARD somewhere, and are released now
    for_each_in(r, [&](const Action& a, Place) {
      if (a.op == Op::Unshard) sharded.insert(a.stage);
    });
    std::set<StageId> gathered;
    for_each_in(r, [&](const Action& a, Place place) {
      if (is_compute(a.op) && sharded.contains(a.stage) && !gathered.contains(a.stage))
        findings_.add(place,
                      to_string(a) + " computes while the parameters of stage " +
                          to_string(a.stage) +
                          " are not gathered (no UNSHARD since the last RESHARD)",
                      false);
      if (a.op == Op::Unshard && !gathered.insert(a.stage).second)
        findings_.add(place, to_string(a) + ": the parameters are gathered already", false);
      if (a.op == Op::Reshard && gathered.erase(a.stage) == 0)
        findings_.add(place, to_string(a) + ": the parameters are not gathered", false);
      if (a.op == Op::ReduceGrad || a.op == Op::OptimizerStep) judge_end(a, place);
      if (reading_.required.stages.mode == Mode::Forward &&
          (a.op == Op::ReduceGrad || a.op == Op::ReduceNorm || a.op == Op::OptimizerStep))
        findings_.add(place, to_string(a) + " has no gradients: training.mode is forward", false);
    });
    judge_norm(r);
  }
  /// REDUCE_NORM: once in a row, behind all that makes or reduces gradients, before what it is for.
  void judge_norm(std::uint32_t r) {
    std::optional<Place> norm, early_step;
    for_each_in(r, [&](const Action& a, Place place) {
      const bool gradients = makes_weight_gradient(a.op) || a.op == Op::ReduceGrad;
      if (a.op == Op::ReduceNorm && norm)
        findings_.add(place, to_string(a) + " is there a second time; first at position " +
                                 std::to_string(norm->position));
      if (a.op == Op::ReduceNorm && !norm) norm = place;
      if (norm && gradients)
        findings_.add(place, to_string(a) + " stands behind the REDUCE_NORM that needs it", false);
      if (!norm && !early_step && a.op == Op::OptimizerStep) early_step = place;
    });
    if (norm) norms_.emplace(r, *norm);
    if (norm && early_step)
      findings_.add(*early_step, "the optimizer step stands before the rank's REDUCE_NORM", false);
  }
  void judge_norms_missing() {
    if (norms_.empty()) return;
    for (std::uint32_t r = 0; r < reading_.schedule.ranks(); ++r)
      if (!norms_.contains(r) && !reading_.schedule.rows[r].empty())
        findings_.add({r, static_cast<std::uint32_t>(reading_.schedule.rows[r].size())},
                      "REDUCE_NORM is missing, while other ranks have theirs");
  }
  template <class Visitor>
  void for_each_in(std::uint32_t r, Visitor&& visit) const {
    for (std::uint32_t p = 0; p < reading_.schedule.rows[r].size(); ++p)
      for_each_action(reading_.schedule.rows[r][p], [&](const Action& a) {
        visit(a, Place{r, p});
      });
  }

  /// REDUCE_GRAD and OPTIMIZER_STEP: once, after the last backward, the step after the reduction.
  void judge_end(const Action& a, Place place) {
    auto& ends = a.op == Op::ReduceGrad ? reduced_ : stepped_;
    const auto [known, added] = ends.try_emplace(a.stage, place);
    if (!added)
      findings_.add(place, to_string(a) + " is there a second time; first at position " +
                               std::to_string(known->second.position));
    const auto last = last_backward_.find(static_cast<std::uint32_t>(a.stage.value));
    if (last != last_backward_.end() && last->second->rank == place.rank && place < *last->second)
      findings_.add(place,
                    to_string(a) + " stands before the last backward of stage " +
                        to_string(a.stage) + " at position " +
                        std::to_string(last->second->position),
                    false);
    if (a.op == Op::ReduceGrad && stepped_.contains(a.stage))
      findings_.add(place, to_string(a) + " stands after the optimizer step that needs it");
  }

  void judge_reductions_missing() {
    if (!reading_.required.lowered) return;
    for (const auto& group : reading_.required.stages.tied)
      for (const StageId s : group)
        if (s.index() < reading_.home.size() && reading_.home[s.index()] && !reduced_.contains(s)) {
          findings_.add_missing(reading_, *reading_.home[s.index()],
                                to_string(s) + "REDUCE_GRAD is missing: stage " + to_string(s) +
                                    " shares a parameter with other stages");
          reduced_.emplace(s, Place{});  // told once, however many parameters it shares
        }
    if (!reading_.required.stages.replicas) return;
    for (std::size_t s = 0; s < reading_.home.size(); ++s)
      if (reading_.home[s] && !reduced_.contains(StageId{s}))
        findings_.add_missing(reading_, *reading_.home[s],
                              std::to_string(s) + "REDUCE_GRAD is missing: replicas reduce " +
                                  "the gradients of each stage");
  }

  void judge_optimizers_missing() {
    if (stepped_.empty()) return;
    for (std::size_t s = 0; s < reading_.home.size(); ++s)
      if (reading_.home[s] && !stepped_.contains(StageId{s}))
        findings_.add(
            {*reading_.home[s],
             static_cast<std::uint32_t>(reading_.schedule.rows[*reading_.home[s]].size())},
            std::to_string(s) + "OPTIMIZER_STEP is missing, while other stages have theirs", false);
  }

  const Reading& reading_;
  Findings& findings_;
  std::map<std::uint32_t, std::optional<Place>> last_backward_;  // [stage]
  std::map<StageId, Place> reduced_, stepped_;
  std::map<std::uint32_t, Place> norms_;  // [rank]
};

}  // namespace

void judge_state(const Reading& reading, Findings& findings) {
  StateJudge(reading, findings).judge();
}

}  // namespace pfeife::judgement
