// validate(): reads the rows once, then one judge after the other. A schedule that is incomplete or
// mismatched is not executed: it would hang for the reason already told.
#include "planner/ir/judge/validate.h"

#include <algorithm>

#include "planner/ir/judge/judgement.h"

namespace pfeife {

std::vector<Violation> validate(const Schedule& schedule, const Requirements& requirements,
                                const Semantics& semantics) {
  using namespace judgement;
  Findings findings;
  if (schedule.rows.empty()) {
    findings.add({}, "the schedule has no rows: one a rank is expected");
    return std::move(findings).sorted();
  }
  const Reading reading = read(schedule, requirements, findings);
  judge_lives(reading, findings);
  judge_head(reading, findings);
  if (requirements.lowered) judge_transfers(reading, findings);
  judge_state(reading, findings);
  if (!findings.hangs()) judge_deadlock(reading, semantics, findings);
  return std::move(findings).sorted();
}

Requirements requirements_of(const Schedule& schedule, StageGraph stages, Mode mode) {
  stages.mode = mode;
  if (mode == Mode::Forward) {
    for (StageGraph::Edge& edge : stages.edges) edge.gradient = false;
    stages.tied.clear();
  }
  Requirements required{std::move(stages), microbatch_count(schedule), /*lowered=*/true,
                        slice_count(schedule)};
  const std::size_t last_slices = required.microbatches % required.slices;
  if (last_slices > 0) required.microbatches += required.slices - last_slices;
  return required;
}

Requirements requirements_of(const Schedule& schedule, bool lowered, Mode mode) {
  Requirements required = requirements_of(schedule, chain(stage_count(schedule), mode), mode);
  required.lowered = lowered;
  if (mode == Mode::Train) required.stages.head_barriers = head_barriers(schedule);
  std::vector<StageGraph::Edge> skips;
  for (const auto& row : schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& a) {
        if (!is_transfer(a.op) || !a.peer || std::abs(a.peer->value - a.stage.value) == 1) return;
        skips.push_back({std::min(a.stage, *a.peer), std::max(a.stage, *a.peer),
                         mode == Mode::Train && a.direction == Direction::Backward});
      });
  std::ranges::sort(skips);  // no gradient before gradient
  for (const StageGraph::Edge& skip : skips) {
    if (skip.to.index() >= required.stages.stages || skip.from == skip.to) continue;
    auto& edges = required.stages.edges;
    if (!edges.empty() && edges.back().from == skip.from && edges.back().to == skip.to)
      edges.back().gradient |= skip.gradient;
    else
      edges.push_back(skip);
  }
  std::ranges::sort(required.stages.edges);
  return required;
}

namespace judgement {

void Findings::add_missing(const Reading& reading, std::uint32_t rank, std::string message) {
  add({rank, static_cast<std::uint32_t>(reading.schedule.rows[rank].size())}, std::move(message));
}

std::vector<Violation> Findings::sorted() && {
  std::ranges::stable_sort(violations_, {}, [](const Violation& v) {
    return std::pair{v.rank, v.position};
  });
  return std::move(violations_);
}

std::string ranges_missing(std::span<const std::uint32_t> sorted_numbers, std::uint32_t count,
                           std::size_t slices) {
  std::string text;
  const auto name = [&](std::uint32_t number) {
    return to_string(MicrobatchId{number, static_cast<std::int32_t>(slices)});
  };
  const auto add = [&](std::uint32_t first, std::uint32_t end) {
    if (first >= end) return;
    text += (text.empty() ? "" : ", ") + name(first);
    if (end - first > 1) text += "-" + name(end - 1);
  };
  std::uint32_t next = 0;
  for (const std::uint32_t number : sorted_numbers) {
    add(next, number);
    next = number + 1;
  }
  add(next, count);
  return text;
}

}  // namespace judgement
}  // namespace pfeife
