// Schedules written as text in tests: one string a rank, cells separated by blanks.
#pragma once

#include <initializer_list>
#include <sstream>
#include <string>

#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/schedule.h"

namespace pfeife::testing {

inline Schedule rows(std::initializer_list<std::string> lines) {
  Schedule schedule;
  for (const std::string& line : lines) {
    std::istringstream words(line);
    std::vector<Cell> row;
    for (std::string word; words >> word;) {
      const ParsedCell parsed = parse_cell(word);
      PFEIFE_CHECK(parsed.cell, word, ": ", parsed.error);
      row.push_back(*parsed.cell);
    }
    schedule.rows.push_back(std::move(row));
  }
  return schedule;
}

}  // namespace pfeife::testing
