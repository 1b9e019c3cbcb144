// Actions: what a rank is told to do, one at a time, and their text form.
//
// The text form is the grammar of torch.distributed.pipelining plus five extensions of ours (skip
// transfers, the optimizer step, slices of a microbatch's sequence, copies to the host, shares of
// the output layer); the strict reader is parse_cell. Whole schedules as files:
// planner/io/plan/schedule_csv.h.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "planner/ir/basics/ids.h"
#include "planner/ir/schedule/operation.h"

namespace pfeife {

/// One instruction of a rank.
struct Action {
  Op op = Op::Forward;
  StageId stage;
  std::optional<MicrobatchId>
      microbatch;  ///< present for F B I W S T, transfers and copies, absent for the rest
  Direction direction = Direction::Forward;  ///< meaningful for transfers; Forward otherwise
  std::optional<StageId> peer;               ///< the other stage of a transfer; absent otherwise

  friend auto operator<=>(const Action&, const Action&) = default;
};

Action forward(StageId stage, MicrobatchId microbatch);
Action backward(StageId stage, MicrobatchId microbatch);
Action backward_input(StageId stage, MicrobatchId microbatch);
Action backward_weight(StageId stage, MicrobatchId microbatch);
Action head_share(StageId stage, MicrobatchId microbatch);  ///< `stage`: of the rank that has it
Action head_rest(StageId stage, MicrobatchId microbatch);
Action send(StageId from, StageId to, MicrobatchId microbatch, Direction direction);
Action recv(StageId at, StageId from, MicrobatchId microbatch, Direction direction);
Action offload(StageId stage, MicrobatchId microbatch);
Action reload(StageId stage, MicrobatchId microbatch);
Action stage_action(Op op, StageId stage);  ///< all that has no microbatch

/// Actions of one rank that run side by side: start when all inputs are there, last as
/// side_by_side_time() says, deliver all outputs at the end. Listed order = order of execution on
/// a single stream.
struct Overlap {
  std::vector<Action> parts;
  friend auto operator<=>(const Overlap&, const Overlap&) = default;
};

/// A cell of a schedule: idle, one action, or several side by side.
using Cell = std::variant<std::monostate, Action, Overlap>;

/// Calls `visit(const Action&)` for each action of the cell, in listed order.
template <class Visitor>
void for_each_action(const Cell& cell, Visitor&& visit) {
  if (const auto* action = std::get_if<Action>(&cell)) visit(*action);
  if (const auto* overlap = std::get_if<Overlap>(&cell))
    for (const Action& part : overlap->parts) visit(part);
}

/// A transfer past the neighbouring stage.
bool is_skip(const Action& action);

/// "2F0", "3S0", "3F2.1" (slice 1 of microbatch 2), "1SEND_B3", "0SKIP_SEND_F0>3", "2OFFLOAD0",
/// "0OPTIMIZER_STEP", "(4F4;3B0)OVERLAP_F_B", "" for an idle cell.
std::string to_string(const Action& action);
std::string to_string(const Cell& cell);

/// How the text of a cell is to be read.
enum class Dialect {
  Current,  ///< B = full backward, I and W its halves
  Old,      ///< before December 2024: B = backward input, W = backward weight, BW = full backward
};

/// What parse_cell found: the cell, or why the text is not one.
struct ParsedCell {
  std::optional<Cell> cell;
  std::string error;  ///< empty if cell is present
};
/// Slices of a microbatch that a single cell speaks of: as many as there can be, since only the
/// whole schedule says how many there are (in_slices).
constexpr std::int32_t kMostSlices = 1024;
/// Reads one cell. The whole text must match; surrounding blanks are not allowed. Never throws.
ParsedCell parse_cell(std::string_view text, Dialect dialect = Dialect::Current);

}  // namespace pfeife
