// What a run lost against what was predicted of it, and to what.
//
// Every trace is a longest path: a task begins when all that it waits for has ended, and a gap
// later, and lasts so long. Those two figures of each task give the trace back exactly. So they are
// exchanged for the measured ones a part at a time: first the time that operators compute, then the
// gaps between operators, then transfers, then what passes before a host begins what could begin;
// each of the ranks in turn. What the step becomes longer by at each exchange is that part's loss,
// and the losses add up to the difference. The order decides who is blamed where two delays hide
// each other: a part is blamed for what those before it do not hide.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/trace/trace.h"

namespace pfeife {

enum class Loss : std::uint8_t { Compute, Gaps, Transfers, Stalls };
inline constexpr std::size_t kLosses = 4;
/// "slower compute", "gaps between operators", "late transfers", "host stalls".
std::string to_string(Loss loss);

struct LostTime {
  Nanoseconds predicted{0}, measured{0};                  ///< steps
  std::vector<std::array<Nanoseconds, kLosses>> of_rank;  ///< [rank]; of a transfer, the sender

  Nanoseconds of(Loss loss) const;
  /// = measured - predicted.
  Nanoseconds total() const;
};

/// Event i of both traces is task i of the graph. Linear in tasks, for each of the ranks.
LostTime lost_time(const DependencyGraph& graph, const Trace& predicted, const Trace& measured);

}  // namespace pfeife
