// What an operation of a schedule is: the table that all who run, time, weigh, write or draw
// schedules ask. A fact about a kind of action stands here and nowhere else, but in the judges
// (planner/ir/judge, planner/schedule_tool/certify.cc), which say it again on purpose.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pfeife {

enum class Op {
  Forward,         ///< F: the stage's operators on one microbatch
  Backward,        ///< B: gradients of inputs and weights together
  BackwardInput,   ///< I: gradients of inputs only
  BackwardWeight,  ///< W: gradients of weights, after I
  HeadShare,       ///< S: the rank's share of an output layer that all ranks share, its first part
  HeadRest,        ///< T: the rest of that share, after REDUCE_S
  Send,            ///< hand a value (or gradient) to the stage `peer` on another rank
  Recv,            ///< receive it from the stage `peer`
  Unshard,         ///< gather the stage's parameters
  Reshard,         ///< release them
  ReduceGrad,      ///< every gradient reduction that touches the stage
  ReduceNorm,      ///< one number of all gradients of all ranks: their norm, are they finite
  OptimizerStep,   ///< update the stage's parameters
  Offload,         ///< copy what F saved to the host, and let go of it
  Reload,          ///< copy it back for B or I
  BroadcastHead,   ///< what the last stage's F makes, to the S of all ranks: no row names it
  ReduceShare,     ///< adds up what the S of all ranks make: no row names it
  ReduceRest,      ///< adds up what the T of all ranks make: no row names it
};

/// Which way a transfer goes: values with the forward pass, gradients with the backward pass.
enum class Direction { Forward, Backward };

/// What runs an action: the rank's compute stream, links between ranks, a collective, the compute
/// stream at the end of the step, the link to the host.
enum class TaskKind : std::uint8_t { Compute, Transfer, Reduction, Optimizer, Copy };

/// The times of a stage that the times of its actions are sums of (StageCost).
enum class TimePart : std::uint8_t {
  Forward,
  BackwardInput,
  BackwardWeight,
  Optimizer,
  Offload,
  Reload,
  HeadShare,
  HeadRest,
};
constexpr std::size_t kTimeParts = 8;
constexpr unsigned bit(TimePart part) { return 1u << static_cast<unsigned>(part); }

struct Operation {
  Op op;
  std::string_view text;         ///< between stage and microbatch; a transfer's direction follows
  std::optional<TaskKind> task;  ///< what runs it; none: it takes no time
  bool microbatch = false;       ///< is of one microbatch, or one slice
  std::uint8_t queue = 0;        ///< copies: 0 to the host, 1 back
  /// The action of the same stage and microbatch whose result it reads.
  std::optional<Op> reads;
  /// The way of the messages that it reads from and makes for neighbours: along edges, or against
  /// those that carry gradients.
  std::optional<Direction> passes;
  bool weight_gradient = false;        ///< makes gradients of the stage's weights
  std::int8_t saved = 0;               ///< by how much it changes the microbatches in flight
  std::int8_t weight_saved = 0;        ///< by how much those whose I is done and whose W is not
  unsigned times = 0;                  ///< bits of TimePart: how long it lasts
  std::string_view category;           ///< in Chrome traces, of what the compute stream runs
  std::string_view chrome_color = "";  ///< reserved colour of chrome://tracing; "" = any
};

