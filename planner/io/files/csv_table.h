// CSV with a header, as people write it: cells by column name, every cell with its place.
//
// Cells are separated by commas; one that holds a comma stands in double quotes, a quote in it is
// doubled. Blanks around cells are dropped. Empty lines and lines that begin with '#' are comments.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/io/files/text_file.h"
#include "planner/ir/basics/error.h"

namespace pfeife {

/// A text as a cell: quoted where it must be; with ' in front where a spreadsheet would run it as a
/// formula (it begins with =, +, - or @, and is no number). CsvTable takes that ' off again.
std::string csv_cell(const std::string& text);

struct CsvCell {
  std::string text;
  SourceLocation where;
};

class CsvTable {
 public:
  /// Reads `file`. ConfigError for unclosed quotes, rows of another width than the header, a column
  /// that occurs twice, more than 100,000 rows or a million cells, and text that is not plain.
  static CsvTable parse(const TextFile& file);

  const SourceLocation& where() const { return header_.front().where; }
  std::size_t rows() const { return rows_.size(); }
  std::vector<std::string> columns() const;

  /// ConfigError at a column that is not in `allowed`, with the nearest name.
  void check_columns(const std::vector<std::string>& allowed) const;
  bool has(const std::string& column) const { return index_of(column).has_value(); }
  /// A cell of a column; ConfigError at the header if there is no such column.
  const CsvCell& at(std::size_t row, const std::string& column) const;

 private:
  std::optional<std::size_t> index_of(const std::string& column) const;

  std::vector<CsvCell> header_;
  std::vector<std::vector<CsvCell>> rows_;
};

/// The cell's plain decimal number; ConfigError, naming the column, if it is none, not finite or
/// negative.
double number_of(const CsvCell& cell, const std::string& column);

}  // namespace pfeife
