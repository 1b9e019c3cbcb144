// Makers and text form of actions. Reading and writing share one table of kinds, so that every text
// that is read is written back letter for letter.
#include "planner/ir/schedule/action.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "planner/ir/basics/error.h"

namespace pfeife {

Action forward(StageId stage, MicrobatchId microbatch) {
  return {.op = Op::Forward, .stage = stage, .microbatch = microbatch};
}
Action backward(StageId stage, MicrobatchId microbatch) {
  return {.op = Op::Backward, .stage = stage, .microbatch = microbatch};
}
Action backward_input(StageId stage, MicrobatchId microbatch) {
  return {.op = Op::BackwardInput, .stage = stage, .microbatch = microbatch};
}
Action backward_weight(StageId stage, MicrobatchId microbatch) {
  return {.op = Op::BackwardWeight, .stage = stage, .microbatch = microbatch};
}
Action head_share(StageId stage, MicrobatchId microbatch) {
  return {.op = Op::HeadShare, .stage = stage, .microbatch = microbatch};
}
Action head_rest(StageId stage, MicrobatchId microbatch) {
  return {.op = Op::HeadRest, .stage = stage, .microbatch = microbatch};
}
Action send(StageId from, StageId to, MicrobatchId microbatch, Direction direction) {
  return {
      .op = Op::Send, .stage = from, .microbatch = microbatch, .direction = direction, .peer = to};
}
Action recv(StageId at, StageId from, MicrobatchId microbatch, Direction direction) {
  return {
      .op = Op::Recv, .stage = at, .microbatch = microbatch, .direction = direction, .peer = from};
}
Action offload(StageId stage, MicrobatchId microbatch) {
  return {.op = Op::Offload, .stage = stage, .microbatch = microbatch};
}
Action reload(StageId stage, MicrobatchId microbatch) {
  return {.op = Op::Reload, .stage = stage, .microbatch = microbatch};
}
Action stage_action(Op op, StageId stage) { return {.op = op, .stage = stage}; }

namespace {

/// One way to write an action: what stands between the stage and the microbatch.
struct Kind {
  std::string_view text;
  Op op;
  Direction direction = Direction::Forward;
  bool skip = false;        ///< names its peer: "SKIP_SEND_F0>3"
  bool microbatch = false;  ///< a microbatch number follows
};

constexpr Direction kForth = Direction::Forward, kBack = Direction::Backward;
constexpr std::array kTransfers{
    Kind{"SEND_F", Op::Send, kForth, false, true},
    Kind{"SEND_B", Op::Send, kBack, false, true},
    Kind{"RECV_F", Op::Recv, kForth, false, true},
    Kind{"RECV_B", Op::Recv, kBack, false, true},
    Kind{"SKIP_SEND_F", Op::Send, kForth, true, true},
    Kind{"SKIP_SEND_B", Op::Send, kBack, true, true},
    Kind{"SKIP_RECV_F", Op::Recv, kForth, true, true},
    Kind{"SKIP_RECV_B", Op::Recv, kBack, true, true},
};

/// Actions of microbatches come first, all ways of transfers in the place of SEND.
constexpr auto kKinds = [] {
  std::array<Kind, kOperations.size() - 2 + kTransfers.size()> kinds{};
  std::size_t next = 0;
  for (const bool microbatch : {true, false})
    for (const Operation& operation : kOperations) {
      if (operation.op == Op::Send)
        for (const Kind& transfer : kTransfers)
          if (microbatch) kinds[next++] = transfer;
      if (operation.microbatch == microbatch && !is_transfer(operation.op))
        kinds[next++] = {operation.text, operation.op, kForth, false, microbatch};
    }
  return kinds;
}();

/// How far a transfer's peer is from its stage if they are neighbours: +1 where the value goes on,
/// -1 where it comes from before.
constexpr std::int32_t neighbour_step(Op op, Direction direction) {
  return (op == Op::Send) == (direction == Direction::Forward) ? 1 : -1;
}

/// Reads cells; the first mistake stays in `error`.
class CellReader {
 public:
  CellReader(std::string_view text, Dialect dialect) : text_(text), dialect_(dialect) {}

