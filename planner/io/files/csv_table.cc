#include "planner/io/files/csv_table.h"

#include <string_view>

#include "planner/io/files/quantity.h"

namespace pfeife {
namespace {

constexpr std::size_t kMostRows = 100'000;
constexpr std::size_t kMostCells = 1'000'000;  // of the whole table
constexpr std::size_t kMostColumns = 1000;
constexpr std::size_t kLongestCell = 1000;

bool runs_as_formula(std::string_view text) {
  return !text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos &&
         !parse_number(std::string(text));
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Content of the quoted cell that begins at `begin`; `end` is set to the place after its last
/// quote.
std::string quoted_cell(std::string_view line, std::size_t begin, std::size_t& end,
                        const SourceLocation& where) {
  std::string content;
  for (std::size_t i = begin + 1; i < line.size(); ++i) {
    if (line[i] != '"') {
      content += line[i];
    } else if (i + 1 < line.size() && line[i + 1] == '"') {
      content += line[i++];
    } else {
      end = i + 1;
      return content;
    }
  }
  throw ConfigError(where, "a quote is not closed in this line");
}

std::vector<CsvCell> cells_of(const TextLine& line, const std::string& file) {
  std::vector<CsvCell> cells;
  std::size_t at = 0;
  while (true) {
    const std::size_t begin = line.text.find_first_not_of(" \t", at);
    const std::size_t start = begin == std::string_view::npos ? at : begin;
    CsvCell cell{"", {file, line.number, static_cast<int>(start) + 1}};
    std::size_t comma = line.text.find(',', at);
    if (start < line.text.size() && line.text[start] == '"') {
      std::size_t end = 0;
      cell.text = quoted_cell(line.text, start, end, cell.where);
      comma = line.text.find(',', end);
      if (!trimmed(line.text.substr(end, comma == line.text.npos ? comma : comma - end)).empty())
        throw ConfigError(cell.where, "text after a quoted cell; put the whole cell into quotes");
    } else {
      cell.text = trimmed(line.text.substr(at, comma == line.text.npos ? comma : comma - at));
    }
    if (cell.text.starts_with('\'') && runs_as_formula(std::string_view(cell.text).substr(1)))
      cell.text.erase(0, 1);
    if (cell.text.size() > kLongestCell)
      throw ConfigError(cell.where, "a cell of more than 1000 characters");
    cells.push_back(std::move(cell));
    if (cells.size() > kMostColumns)
      throw ConfigError({file, line.number}, "more than 1000 cells in a row");
    if (comma == std::string_view::npos) return cells;
    at = comma + 1;
  }
}

}  // namespace

std::string csv_cell(const std::string& text) {
  const std::string shown = (runs_as_formula(text) ? "'" : "") + text;
  if (shown.find_first_of(",\"\n\r") == std::string::npos) return shown;
  std::string out = "\"";
  for (const char c : shown) out += c == '"' ? std::string("\"\"") : std::string{c};
  return out + '"';
}

CsvTable CsvTable::parse(const TextFile& file) {
  require_plain_text(file);
  CsvTable table;
  for (const TextLine& line : lines_of(file.text)) {
    if (trimmed(line.text).empty() || line.text.starts_with('#')) continue;
    std::vector<CsvCell> cells = cells_of(line, file.name);
    if (table.header_.empty()) {
      table.header_ = std::move(cells);
      continue;
    }
    if (cells.size() != table.header_.size())
      throw ConfigError({file.name, line.number},
                        stream_all("this row has ", cells.size(), " cells, the header has ",
                                   table.header_.size()));
    if (table.rows_.size() == kMostRows || (table.rows_.size() + 1) * cells.size() > kMostCells)
      throw ConfigError({file.name, line.number}, "more than 100,000 rows or a million cells");
    table.rows_.push_back(std::move(cells));
  }
  if (table.header_.empty())
    throw ConfigError({file.name}, "is empty; its first line must name the columns");
  for (std::size_t i = 0; i < table.header_.size(); ++i)
    if (table.index_of(table.header_[i].text) != i)
      throw ConfigError(table.header_[i].where,
                        "column '" + table.header_[i].text + "' is there twice; remove one");
  return table;
}

void CsvTable::check_columns(const std::vector<std::string>& allowed) const {
  for (const CsvCell& cell : header_) {
    bool known = false;
    std::string list;
    for (const std::string& name : allowed) {
      known |= name == cell.text;
      list += (list.empty() ? "" : ", ") + name;
    }
    if (known) continue;
    const std::string nearest = nearest_spelling(cell.text, allowed);
    if (header_.size() == 1 && cell.text.find_first_of(";\t") != std::string::npos)
      throw ConfigError(cell.where, "the cells of a row must be separated by commas");
    throw ConfigError(cell.where,
                      "unknown column '" + cell.text + "'" +
                          (nearest.empty() ? "." : ", did you mean '" + nearest + "'?") +
                          " Columns are: " + list);
  }
}

std::vector<std::string> CsvTable::columns() const {
  std::vector<std::string> names;
  for (const CsvCell& cell : header_) names.push_back(cell.text);
  return names;
}

const CsvCell& CsvTable::at(std::size_t row, const std::string& column) const {
  const std::optional<std::size_t> index = index_of(column);
  if (!index) throw ConfigError(where(), "column '" + column + "' is missing");
  return rows_.at(row)[*index];
}

std::optional<std::size_t> CsvTable::index_of(const std::string& column) const {
  for (std::size_t i = 0; i < header_.size(); ++i)
    if (header_[i].text == column) return i;
  return std::nullopt;
}

double number_of(const CsvCell& cell, const std::string& column) {
  if (const std::optional<double> number = parse_number(cell.text); number && *number >= 0)
    return *number;
  throw ConfigError(cell.where, column + " is '" + cell.text.substr(0, 40) +
                                    "', it must be a decimal number that is not negative, without "
                                    "unit and thousands separators");
}

}  // namespace pfeife
