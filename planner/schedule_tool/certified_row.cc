#include "planner/schedule_tool/certified_row.h"

#include <algorithm>

#include "planner/ir/basics/error.h"

namespace pfeife::tool {
namespace {

/// The numbers of stages that a row says, turn by turn.
struct Row {
  std::size_t skip, come, back, leave, low, high;

  Row(const CertifiedPath& path, std::size_t stages) {
    const auto turns = [&](char turn) {
      return static_cast<std::size_t>(std::ranges::count(path.turns, turn));
    };
    const std::size_t returned = turns('b'), none = turns('h');
    skip = turns('s'), leave = turns('d'), low = turns('l');
    come = returned > 0 ? stages : skip + turns('f');
    if (std::max({come, returned, none, low, leave + 1, skip + 1}) > stages)
      throw ConfigError({}, "a row of stages that there are not");
    back = returned > 0 ? stages - returned : stages;
    high = stages - none;
  }
  /// The stage that the first microbatch comes to, or comes back to. After all stages it turns
  /// around in the last.
  std::size_t stage(std::size_t stages) const { return std::min({come, back, stages - 1}); }
  bool comes_back(std::size_t s) const { return s > back; }
  /// It takes time to come there: else the rank may begin at once, wherever.
  bool takes_a_way(std::size_t stages) const { return skip < come || back < stages; }
};

}  // namespace

std::vector<RowStage> row_stages(const CertifiedPath& path, const ScheduleSpec& spec,
                                 const std::vector<RankId>& rank_of_stage) {
  const std::size_t stages = rank_of_stage.size();
  const Row row(path, stages);
  const auto n = static_cast<std::int64_t>(spec.microbatches);
  std::vector<RowStage> counts(stages);
  const auto need_forward = [&](std::size_t from, std::size_t to) {
    for (std::size_t s = from + 1; s <= to; ++s) counts[s].waits_forward = true;
  };
  const auto need_back = [&](std::size_t from, std::size_t to) {
    for (std::size_t s = to + 1; s <= from; ++s) counts[s].waits_back = true;
  };
  for (std::size_t s = 0; s < stages; ++s) {
    const bool mine = rank_of_stage[s].index() == path.rank && row.low <= s && s < row.high;
    const bool forward = mine && s >= row.come;
    const bool input = mine && !row.comes_back(s) && s >= row.leave;
    RowStage& of = counts[s];
    of.forward = s < row.come ? row.skip <= s : forward ? n : 0;
    of.input = input ? n : row.comes_back(s) || s < row.leave;
    of.weight = row.leave > 0 ? s == 0 : input ? n : 0;
    of.step = row.leave > 0 ? s == 0 : input;
    of.up = row.skip < s && s <= row.come;
    of.back = row.comes_back(s) || (0 < s && s <= row.leave);
    // All of it comes after the microbatch has come, and before it leaves.
    if (const std::size_t at = row.stage(stages); row.takes_a_way(stages) && (forward || input))
      at <= s ? need_forward(at, s) : need_back(at, s);
    if (row.leave > 0 && (forward || input))
      row.leave <= s ? need_back(s, row.leave) : need_forward(s, row.leave);
  }
  for (RowStage& of : counts) of.waits_forward |= of.up, of.waits_back |= of.back;
  return counts;
}

}  // namespace pfeife::tool
