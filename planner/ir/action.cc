#include "planner/ir/action.h"

#include <array>
#include <charconv>
#include <utility>

namespace pfeife {
namespace {

Action compute(Op op, StageId stage, MicrobatchId microbatch) {
  return {op, stage, microbatch, Direction::Forward, std::nullopt};
}

/// The stage a plain SEND or RECV goes to or comes from.
StageId neighbour(Op op, StageId stage, Direction direction) {
  const bool up = (op == Op::Send) == (direction == Direction::Forward);
  return StageId{stage.value + (up ? 1 : -1)};
}

std::string transfer_text(const Action& action) {
  const bool skip = *action.peer != neighbour(action.op, action.stage, action.direction);
  std::string text = to_string(action.stage) + (skip ? "SKIP_" : "");
  text += action.op == Op::Send ? "SEND_" : "RECV_";
  text += action.direction == Direction::Forward ? "F" : "B";
  text += to_string(*action.microbatch);
  if (skip) text += (action.op == Op::Send ? ">" : "<") + to_string(*action.peer);  // to, from
  return text;
}

}  // namespace

Action forward(StageId s, MicrobatchId m) { return compute(Op::Forward, s, m); }
Action backward(StageId s, MicrobatchId m) { return compute(Op::Backward, s, m); }
Action backward_input(StageId s, MicrobatchId m) { return compute(Op::BackwardInput, s, m); }
Action backward_weight(StageId s, MicrobatchId m) { return compute(Op::BackwardWeight, s, m); }
Action send(StageId from, StageId to, MicrobatchId m, Direction d) {
  return {Op::Send, from, m, d, to};
}
Action recv(StageId at, StageId from, MicrobatchId m, Direction d) {
  return {Op::Recv, at, m, d, from};
}
Action stage_action(Op op, StageId s) {
  return {op, s, std::nullopt, Direction::Forward, std::nullopt};
}

std::string to_string(const Action& action) {
  const auto named = [&](const char* kind) {
    std::string text = to_string(action.stage) + kind;
    if (action.microbatch) text += to_string(*action.microbatch);
    return text;
  };
  switch (action.op) {
    case Op::Forward:
      return named("F");
    case Op::Backward:
      return named("B");
    case Op::BackwardInput:
      return named("I");
    case Op::BackwardWeight:
      return named("W");
    case Op::Unshard:
      return named("UNSHARD");
    case Op::Reshard:
      return named("RESHARD");
    case Op::ReduceGrad:
      return named("REDUCE_GRAD");
    case Op::OptimizerStep:
      return named("OPTIMIZER_STEP");
    case Op::Send:
    case Op::Recv:
      return action.peer && action.microbatch ? transfer_text(action)
                                              : named(action.op == Op::Send ? "SEND" : "RECV");
  }
  return "";
}

std::string to_string(const Cell& cell) {
  if (const auto* action = std::get_if<Action>(&cell)) return to_string(*action);
  const auto* overlap = std::get_if<Overlap>(&cell);
  if (overlap == nullptr) return "";
  std::string text = "(";
  for (std::size_t i = 0; i < overlap->parts.size(); ++i)
    text += (i ? ";" : "") + to_string(overlap->parts[i]);
  return text + ")OVERLAP_F_B";
}

namespace {

/// Reads a cell from left to right; every step fails with a sentence.
class CellReader {
 public:
  CellReader(std::string_view text, Dialect dialect) : text_(text), dialect_(dialect) {}

  ParsedCell read() {
    if (text_.empty()) return {Cell{}, ""};
    Cell cell;
    if (text_.front() == '(') {
      Overlap overlap;
      if (!read_overlap(overlap)) return {std::nullopt, error_};
      cell = std::move(overlap);
    } else {
      Action action;
      if (!read_action(action)) return {std::nullopt, error_};
      cell = action;
    }
    if (!text_.empty())
      return {std::nullopt, "unexpected '" + std::string(text_) + "' after the action"};
    return {std::move(cell), ""};
  }

 private:
  bool fail(std::string message) { return error_ = std::move(message), false; }
  bool take(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    return text_.remove_prefix(word.size()), true;
  }
  bool number(const char* what, std::int32_t& out) {
    const auto [end, status] = std::from_chars(text_.data(), text_.data() + text_.size(), out);
    if (status != std::errc{} || text_.front() == '-' || out > 1'000'000)
      return fail(std::string("expected ") + what + " (a number up to 1000000) at '" +
                  std::string(text_) + "'");
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return true;
  }

