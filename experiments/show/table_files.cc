#include "experiments/show/table_files.h"

#include <algorithm>
#include <string_view>

#include "planner/ir/result/result_engine.h"
#include "plots/screen/columns.h"

namespace pfeife {
namespace {

/// Texts, not yet escaped; the first `words` columns are words, the others figures.
struct Row {
  std::vector<std::string> cells;
  std::string reason;     ///< why the plan has no figures; "" = it has
  bool best = false;      ///< the fastest of its case that fits
  std::size_t plans = 0;  ///< of the case, in its first row; 0 in the others
};
struct Grid {
  std::size_t keys = 0, words = 0;
  std::vector<std::string> head;
  std::vector<Row> rows;
  bool lacks = false;  ///< some figure says how much memory a plan lacks
  std::string engines, memory_unit;
  std::string gap;  ///< what it is over; "" = there is none
};

bool lack_is_in(const std::string& cell) { return cell.find('!') != std::string::npos; }

Grid grid_of(const std::vector<CaseRecord>& cases, const std::vector<std::string>& names) {
  const TableFacts facts = table_facts(cases);
  const std::vector<Column> columns = columns_of(cases, facts, names);
  const std::vector<Key> keys = keys_of(cases);
  Grid grid;
  grid.engines = engines_text(cases);
  grid.memory_unit = facts.memory.name;
  if (std::ranges::find(columns, "gap", &Column::name) != columns.end())
    grid.gap = gap_words(cases);
  for (const Key& key : keys) grid.head.push_back(key.head);
  grid.keys = keys.size();
  grid.head.push_back("plan");
  grid.words = grid.head.size();
  for (const Column& column : columns) grid.head.push_back(column.head);
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const std::vector<const PlanRecord*> plans = plans_in_order(cases[c]);
    const std::optional<std::size_t> best = best_plan(cases[c]);
    for (const PlanRecord* plan : plans) {
      Row row{{},
              has_time(plan->row) ? "" : plan->reason,
              best && plan == &cases[c].plans[*best],
              plan == plans.front() ? plans.size() : 0};
      for (const Key& key : keys) row.cells.push_back(key.values[c]);
      row.cells.push_back(plan_name(*plan));
      for (const Column& column : columns) row.cells.push_back(column.text(facts, cases[c], *plan));
      grid.lacks =
          grid.lacks || std::any_of(row.cells.begin() + static_cast<std::ptrdiff_t>(grid.words),
                                    row.cells.end(), lack_is_in);
      grid.rows.push_back(std::move(row));
    }
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

/// The cells of a row; a figure with " !" behind it, or one of several with "!", lacks memory. The
/// mark takes no room, so that figures stay aligned.
std::string latex_line(const Grid& grid, const Row& row) {
  std::string text;
  const std::size_t shown = row.reason.empty() ? row.cells.size() : grid.words;
  for (std::size_t c = 0; c < shown; ++c) {
    std::string cell = row.cells[c];
    const bool lacks = c >= grid.words && cell.ends_with(" !");
    if (lacks) cell.resize(cell.size() - 2);
    std::string written = latex(cell);
    if (lacks) written += "\\rlap{$^\\dagger$}";
    if (c >= grid.words)
      for (std::size_t at = 0; (at = written.find('!', at)) != std::string::npos;)
        written.replace(at, 1, "$^\\dagger$");
    if (row.best && c + 1 >= grid.words && c <= grid.words && !written.empty())
      written = "\\textbf{" + written + "}";
    if (c < grid.keys)
      written = row.plans == 0 ? ""
                : row.plans == 1
                    ? written
                    : "\\multirow{" + std::to_string(row.plans) + "}{*}{" + written + "}";
    text += (c > 0 ? " & " : "") + written;
  }
  if (!row.reason.empty())
    text += " & \\multicolumn{" + std::to_string(row.cells.size() - grid.words) + "}{l}{" +
            latex(row.reason) + "}";
  return text + " \\\\\n";
}

/// Points that the table takes in type of 10 points: 5 a character, 12 between two columns.
std::size_t points_wide(const Grid& grid) {
  std::size_t points = 0;
  for (std::size_t c = 0; c < grid.head.size(); ++c) {
    std::size_t most = grid.head[c].size();
    for (const Row& row : grid.rows) most = std::max(most, row.cells[c].size());
    points += 5 * most + 12;
  }
  return points;
}

std::string advice(std::size_t points) {
  constexpr std::size_t kColumn = 241, kPage = 505;  // of a page of two columns, in points
  const std::string width = "about " + std::to_string(points) + " pt wide in 10 pt type: ";
  if (points <= kColumn) return width + "fits a column (table)";
  if (points <= kPage) return width + "use table*";
  return width + "too wide for table*, choose fewer columns with --columns";
}

}  // namespace

std::string markdown_table(const std::vector<CaseRecord>& cases,
                           const std::vector<std::string>& columns) {
  const Grid grid = grid_of(cases, columns);
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += " " + markdown(cell) + " |";
    return text + "\n";
  };
  std::string text = line(grid.head) + "|";
  for (std::size_t c = 0; c < grid.head.size(); ++c) text += c < grid.words ? "---|" : "---:|";
  text += "\n";
  for (const Row& row : grid.rows) {
    std::vector<std::string> cells = row.cells;
    if (!row.reason.empty() && cells.size() > grid.words) cells[grid.words] = row.reason;
    text += line(cells);
  }
  text += "\n" + markdown(grid.engines);
  if (!grid.gap.empty()) text += "; " + markdown(grid.gap);
  if (grid.lacks) text += "; !: " + grid.memory_unit + " over the limit, does not fit";
  return text + "\n";
}

std::string latex_table(const std::vector<CaseRecord>& cases,
                        const std::vector<std::string>& columns) {
  const Grid grid = grid_of(cases, columns);
  std::string text = "% \\usepackage{booktabs,multirow}; " + advice(points_wide(grid)) + "\n% " +
                     grid.engines + "; bold: the fastest plan that fits\n" + "\\begin{tabular}{" +
                     std::string(grid.words, 'l') +
                     std::string(grid.head.size() - grid.words, 'r') + "}\n\\toprule\n";
  for (std::size_t c = 0; c < grid.head.size(); ++c)
    text += (c > 0 ? " & " : "") + latex(grid.head[c]);
  text += " \\\\\n";
  for (const Row& row : grid.rows)
    text += (row.plans > 0 ? "\\midrule\n" : "") + latex_line(grid, row);
  text += "\\bottomrule\n";
  const auto note = [&](const std::string& words) {
    text += "\\multicolumn{" + std::to_string(grid.head.size()) + "}{l}{\\footnotesize " + words +
            "}\\\\\n";
  };
  if (grid.lacks) note("$\\dagger$ " + grid.memory_unit + " over the limit, does not fit");
  if (!grid.gap.empty()) note(latex(grid.gap));
  return text + "\\end{tabular}\n";
}

}  // namespace pfeife
