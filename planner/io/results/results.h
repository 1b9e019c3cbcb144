// What a run leaves behind: a record a case (the cache), and results.csv and results.json of all of
// them.
//
// Times in files are milliseconds with six decimals, so nothing is lost. Columns are described in
// configs/REFERENCE.md.
//   std::puts(to_json(record_of(planned)).c_str());
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/result/case_record.h"

namespace pfeife {

/// A case as JSON, and back; nothing if the text is no such record.
std::string to_json(const CaseRecord& record);
std::optional<CaseRecord> case_from_json(const std::string& text);

/// results.csv: a header, a line a case and plan. `search_s` and the measured columns apart, equal
/// input gives equal bytes.
std::string results_csv(const std::vector<CaseRecord>& cases);
/// results.json: the records of all cases, under the experiment's name.
std::string results_json(const std::string& experiment, const std::vector<CaseRecord>& cases);

}  // namespace pfeife
