// Schedules as text files: one row a rank, cells separated by commas, as
// torch.distributed.pipelining writes them. The cells themselves: planner/ir/schedule/action.h. No
// header, no quotes, no blanks; LF or CRLF.
//   std::puts(write_schedule(read_schedule("0F0,0B0", "rows.csv")).c_str());
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// Reads the text of a schedule. An empty cell (or one of blanks alone, which torch writes, too) is
/// an idle slot. `name` = file name for messages. Errors: ConfigError with line (= row), column and
/// cell of the first thing that is not an action; an empty row.
Schedule read_schedule(std::string_view text, const std::string& name,
                       Dialect dialect = Dialect::Current);
/// The same of a file, or of schedule.csv in the folder of a plan.
Schedule read_schedule_file(const std::filesystem::path& path, Dialect dialect = Dialect::Current);

/// For whom a schedule is written.
enum class Reader {
  Pfeife,  ///< everything
  /// What torch 2.11 reads: optimizer steps and the norm left out, REDUCE_GRAD for every stage,
  /// since torch divides gradients by the number of microbatches there; a skip is an error.
  Torch,
};

/// One line a rank, LF. Errors (Torch only): ConfigError at the first skip, with its place.
std::string write_schedule(const Schedule& schedule, Reader reader = Reader::Pfeife);

}  // namespace pfeife
