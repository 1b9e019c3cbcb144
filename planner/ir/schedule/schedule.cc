#include "planner/ir/schedule/schedule.h"

#include <algorithm>
#include <utility>

namespace pfeife {

static std::vector<DeviceId> device_per_rank(std::size_t ranks) {
  std::vector<DeviceId> devices;
  for (std::size_t r = 0; r < ranks; ++r) devices.emplace_back(static_cast<std::int64_t>(r));
  return devices;
}

Placement round_robin(std::size_t stages, std::size_t ranks) {
  Placement placement{{}, device_per_rank(ranks)};
  for (std::size_t s = 0; s < stages; ++s)
    placement.rank_of_stage.emplace_back(static_cast<std::int64_t>(s % ranks));
  return placement;
}

Placement v_shape(std::size_t ranks) {
  Placement placement{{}, device_per_rank(ranks)};
  for (std::size_t s = 0; s < 2 * ranks; ++s)
    placement.rank_of_stage.emplace_back(
        static_cast<std::int64_t>(s < ranks ? s : 2 * ranks - 1 - s));
  return placement;
}

std::optional<Placement> placement_of(const Schedule& schedule) {
  const std::size_t stages = stage_count(schedule);
  constexpr std::int64_t kUnseen = -1;
  Placement placement{std::vector<RankId>(stages, RankId{kUnseen}),
                      device_per_rank(schedule.ranks())};
  bool clash = false;
  for (std::size_t r = 0; r < schedule.ranks(); ++r) {
    const RankId rank{r};
    for (const Cell& cell : schedule.rows[r])
      for_each_action(cell, [&](const Action& action) {
        RankId& at = placement.rank_of_stage[action.stage.index()];
        clash = clash || (at.value != kUnseen && at != rank);
        at = rank;
      });
  }
  if (clash ||
      std::ranges::find(placement.rank_of_stage, RankId{kUnseen}) != placement.rank_of_stage.end())
    return std::nullopt;
  return placement;
}

std::size_t stage_count(const Schedule& schedule) {
  std::size_t count = 0;
  for (const auto& row : schedule.rows)
    for (const Cell& cell : row)
      for_each_action(
          cell, [&](const Action& action) { count = std::max(count, action.stage.index() + 1); });
  return count;
}

std::size_t microbatch_count(const std::vector<Cell>& row) {
  std::size_t count = 0;
  for (const Cell& cell : row)
    for_each_action(cell, [&](const Action& action) {
      if (action.microbatch) count = std::max(count, action.microbatch->index() + 1);
    });
  return count;
}

std::size_t microbatch_count(const Schedule& schedule) {
  std::size_t count = 0;
  for (const auto& row : schedule.rows) count = std::max(count, microbatch_count(row));
  return count;
}

std::size_t head_barriers(const Schedule& schedule) {
  const std::size_t stages = stage_count(schedule);
  bool shared = false, behind = false;
  std::vector<bool> rest(microbatch_count(schedule), false);
  for (const auto& row : schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& action) {
        shared = shared || action.op == Op::HeadShare;
        if (action.stage.index() + 1 != stages || !action.microbatch) return;
        if (action.op == Op::HeadRest) rest[action.microbatch->index()] = true;
        if (makes_input_gradient(action.op) && !rest[action.microbatch->index()]) behind = true;
      });
  return shared ? behind ? 1 : 2 : 0;
}

std::size_t slice_count(const std::vector<Cell>& row) {
  std::int32_t slices = 0;
  for (auto cell = row.begin(); cell != row.end() && slices == 0; ++cell)
    for_each_action(*cell, [&](const Action& action) {
      if (action.microbatch && slices == 0) slices = action.microbatch->slices;
    });
  return static_cast<std::size_t>(std::max(slices, 1));
}

std::size_t slice_count(const Schedule& schedule) {
  return schedule.rows.empty() ? 1 : slice_count(schedule.rows.front());
}

Schedule in_slices(Schedule read) {
  std::int32_t slices = 0;
  const auto visit = [&](auto&& what) {
    for (auto& row : read.rows)
      for (Cell& cell : row) {
        const auto part = [&](Action& action) {
          if (action.microbatch && action.microbatch->slices > 1) what(*action.microbatch);
        };
        if (auto* action = std::get_if<Action>(&cell)) part(*action);
        if (auto* overlap = std::get_if<Overlap>(&cell))
          std::ranges::for_each(overlap->parts, part);
      }
  };
  visit([&](const MicrobatchId& id) { slices = std::max(slices, id.slice() + 1); });
  visit([&](MicrobatchId& id) {
    id = MicrobatchId{id.microbatch() * slices + id.slice(), slices};
  });
  return read;
}

static void note_forwards(const std::vector<Cell>& row, std::vector<MicrobatchId>& last) {
  for (const Cell& cell : row)
    for_each_action(cell, [&](const Action& action) {
      if (action.op == Op::Forward && action.stage.index() < last.size())
        last[action.stage.index()] = *action.microbatch;
    });
}

std::vector<MicrobatchId> last_forwards(const std::vector<Cell>& row, std::size_t stages) {
  std::vector<MicrobatchId> last(stages, MicrobatchId{-1});
  note_forwards(row, last);
  return last;
}

std::vector<MicrobatchId> last_forwards(const Schedule& schedule, std::size_t stages) {
  std::vector<MicrobatchId> last(stages, MicrobatchId{-1});
  for (const std::vector<Cell>& row : schedule.rows) note_forwards(row, last);
  return last;
}

StageGraph chain(std::size_t stages, Mode mode) {
  StageGraph graph;
  graph.stages = stages;
  graph.mode = mode;
  for (std::size_t s = 0; s + 1 < stages; ++s)
    graph.edges.push_back({StageId{s}, StageId{s + 1}, mode == Mode::Train});
  return graph;
}

std::string to_string(Queues queues) {
  switch (queues) {
    case Queues::None:
      return "none";
    case Queues::Edge:
      return "edge";
    case Queues::Pair:
      return "pair";
    case Queues::Rank:
      return "rank";
  }
  return "";
}

std::string to_string(Links links) { return links == Links::Delay ? "delay" : "shared"; }

std::string knobs(const ScheduleSpec& spec) {
  std::string text;
  if (spec.loop_batch) text = "loop_batch=" + std::to_string(*spec.loop_batch);
  if (spec.slices > 1)
    text += (text.empty() ? "slices=" : ", slices=") + std::to_string(spec.slices);
  if (spec.slices > 1 && spec.slice_lengths == SliceLengths::EqualTime) text += " of equal time";
  const char* before = text.empty() ? "prefetch=" : ", prefetch=";
  for (const std::size_t early : spec.prefetch)
    text += std::exchange(before, ",") + std::to_string(early);
  before = text.empty() ? "ranks=" : ", ranks=";
  for (const RankId rank : spec.rank_of_stage) text += std::exchange(before, " ") + to_string(rank);
  return text;
}

std::string schedule_name(const std::string& family, std::size_t stages_per_rank,
                          const std::string& chosen) {
  std::string name = family;
  if (stages_per_rank > 1) name += ", V=" + std::to_string(stages_per_rank);
  return chosen.empty() ? name : name + ", " + chosen;
}

std::string schedule_name(const ScheduleSpec& spec) {
  return schedule_name(spec.family, spec.stages_per_rank, knobs(spec));
}

}  // namespace pfeife
