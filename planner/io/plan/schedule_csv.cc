#include "planner/io/plan/schedule_csv.h"

#include <algorithm>
#include <set>

#include "planner/io/files/open_file.h"
#include "planner/io/files/text_file.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// The cell without the blanks and the quotes around it, as Python's csv module and torch take it.
std::string_view bare(std::string_view cell) {
  const auto trim = [&] {
    while (cell.starts_with(' ') || cell.starts_with('\t')) cell.remove_prefix(1);
    while (cell.ends_with(' ') || cell.ends_with('\t')) cell.remove_suffix(1);
  };
  trim();
  if (cell.size() > 1 && cell.starts_with('"') && cell.ends_with('"')) {
    cell = cell.substr(1, cell.size() - 2);
    trim();
  }
  return cell;
}

std::vector<Cell> read_row(const TextLine& line, const std::string& name, Dialect dialect) {
  std::vector<Cell> row;
  for (std::size_t begin = 0; begin <= line.text.size();) {
    const std::size_t end = std::min(line.text.find(',', begin), line.text.size());
    ParsedCell parsed = parse_cell(bare(line.text.substr(begin, end - begin)), dialect);
    if (!parsed.cell)
      throw ConfigError({name, line.number, static_cast<int>(begin) + 1},
                        "row " + std::to_string(line.number) + ", cell " +
                            std::to_string(row.size() + 1) + ": " + parsed.error);
    row.push_back(std::move(*parsed.cell));
    begin = end + 1;
  }
  return row;
}

/// The cell as the reader understands it; nothing if it has no word for it and needs none.
std::optional<std::string> written(const Cell& cell, Reader reader, std::size_t rank,
                                   std::size_t position) {
  const auto* action = std::get_if<Action>(&cell);
  if (reader == Reader::Torch && action) {
    if (action->op == Op::OptimizerStep || action->op == Op::ReduceNorm) return std::nullopt;
    if (action->microbatch && action->microbatch->slices > 1)
      throw ConfigError({}, "row " + std::to_string(rank + 1) + ", cell " +
                                std::to_string(position + 1) + ": " + to_string(*action) +
                                " names a slice, which torch.distributed.pipelining cannot do; its "
                                "microbatches are whole");
    if (is_head(action->op))
      throw ConfigError({}, "row " + std::to_string(rank + 1) + ", cell " +
                                std::to_string(position + 1) + ": " + to_string(*action) +
                                " is of an output layer that all ranks share, which "
                                "torch.distributed.pipelining cannot do; its last stage has it");
    if (is_copy(action->op))
      throw ConfigError({}, "row " + std::to_string(rank + 1) + ", cell " +
                                std::to_string(position + 1) + ": " + to_string(*action) +
                                " copies between device and host, which "
                                "torch.distributed.pipelining cannot do");
    if (is_skip(*action))
      throw ConfigError({}, "row " + std::to_string(rank + 1) + ", cell " +
                                std::to_string(position + 1) + ": " + to_string(*action) +
                                " is a skip, which torch.distributed.pipelining cannot do; its "
                                "stages only talk to their "
                                "neighbours");
  }
  return to_string(cell);
}

/// Stages of the row whose gradients nothing in it reduces.
std::set<StageId> unreduced(const std::vector<Cell>& row) {
  std::set<StageId> stages, reduced;
  for (const Cell& cell : row)
    for_each_action(cell, [&](const Action& action) {
      if (makes_weight_gradient(action.op)) stages.insert(action.stage);
      if (action.op == Op::ReduceGrad) reduced.insert(action.stage);
    });
  std::erase_if(stages, [&](StageId stage) { return reduced.contains(stage); });
  return stages;
}

}  // namespace

Schedule read_schedule(std::string_view text, const std::string& name, Dialect dialect) {
  Schedule schedule;
  std::vector<TextLine> lines = lines_of(text);
  while (!lines.empty() && bare(lines.back().text).empty()) lines.pop_back();
  for (const TextLine& line : lines) {
    if (bare(line.text).empty())
      throw ConfigError(
          {name, line.number, 1},
          "row " + std::to_string(line.number) +
              " is empty; row r holds the actions of rank r, and every rank has some");
    schedule.rows.push_back(read_row(line, name, dialect));
  }
  if (schedule.rows.empty())
    throw ConfigError({name, 0, 0}, "the schedule is empty: one row a rank is expected");
  return in_slices(std::move(schedule));
}

Schedule read_schedule_file(const std::filesystem::path& path, Dialect dialect) {
  const TextFile file = read_text_file(is_folder(path) ? path / "schedule.csv" : path);
  return read_schedule(file.text, file.name, dialect);
}

std::string write_schedule(const Schedule& schedule, Reader reader) {
  std::string text;
  for (std::size_t r = 0; r < schedule.ranks(); ++r) {
    bool first = true;
    for (std::size_t p = 0; p < schedule.rows[r].size(); ++p) {
      const auto cell = written(schedule.rows[r][p], reader, r, p);
      if (!cell) continue;
      if (!first) text += ',';
      text += *cell;
      first = false;
    }
    if (reader == Reader::Torch)
      for (const StageId stage : unreduced(schedule.rows[r]))
        text += stream_all(',', to_string(stage), "REDUCE_GRAD");
    text += '\n';
  }
  return text;
}

}  // namespace pfeife
