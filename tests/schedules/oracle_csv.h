// Oracle tables: comma-separated, one header row. For tests only: no quoting, no error recovery.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "planner/io/plan/schedule_csv.h"

namespace pfeife {

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

inline std::vector<std::size_t> numbers(const std::string& text) {
  std::vector<std::size_t> values;
  for (const std::string& part : split(text, ' ')) values.push_back(std::stoul(part));
  return values;
}

using OracleRow = std::map<std::string, std::string>;

/// The rows of tests/data/<path>, by column name.
inline std::vector<OracleRow> oracle_rows(const std::string& path) {
  std::ifstream file(std::string(PFEIFE_SOURCE_DIR) + "/tests/data/" + path);
  EXPECT_TRUE(file.is_open()) << path;
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> header = split(line, ',');
  std::vector<OracleRow> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = split(line, ',');
    OracleRow row;
    for (std::size_t i = 0; i < header.size(); ++i)
      row[header[i]] = i < cells.size() ? cells[i] : "";
    rows.push_back(row);
  }
  EXPECT_FALSE(rows.empty()) << path;
  return rows;
}

/// The schedule of tests/data/<path>.
inline Schedule data_schedule(const std::string& path) {
  return read_schedule_file(std::string(PFEIFE_SOURCE_DIR) + "/tests/data/" + path);
}

}  // namespace pfeife
