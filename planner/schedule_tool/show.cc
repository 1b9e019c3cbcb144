// The grid: what every rank does in each unit of time.
#include <algorithm>

#include "planner/ir/basics/grid.h"
#include "planner/schedule_tool/argument_text.h"
#include "planner/schedule_tool/lifetimes.h"
#include "planner/schedule_tool/verbs.h"

namespace pfeife::tool {
namespace {

bool one_stage_each(const Schedule& schedule) { return stage_count(schedule) <= schedule.ranks(); }

/// "2F0", or "F0" where the stage goes without saying; "F4|B0" for an overlap.
std::string cell_text(const Cell& cell, bool with_stage) {
  std::string text;
  for_each_action(cell, [&](const Action& a) {
    const std::string part = to_string(a);
    text += (text.empty() ? "" : "|") +
            (with_stage ? part : part.substr(part.find_first_not_of("0123456789")));
  });
  return text;
}

}  // namespace

std::string grid_text(const Schedule& schedule, bool held, Mode mode) {
  const Timing timing = time_schedule(schedule, {.mode = mode}, {}, {});
  const bool with_stage = !one_stage_each(schedule);
  const std::size_t slices = slice_count(schedule);
  const auto unit = nanoseconds_from_ms(1.0 / static_cast<double>(slices)).count();
  const auto steps = static_cast<std::size_t>(step_time(timing.trace).count() / unit);
  std::vector<std::vector<std::string>> rows(schedule.ranks() + 1,
                                             std::vector<std::string>(steps + 1, "."));
  rows[0][0] = "";
  for (std::size_t t = 0; t < steps; ++t) rows[0][t + 1] = t % 5 == 0 ? std::to_string(t) : "";
  for (std::size_t r = 0; r < schedule.ranks(); ++r) rows[r + 1][0] = "rank " + std::to_string(r);
  for (const Event& event : timing.trace.events) {
    if (event.kind != TaskKind::Compute) continue;
    const auto begin = static_cast<std::size_t>(event.start.count() / unit);
    const auto end = static_cast<std::size_t>(event.end.count() / unit);
    for (std::size_t t = begin; t < end; ++t)
      rows[event.rank.index() + 1][t + 1] = t == begin ? cell_text(event.cell, with_stage) : "-";
  }
  std::size_t width = 0;  // all units equally wide, so that length is time
  for (const auto& row : rows)
    for (std::size_t t = 1; t <= steps; ++t) width = std::max(width, row[t].size());
  for (auto& text : rows[0])
    if (&text != &rows[0][0]) text.resize(width, ' ');
  if (held) {
    const std::vector<std::string> texts = held_texts(schedule);
    for (std::size_t r = 0; r < rows.size(); ++r) rows[r].push_back(texts[r]);
  }
  return plain_grid(rows, false);
}

std::vector<std::string> held_texts(const Schedule& schedule) {
  std::vector<std::string> texts{"in flight  I to W"};
  for (std::size_t r = 0; r < schedule.ranks(); ++r) {
    const Holdings most = peak_holdings(schedule, RankId{r});
    std::string text = std::to_string(most.in_flight);
    text.resize(std::max<std::size_t>(text.size() + 2, 11), ' ');
    texts.push_back(text + std::to_string(most.for_weight));
  }
  return texts;
}

}  // namespace pfeife::tool