  ParsedCell read() {
    if (text_.find_first_not_of(' ') == std::string_view::npos) return {Cell{}, {}};
    Cell cell;
    if (text_.front() == '(')
      cell = read_overlap();
    else
      cell = read_action(text_);
    if (!error_.empty()) return {std::nullopt, quoted(text_) + " is not an action: " + error_};
    return {std::move(cell), {}};
  }

 private:
  static std::string quoted(std::string_view text) {
    constexpr std::size_t kShown = 60;
    std::string shown = "'";
    for (const char c : text.substr(0, kShown))
      shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    return shown + (text.size() > kShown ? "...'" : "'");
  }
  void fail(std::string message) {
    if (error_.empty()) error_ = std::move(message);
  }

  /// Takes the digits at the front of `rest`; canonical decimal only, so that texts and actions
  /// match one to one.
  std::optional<std::int32_t> take_number(std::string_view& rest, const char* what) {
    constexpr std::size_t kDigits = 6;
    std::size_t end = 0;
    std::int32_t value = 0;
    while (end < rest.size() && rest[end] >= '0' && rest[end] <= '9') {
      if (end < kDigits) value = value * 10 + (rest[end] - '0');
      ++end;
    }
    const std::string_view digits = rest.substr(0, end);
    rest.remove_prefix(end);
    if (digits.empty()) {
      fail(std::string("a ") + what + " number is missing");
    } else if (digits.size() > kDigits) {
      fail(std::string("the ") + what + " number is above 999999");
    } else if (digits.size() > 1 && digits.front() == '0') {
      fail(std::string("the ") + what + " number has a leading zero");
    } else {
      return value;
    }
    return std::nullopt;
  }

  const Kind* take_kind(std::string_view& rest) {
    std::size_t end = 0;
    while (end < rest.size() && (rest[end] < '0' || rest[end] > '9')) ++end;
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(end);
    for (const Kind& kind : kKinds)
      if (kind.text == word && word.size() == kind.text.size()) return old_meaning(kind, word);
    if (dialect_ == Dialect::Old && word == "BW") return kind_of(Op::Backward);
    unknown_kind(word);
    return nullptr;
  }
  static const Kind* kind_of(Op op) { return std::ranges::find(kKinds, op, &Kind::op); }
  /// Before December 2024 B was the gradient of inputs, and I did not exist.
  const Kind* old_meaning(const Kind& kind, std::string_view word) {
    if (dialect_ == Dialect::Current) return &kind;
    if (kind.op == Op::Backward) return kind_of(Op::BackwardInput);
    if (kind.op == Op::BackwardInput) {
      unknown_kind(word);
      return nullptr;
    }
    return &kind;
  }
  void unknown_kind(std::string_view word) {
    if (word.empty()) return fail("the kind is missing; allowed: " + kinds());
    std::string message = "unknown kind " + quoted(word);
    std::vector<std::string> names;
    for (const Kind& kind : kKinds) names.emplace_back(kind.text);
    const std::string nearest = word.size() > 64 ? "" : nearest_kind(word, names);
    if (dialect_ == Dialect::Current && word == "BW")
      message +=
          " (the dialect before December 2024 wrote BW for a full backward: read it with "
          "--old-dialect)";
    else if (!nearest.empty())
      message += ", did you mean " + nearest + "?";
    fail(message + "; allowed: " + kinds());
  }
  static std::string nearest_kind(std::string_view word, const std::vector<std::string>& names) {
    if (word.size() > 2) return nearest_spelling(std::string(word), names);
    for (const std::string& name :
         names)  // short words are near to everything: only the case may differ
      if (name.size() == 1 && word.size() == 1 && (word[0] ^ name[0]) == 0x20) return name;
    return "";
  }
  std::string kinds() const {
    if (dialect_ == Dialect::Old)
      return "F B W BW SEND_F SEND_B RECV_F RECV_B UNSHARD RESHARD REDUCE_GRAD";
    std::string words;
    for (const Kind& kind : kKinds) (words += words.empty() ? "" : " ") += kind.text;
    return words;
  }

