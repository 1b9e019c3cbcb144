// A piece of the schedule around one violation, for the terminal: ranks as rows, positions as
// columns.
#include <algorithm>

#include "planner/ir/basics/grid.h"
#include "planner/ir/judge/validate.h"

namespace pfeife {
namespace {

constexpr std::size_t kColumnsBefore = 4, kColumns = 9, kRanksBefore = 3, kRanks = 7;

/// The text of a cell in the grid; idle cells show as dots, a cell past the end of the row as
/// nothing.
std::string shown(const Schedule& schedule, std::size_t rank, std::size_t position, bool marked) {
  const auto& row = schedule.rows[rank];
  std::string text = position < row.size() ? to_string(row[position]) : marked ? "(end)" : "";
  if (text.empty() && position < row.size()) text = ".";
  return marked ? ">" + text + "<" : text;
}

std::size_t window_start(std::size_t focus, std::size_t before) {
  return focus > before ? focus - before : 0;
}

}  // namespace

std::string marked_grid(const Schedule& schedule, const Violation& violation) {
  const std::size_t focus = violation.rank.index();
  const std::size_t column0 = window_start(violation.position, kColumnsBefore),
                    rank0 = window_start(focus, kRanksBefore);
  const std::size_t rank_end = std::min(schedule.ranks(), rank0 + kRanks);
  std::vector<std::vector<std::string>> cells{{""}};
  for (std::size_t c = column0; c < column0 + kColumns; ++c) cells[0].push_back(std::to_string(c));
  for (std::size_t r = rank0; r < rank_end; ++r) {
    cells.push_back({"rank " + std::to_string(r)});
    for (std::size_t c = column0; c < column0 + kColumns; ++c)
      cells.back().push_back(shown(schedule, r, c, r == focus && c == violation.position));
  }
  return plain_grid(cells, false) + "rank " + std::to_string(focus) + ", position " +
         std::to_string(violation.position) + ": " + violation.message + "\n";
}

}  // namespace pfeife