constexpr std::array<Operation, 18> kOperations{{
    {.op = Op::Forward,
     .text = "F",
     .task = TaskKind::Compute,
     .microbatch = true,
     .passes = Direction::Forward,
     .saved = 1,
     .times = bit(TimePart::Forward),
     .category = "forward",
     .chrome_color = "rail_response"},
    {.op = Op::Backward,
     .text = "B",
     .task = TaskKind::Compute,
     .microbatch = true,
     .reads = Op::Forward,
     .passes = Direction::Backward,
     .weight_gradient = true,
     .saved = -1,
     .times = bit(TimePart::BackwardInput) | bit(TimePart::BackwardWeight),
     .category = "backward",
     .chrome_color = "rail_animation"},
    {.op = Op::BackwardInput,
     .text = "I",
     .task = TaskKind::Compute,
     .microbatch = true,
     .reads = Op::Forward,
     .passes = Direction::Backward,
     .saved = -1,
     .weight_saved = 1,
     .times = bit(TimePart::BackwardInput),
     .category = "backward",
     .chrome_color = "rail_idle"},
    {.op = Op::BackwardWeight,
     .text = "W",
     .task = TaskKind::Compute,
     .microbatch = true,
     .reads = Op::BackwardInput,
     .weight_gradient = true,
     .weight_saved = -1,
     .times = bit(TimePart::BackwardWeight),
     .category = "backward",
     .chrome_color = "good"},
    {.op = Op::HeadShare,
     .text = "S",
     .task = TaskKind::Compute,
     .microbatch = true,
     .times = bit(TimePart::HeadShare),
     .category = "head",
     .chrome_color = "yellow"},
    {.op = Op::HeadRest,
     .text = "T",
     .task = TaskKind::Compute,
     .microbatch = true,
     .weight_gradient = true,
     .times = bit(TimePart::HeadRest),
     .category = "head",
     .chrome_color = "olive"},
    {.op = Op::Send, .text = "SEND", .task = TaskKind::Transfer, .microbatch = true},
    {.op = Op::Recv, .text = "RECV", .task = TaskKind::Transfer, .microbatch = true},
    {.op = Op::Unshard, .text = "UNSHARD"},
    {.op = Op::Reshard, .text = "RESHARD"},
    {.op = Op::ReduceGrad, .text = "REDUCE_GRAD", .task = TaskKind::Reduction},
    {.op = Op::ReduceNorm, .text = "REDUCE_NORM", .task = TaskKind::Reduction},
    {.op = Op::OptimizerStep,
     .text = "OPTIMIZER_STEP",
     .task = TaskKind::Optimizer,
     .times = bit(TimePart::Optimizer),
     .chrome_color = "black"},
    {.op = Op::Offload,
     .text = "OFFLOAD",
     .task = TaskKind::Copy,
     .microbatch = true,
     .queue = 0,
     .reads = Op::Forward,
     .times = bit(TimePart::Offload)},
    {.op = Op::Reload,
     .text = "RELOAD",
     .task = TaskKind::Copy,
     .microbatch = true,
     .queue = 1,
     .reads = Op::Offload,
     .times = bit(TimePart::Reload)},
    {.op = Op::BroadcastHead,
     .text = "BROADCAST_F",
     .task = TaskKind::Reduction,
     .microbatch = true},
    {.op = Op::ReduceShare, .text = "REDUCE_S", .task = TaskKind::Reduction, .microbatch = true},
    {.op = Op::ReduceRest, .text = "REDUCE_T", .task = TaskKind::Reduction, .microbatch = true},
}};

constexpr const Operation& operation(Op op) { return kOperations[static_cast<std::size_t>(op)]; }

static_assert([] {
  for (std::size_t i = 0; i < kOperations.size(); ++i)
    if (kOperations[i].op != static_cast<Op>(i)) return false;
  return true;
}());

constexpr bool is_transfer(Op op) { return operation(op).task == TaskKind::Transfer; }
/// OFFLOAD and RELOAD: the actions that occupy the device's link to its host.
constexpr bool is_copy(Op op) { return operation(op).task == TaskKind::Copy; }
/// F, B, I, W, S and T: the actions that occupy the rank's compute stream for one microbatch.
constexpr bool is_compute(Op op) { return operation(op).task == TaskKind::Compute; }
/// S and T: the rank's share of an output layer that all ranks share.
constexpr bool is_head(Op op) { return op == Op::HeadShare || op == Op::HeadRest; }
/// The collectives between F, S, T and B of an output layer that all ranks share. No row names
/// them: they begin when the last action before them ends, and hold no rank.
constexpr std::array kHeadCollectives{Op::BroadcastHead, Op::ReduceShare, Op::ReduceRest};
constexpr bool is_head_collective(Op op) { return op >= kHeadCollectives.front(); }
/// B and I: the actions that make the gradients of a stage's inputs.
constexpr bool makes_input_gradient(Op op) { return operation(op).passes == Direction::Backward; }
/// B, W and T: the actions that make the gradients of a stage's weights.
constexpr bool makes_weight_gradient(Op op) { return operation(op).weight_gradient; }

}  // namespace pfeife