  bool read_overlap(Overlap& overlap) {
    take("(");
    do {
      Action part;
      if (!read_action(part)) return false;
      if (!is_compute(part.op))
        return fail("only F, B, I and W can overlap, not " + to_string(part));
      overlap.parts.push_back(part);
    } while (take(";"));
    if (!take(")OVERLAP_F_B"))
      return fail("expected ')OVERLAP_F_B' at '" + std::string(text_) + "'");
    if (overlap.parts.size() < 2) return fail("an overlap needs at least two actions");
    return true;
  }

  bool read_action(Action& action) {
    std::int32_t stage = 0;
    if (!number("a stage", stage)) return false;
    action.stage = StageId{stage};
    for (const auto& [word, op] : kStageWords)
      if (take(word)) return action.op = op, true;
    const bool skip = take("SKIP_");
    for (const auto& [word, op, direction] : kTransferWords)
      if (take(word)) return read_transfer(action, op, direction, skip);
    if (skip) return fail("expected SEND_F, RECV_F, SEND_B or RECV_B after SKIP_");
    if (!read_compute_kind(action)) return false;
    return read_microbatch(action);
  }

  bool read_compute_kind(Action& action) {
    if (dialect_ == Dialect::Old && take("BW")) return action.op = Op::Backward, true;
    const char kind = text_.empty() ? ' ' : text_.front();
    if (text_.starts_with("BW"))
      return fail(
          "'BW' is the full backward of the dialect before December 2024: read it with "
          "--old-dialect");
    switch (kind) {
      case 'F':
        action.op = Op::Forward;
        break;
      case 'B':
        action.op = dialect_ == Dialect::Old ? Op::BackwardInput : Op::Backward;
        break;
      case 'I':
        action.op = Op::BackwardInput;
        break;
      case 'W':
        action.op = Op::BackwardWeight;
        break;
      default:
        return fail("unknown kind '" + std::string(text_) +
                    "'; kinds are F B I W, [SKIP_]SEND_F RECV_F SEND_B RECV_B, UNSHARD RESHARD "
                    "REDUCE_GRAD OPTIMIZER_STEP");
    }
    text_.remove_prefix(1);
    return true;
  }

  bool read_microbatch(Action& action) {
    std::int32_t microbatch = 0;
    if (!number("a microbatch", microbatch)) return false;
    action.microbatch = MicrobatchId{microbatch};
    return true;
  }

  bool read_transfer(Action& action, Op op, Direction direction, bool skip) {
    action.op = op;
    action.direction = direction;
    if (!read_microbatch(action)) return false;
    const StageId near = neighbour(op, action.stage, direction);
    action.peer = near;
    if (skip) {
      const char* arrow = op == Op::Send ? ">" : "<";
      if (!take(arrow)) return fail(std::string("expected '") + arrow + "' and the other stage");
      std::int32_t peer = 0;
      if (!number("the other stage", peer)) return false;
      action.peer = StageId{peer};
      const bool up = near > action.stage;
      if ((*action.peer > action.stage) != up || *action.peer == near)
        return fail(
            std::string(
                "a skip transfer joins stages that are not neighbours; the other one must be ") +
            (up ? "above " : "below ") + to_string(near));
    }
    if (action.peer->value < 0)
      return fail("stage " + to_string(action.stage) + " has no stage before it");
    return true;
  }

  static constexpr std::array<std::pair<std::string_view, Op>, 4> kStageWords{
      {{"UNSHARD", Op::Unshard},
       {"RESHARD", Op::Reshard},
       {"REDUCE_GRAD", Op::ReduceGrad},
       {"OPTIMIZER_STEP", Op::OptimizerStep}}};
  struct TransferWord {
    std::string_view word;
    Op op;
    Direction direction;
  };
  static constexpr std::array<TransferWord, 4> kTransferWords{
      {{"SEND_F", Op::Send, Direction::Forward},
       {"RECV_F", Op::Recv, Direction::Forward},
       {"SEND_B", Op::Send, Direction::Backward},
       {"RECV_B", Op::Recv, Direction::Backward}}};
  std::string_view text_;
  Dialect dialect_;
  std::string error_;
};

}  // namespace

ParsedCell parse_cell(std::string_view text, Dialect dialect) {
  return CellReader(text, dialect).read();
}

}  // namespace pfeife
