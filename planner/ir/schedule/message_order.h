// The order in which messages go that wait for the same queue: a choice of the plan, written into
// its rows.
//
// A schedule comes with its messages in the order in which they are ready where links never contend
// (lower.h). Where links are slow, messages wait, and another one may go first. The schedule is run
// with transfers of given lengths, one at a time in each queue; a rule says which of those that
// wait goes next, and none is held back for one that is still to come. Everything that happens is
// put into one list, at the time at which it starts, SEND and RECV side by side, and so all
// REDUCE_GRAD of a reduction; every row is what that list says about its rank. So no order
// deadlocks, whatever the queues and whether transfers block or not: the proof of lower_ready.cc
// holds of any such list. How links share their bandwidth is known here by the given lengths alone.
#pragma once

#include <span>
#include <string>

#include "planner/ir/schedule/dependency_graph.h"

namespace pfeife {

enum class MessageRule {
  FirstReady,     ///< that whose value was made first
  LeastSlack,     ///< that after which the longest way to the end of the step remains
  BackwardFirst,  ///< gradients, then values; of these the first ready
};
inline constexpr MessageRule kMessageRules[] = {MessageRule::FirstReady, MessageRule::LeastSlack,
                                                MessageRule::BackwardFirst};
std::string to_string(MessageRule rule);

/// The same actions with SEND and RECV in the order of `rule`. `lengths`: [task of the schedule's
/// DependencyGraph] how long it takes. Besides, REDUCE_GRAD changes its place. The schedule must be
/// valid. Time: tasks times the messages that wait at once.
Schedule with_message_order(const Schedule& lowered, const StageGraph& stages,
                            const Placement& placement, std::span<const Nanoseconds> lengths,
                            Queues queues, MessageRule rule);

}  // namespace pfeife
