// Chakra execution traces (mlcommons, schema of 2026) of a step, for ASTRA-sim and its kin: a file
// a rank, each a length and a message in turn, by a protobuf encoder that has what this needs.
// Computations last as in the step; messages have sizes, so whoever replays them finds their times.
#include <map>
#include <tuple>

#include "planner/io/plan/plan_writers.h"

namespace pfeife {
namespace {

enum class NodeType : std::uint64_t { Computation = 4, Send = 5, Receive = 6 };

void add_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}
/// Numbers are of wire type 0, texts and messages of 2.
void add_number(std::string& to, std::uint64_t field, std::uint64_t value) {
  add_varint(to, field << 3);
  add_varint(to, value);
}
void add_bytes(std::string& to, std::uint64_t field, const std::string& bytes) {
  add_varint(to, field << 3 | 2);
  add_varint(to, bytes.size());
  to += bytes;
}

/// Fields of a node's attribute by the type of its value.
constexpr std::uint64_t kAttributeInt32 = 7, kAttributeInt64 = 9, kAttributeBool = 27;

struct ChakraNode {
  std::uint64_t id = 0;
  std::string name;
  NodeType type = NodeType::Computation;
  std::vector<std::uint64_t> needs;
  std::uint64_t microseconds = 0;
  std::string attributes = {};

  void attribute(const std::string& key, std::uint64_t kind, std::uint64_t value) {
    std::string message;
    add_bytes(message, 1, key);
    add_number(message, kind, value);
    add_bytes(attributes, 10, message);
  }
  std::string message() const {
    std::string bytes;
    add_number(bytes, 1, id);
    add_bytes(bytes, 2, name);
    add_number(bytes, 3, static_cast<std::uint64_t>(type));
    std::string packed;
    for (const std::uint64_t need : needs) add_varint(packed, need);
    if (!packed.empty()) add_bytes(bytes, 5, packed);
    if (microseconds > 0) add_number(bytes, 7, microseconds);
    return bytes + attributes;
  }
};

/// What passes between two stages for a microbatch in one direction; to compare by.
using Message = std::tuple<StageId, StageId, std::optional<MicrobatchId>, Direction>;
Message message_of(const Action& action) {
  return action.op == Op::Send
             ? Message{action.stage, *action.peer, action.microbatch, action.direction}
             : Message{*action.peer, action.stage, action.microbatch, action.direction};
}

/// A pass of a microbatch through a stage; to compare by.
using Pass = std::tuple<StageId, std::optional<MicrobatchId>, Direction>;
std::optional<Pass> pass_of(const Action& action) {
  const std::optional<Direction> way = operation(action.op).passes;
  return way ? std::optional{Pass{action.stage, action.microbatch, *way}} : std::nullopt;
}

class ChakraWriter {
 public:
  explicit ChakraWriter(const PlanToExport& planned) : planned_(planned) {
    for (const Event& event : planned.step.events) {
      const Nanoseconds time = event.end - event.start;
      if (event.kind != TaskKind::Transfer) lasts_[{event.rank, to_string(event.cell)}] = time;
      for (const RankId party : event.parties) lasts_[{party, to_string(event.cell)}] = time;
    }
    for (const auto& row : planned.plan.schedule.rows)
      for (const Cell& cell : row)
        for_each_action(cell, [&](const Action& action) {
          if (action.op == Op::Send) tags_.try_emplace(message_of(action), tags_.size());
        });
  }

  std::string rank(RankId rank) const {
    std::string bytes;
    const auto add = [&](const std::string& message) {
      add_varint(bytes, message.size());
      bytes += message;
    };
    std::string metadata;
    add_bytes(metadata, 1, "0.0.4");
    add(metadata);
    std::map<Pass, std::vector<std::uint64_t>> received;
    std::map<Pass, std::uint64_t> computed;
    std::optional<std::uint64_t> before;
    std::uint64_t id = 0;
    Nanoseconds rest{0};
    for (const Cell& cell : planned_.plan.schedule.rows[rank.index()]) {
      if (std::holds_alternative<std::monostate>(cell)) continue;
      ChakraNode node{.id = id, .name = to_string(cell)};
      const auto* const action = std::get_if<Action>(&cell);
      if (action != nullptr && is_transfer(action->op)) {
        const Pass pass{action->stage, action->microbatch, action->direction};
        const RankId other = planned_.plan.placement.rank(*action->peer);
        if (other == rank) continue;
        const bool sends = action->op == Op::Send;
        node.type = sends ? NodeType::Send : NodeType::Receive;
        if (sends && computed.contains(pass)) node.needs.push_back(computed.at(pass));
        if (!sends) received[pass].push_back(id);
        node.attribute("is_cpu_op", kAttributeBool, 0);
        node.attribute("comm_size", kAttributeInt64, size_of(message_of(*action)));
        node.attribute("comm_src", kAttributeInt32, (sends ? rank : other).index());
        node.attribute("comm_dst", kAttributeInt32, (sends ? other : rank).index());
        node.attribute("comm_tag", kAttributeInt32, tags_.at(message_of(*action)));
      } else {
        if (before) node.needs.push_back(*before);
        for_each_action(cell, [&](const Action& part) {
          const auto pass = pass_of(part);
          if (!pass) return;
          for (const std::uint64_t message : received[*pass]) node.needs.push_back(message);
          computed[*pass] = id;
        });
        const auto found = lasts_.find({rank, node.name});
        rest += found == lasts_.end() ? Nanoseconds{0} : found->second;
        node.microseconds = static_cast<std::uint64_t>(rest.count() / 1000);
        rest %= 1000;
        node.attribute("is_cpu_op", kAttributeBool, 0);
        before = id;
      }
      add(node.message());
      ++id;
    }
    return bytes;
  }

 private:
  std::uint64_t size_of(const Message& message) const {
    const auto& [from, to, microbatch, direction] = message;
    const bool forward = direction == Direction::Forward;
    const StagePair* const pair = forward ? find_pair(planned_.costs, from, to, microbatch)
                                          : find_pair(planned_.costs, to, from, microbatch);
    if (pair == nullptr) return 0;
    return static_cast<std::uint64_t>((forward ? pair->bytes : pair->gradient_bytes).value);
  }

  const PlanToExport& planned_;
  std::map<std::pair<RankId, std::string>, Nanoseconds> lasts_;
  std::map<Message, std::size_t> tags_;
};

}  // namespace

Exported export_for_chakra(const PlanToExport& planned) {
  Exported exported;
  const ChakraWriter writer(planned);
  for (std::size_t r = 0; r < planned.plan.placement.ranks(); ++r)
    exported.files.push_back({"plan." + std::to_string(r) + ".et", writer.rank(RankId{r})});
  exported.lost.emplace_back(
      "times below a microsecond: what is cut off is added to the next node");
  for (const Event& event : planned.step.events)
    if (event.kind == TaskKind::Reduction) {
      exported.lost.emplace_back(
          "reductions of gradients are computations of their length, not collectives");
      break;
    }
  if (planned.run.mesh.devices() > planned.run.mesh.size(Axis::Pipeline))
    exported.lost.emplace_back(
        "one pipeline: collectives of the other axes are in the times of computations");
  return exported;
}

}  // namespace pfeife
