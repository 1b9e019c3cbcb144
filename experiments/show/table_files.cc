#include "experiments/show/table_files.h"

#include <string_view>

#include "experiments/show/table.h"
#include "experiments/show/table_columns.h"

namespace pfeife {
namespace {

/// Texts, not yet escaped; the first `words` columns are words, the others figures.
struct Grid {
  std::size_t words = 3;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

Grid grid_of(const std::vector<CaseRecord>& cases) {
  const std::vector<FigureColumn> columns = figure_columns(cases);
  const MemoryUnit unit = memory_unit(cases);
  bool all_fit = true;
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans) all_fit = all_fit && plan.row.feasible;
  Grid grid;
  grid.head = {"case", "plan", "schedule"};
  for (const FigureColumn& column : columns) grid.head.push_back(column.top + " " + column.bottom);
  grid.head.push_back(std::string("estimated peak memory, ") + unit.name);
  grid.head.push_back(std::string("limit, ") + unit.name);
  if (!all_fit) grid.head.push_back("fits");
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans) {
      std::vector<std::string> row{heading(record), plan.row.plan,
                                   plan.row.estimate ? schedule_name(plan.row) : "none"};
      for (const FigureColumn& column : columns) row.push_back(column.text(plan));
      row.push_back(plan.row.peak_memory ? unit.text(*plan.row.peak_memory) : "-");
      row.push_back(unit.text(plan.row.memory_limit));
      if (!all_fit) row.push_back(plan.row.feasible ? "yes" : "no");
      grid.rows.push_back(std::move(row));
    }
  return grid;
}

std::string markdown(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      out += ' ';
    } else if (c == '<' || c == '>' || c == '&') {
      out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;";
    } else {
      if (std::string_view("\\|`*_[]#~$").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string latex(const std::string& text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '\\':
        out += "\\textbackslash{}";
        break;
      case '~':
        out += "\\textasciitilde{}";
        break;
      case '^':
        out += "\\textasciicircum{}";
        break;
      case '<':
        out += "\\textless{}";
        break;
      case '>':
        out += "\\textgreater{}";
        break;
      case '"':
        out += "''";
        break;
      case '\n':
      case '\r':
        out += ' ';
        break;
      case '&':
      case '%':
      case '$':
      case '#':
      case '_':
      case '{':
      case '}':
        out += '\\';
        [[fallthrough]];
      default:
        out += c;
    }
  return out;
}

template <class Escape>
std::string line(const std::vector<std::string>& cells, const Escape& escape, const char* between) {
  std::string text;
  for (const std::string& cell : cells) text += (&cell == &cells[0] ? "" : between) + escape(cell);
  return text;
}

}  // namespace

std::string markdown_table(const std::vector<CaseRecord>& cases) {
  const Grid grid = grid_of(cases);
  std::string text = "| " + line(grid.head, markdown, " | ") + " |\n|";
  for (std::size_t c = 0; c < grid.head.size(); ++c) text += c < grid.words ? "---|" : "---:|";
  text += "\n";
  for (const auto& row : grid.rows) text += "| " + line(row, markdown, " | ") + " |\n";
  return text;
}

std::string latex_table(const std::vector<CaseRecord>& cases) {
  const Grid grid = grid_of(cases);
  std::string text = "\\begin{tabular}{" + std::string(grid.words, 'l') +
                     std::string(grid.head.size() - grid.words, 'r') + "}\n\\hline\n";
  text += line(grid.head, latex, " & ") + " \\\\\n\\hline\n";
  for (const auto& row : grid.rows) text += line(row, latex, " & ") + " \\\\\n";
  return text + "\\hline\n\\end{tabular}\n";
}

}  // namespace pfeife
