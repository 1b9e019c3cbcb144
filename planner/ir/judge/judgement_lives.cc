// The life of a microbatch, or of a slice, in a stage: complete, and in order.
#include <algorithm>

#include "planner/ir/judge/judgement.h"

namespace pfeife::judgement {
namespace {

class LifeJudge {
 public:
  LifeJudge(const Reading& reading, Findings& findings)
      : reading_(reading),
        findings_(findings),
        forward_only_(std::ranges::none_of(reading.lives, has_backward)) {}

  void judge() {
    judge_stages_missing();
    for (std::size_t stage = 0; stage < reading_.home.size(); ++stage)
      if (reading_.home[stage]) judge_complete(stage);
    for (const Life& life : reading_.lives) judge_order(life);
    for (const StageGraph::Edge& edge : reading_.required.stages.edges)
      if (reading_.placed(edge) && !reading_.travels(edge)) judge_local(edge);
  }

 private:
  void judge_stages_missing() {
    std::vector<std::uint32_t> there;
    for (std::uint32_t stage = 0; stage < reading_.home.size(); ++stage)
      if (reading_.home[stage]) there.push_back(stage);
    const std::string missing =
        ranges_missing(there, static_cast<std::uint32_t>(reading_.home.size()));
    if (!missing.empty()) findings_.add_missing(reading_, 0, "stage " + missing + " is on no rank");
  }

  void judge_complete(std::size_t stage) {
    report(stage, "F", [](const Life& l) { return l.forward.has_value(); });
    if (reading_.required.stages.mode == Mode::Forward) return judge_forward_only(stage);
    report(stage, "B (or I and W)", has_backward,
           forward_only_
               ? "; rows of F alone are for training.mode: forward (pfeife-schedule: --forward)"
               : "");
    for (const Life& life : reading_.lives_of(stage)) {
      if (life.backward) continue;
      const std::string name = std::to_string(stage), m = name_of(life);
      if (life.backward_input && !life.backward_weight)
        findings_.add(*life.backward_input, name + "I" + m + " has no " + name + "W" + m);
      if (life.backward_weight && !life.backward_input)
        findings_.add(*life.backward_weight, name + "W" + m + " has no " + name + "I" + m);
    }
  }

  static bool has_backward(const Life& l) {
    return l.backward || l.backward_input || l.backward_weight;
  }
  /// The mode is forward: nothing has a backward.
  void judge_forward_only(std::size_t stage) {
    for (const Life& life : reading_.lives_of(stage))
      for (const auto& [place, op] :
           {std::pair{life.backward, 'B'}, {life.backward_input, 'I'}, {life.backward_weight, 'W'}})
        if (place)
          findings_.add(*place, std::to_string(stage) + op + name_of(life) +
                                    " is of a backward pass; where training.mode is forward, rows "
                                    "have F alone");
  }

  template <class Has>
  void report(std::size_t stage, const char* what, Has&& has, const char* hint = "") {
    std::vector<std::uint32_t> there;
    for (const Life& life : reading_.lives_of(stage))
      if (has(life)) there.push_back(life.microbatch);
    const std::string missing =
        ranges_missing(there, static_cast<std::uint32_t>(reading_.required.microbatches),
                       reading_.required.slices);
    if (!missing.empty())
      findings_.add_missing(
          reading_, *reading_.home[stage],
          "stage " + std::to_string(stage) + " lacks " + what + " of microbatch " + missing + hint);
  }

  /// `late` must stand after `early`; only told if both are there, on one rank.
  void after(const std::optional<Place>& early, const std::optional<Place>& late,
             const std::string& what, const std::string& needed,
             const std::string& reason = ", which it needs") {
    if (!early || !late || early->rank != late->rank || early->position < late->position) return;
    findings_.add(*late, what +
                             (early->position == late->position ? " stands in the same cell as "
                                                                : " stands before ") +
                             needed + reason);
  }

  void judge_order(const Life& life) {
    const std::string stage = std::to_string(life.stage), m = name_of(life);
    after(life.forward, life.backward, stage + "B" + m, stage + "F" + m);
    after(life.forward, life.backward_input, stage + "I" + m, stage + "F" + m);
    after(life.backward_input, life.backward_weight, stage + "W" + m, stage + "I" + m);
    judge_copies(life);
    if (reading_.microbatch(life.microbatch).slice() == 0) return;
    if (const Life* before = reading_.life(life.stage, life.microbatch - 1))
      judge_slices(*before, life);
  }
  /// Away after F, and back before B or I.
  void judge_copies(const Life& life) {
    const std::string stage = std::to_string(life.stage), m = name_of(life);
    const std::string out = stage + "OFFLOAD" + m, back = stage + "RELOAD" + m;
    const std::string backward = stage + (life.backward ? "B" : "I") + m;
    after(life.forward, life.offload, out, stage + "F" + m, ", which saves what it copies");
    after(life.offload, life.reload, back, out);
    after(life.reload, life.gradient(), backward, back);
    if (life.offload && !life.reload)
      findings_.add(*life.offload,
                    out + " has no " + back + ": " + backward + " would not find what it needs");
    if (life.reload && !life.offload) findings_.add(*life.reload, back + " has no " + out);
  }
  std::string name_of(const Life& life) const {
    return to_string(reading_.microbatch(life.microbatch));
  }

  /// Two slices of a microbatch that follow each other.
  void judge_slices(const Life& early, const Life& late) {
    const std::string stage = std::to_string(early.stage);
    after(early.forward, late.forward, stage + "F" + name_of(late), stage + "F" + name_of(early),
          ", whose keys and values it needs");
    after(late.gradient(), early.gradient(), stage + (early.backward ? "B" : "I") + name_of(early),
          stage + (late.backward ? "B" : "I") + name_of(late),
          ", which adds to the gradients of its keys and values");
  }

  /// Values that stay on a rank are there only once they are made.
  void judge_local(const StageGraph::Edge& edge) {
    for (const Life& user : reading_.lives_of(edge.to.index()))
      if (const Life* maker = reading_.life(edge.from.index(), user.microbatch)) {
        const std::string m = name_of(user);
        after(maker->forward, user.forward, to_string(edge.to) + "F" + m,
              to_string(edge.from) + "F" + m);
        if (edge.gradient)
          after(user.gradient(), maker->gradient(),
                to_string(edge.from) + (maker->backward ? "B" : "I") + m,
                to_string(edge.to) + (user.backward ? "B" : "I") + m);
      }
  }

  const Reading& reading_;
  Findings& findings_;
  const bool forward_only_;  // no row has a backward
};

}  // namespace

void judge_lives(const Reading& reading, Findings& findings) {
  LifeJudge(reading, findings).judge();
}

}  // namespace pfeife::judgement