  Action read_action(std::string_view rest) {
    Action action;
    const auto stage = take_number(rest, "stage");
    if (!stage) return action;
    const Kind* kind = take_kind(rest);
    if (!kind) return action;
    action = {.op = kind->op, .stage = StageId{*stage}, .direction = kind->direction};
    if (kind->microbatch) {
      const auto microbatch = take_number(rest, "microbatch");
      if (!microbatch) return action;
      action.microbatch = MicrobatchId{*microbatch};
      if (rest.starts_with('.')) {
        rest.remove_prefix(1);
        const auto slice = take_number(rest, "slice");
        if (!slice) return action;
        if (*slice >= kMostSlices)
          fail("the slice number is above " + std::to_string(kMostSlices - 1));
        action.microbatch = MicrobatchId{*microbatch * kMostSlices + *slice, kMostSlices};
      }
    }
    if (is_transfer(action.op)) action.peer = read_peer(action, *kind, rest);
    if (!rest.empty()) fail(quoted(rest) + " follows the end of the action");
    return action;
  }

  StageId read_peer(const Action& action, const Kind& kind, std::string_view& rest) {
    const StageId neighbour{action.stage.value + neighbour_step(action.op, action.direction)};
    if (!kind.skip) {
      if (neighbour.value < 0) fail("no stage comes before stage 0");
      return neighbour;
    }
    const char arrow = action.op == Op::Send ? '>' : '<';
    if (rest.empty() || rest.front() != arrow) {
      fail(std::string("a skip names its other stage after '") + arrow +
           "', as in 0SKIP_SEND_F0>3 or 3SKIP_RECV_F0<0");
      return neighbour;
    }
    rest.remove_prefix(1);
    const auto peer = take_number(rest, "other stage's");
    if (!peer) return neighbour;
    const std::int32_t distance =
        (*peer - action.stage.value) * neighbour_step(action.op, action.direction);
    if (distance == 1)
      fail("between neighbour stages it is written " + std::string(kind.text.substr(5)));
    else if (distance < 1)
      fail("stage " + std::to_string(*peer) + " is on the wrong side of stage " +
           to_string(action.stage));
    return StageId{*peer};
  }

  Cell read_overlap() {
    constexpr std::string_view kEnd = ")OVERLAP_F_B";
    std::string_view rest = text_.substr(1);
    if (!rest.ends_with(kEnd)) {
      fail("an overlap ends with ')OVERLAP_F_B', as in (4F4;3B0)OVERLAP_F_B");
      return {};
    }
    rest.remove_suffix(kEnd.size());
    Overlap overlap;
    while (true) {
      const std::size_t end = rest.find(';');
      overlap.parts.push_back(read_action(rest.substr(0, end)));
      if (!error_.empty()) return {};
      const Op op = overlap.parts.back().op;
      if (!is_compute(op) || is_head(op)) fail("only F, B, I and W run side by side");
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + 1);
    }
    if (overlap.parts.size() < 2) fail("an overlap has two parts or more, separated by ';'");
    return overlap;
  }

  std::string_view text_;
  Dialect dialect_;
  std::string error_;
};

}  // namespace

bool is_skip(const Action& action) {
  return is_transfer(action.op) && action.peer &&
         action.peer->value != action.stage.value + neighbour_step(action.op, action.direction);
}

std::string to_string(const Action& action) {
  const bool skip = is_skip(action);
  std::string text = std::to_string(action.stage.value);
  for (const Kind& kind : kKinds)
    if (kind.op == action.op &&
        kind.direction == (is_transfer(action.op) ? action.direction : kForth) &&
        kind.skip == skip) {
      text += kind.text;
      break;
    }
  if (action.microbatch) text += to_string(*action.microbatch);
  if (skip) text += (action.op == Op::Send ? ">" : "<") + std::to_string(action.peer->value);
  return text;
}

std::string to_string(const Cell& cell) {
  if (const auto* action = std::get_if<Action>(&cell)) return to_string(*action);
  const auto* overlap = std::get_if<Overlap>(&cell);
  if (!overlap) return "";
  std::string text;
  for (const Action& part : overlap->parts) text += (text.empty() ? "(" : ";") + to_string(part);
  return text + ")OVERLAP_F_B";
}

ParsedCell parse_cell(std::string_view text, Dialect dialect) {
  return CellReader(text, dialect).read();
}

}  // namespace pfeife
