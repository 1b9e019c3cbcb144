// The ranks of a run, wherever they are: threads of this process, processes that it starts, or
// processes that another launcher has started, of which this is one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/ir/schedule/action.h"
#include "runtime/launch/agreement.h"
#include "runtime/model/graph_stage.h"
#include "runtime/transport/nccl_transport.h"

namespace pfeife {

struct LaunchOptions {
  std::vector<std::string> arguments;  ///< of this process: those that it starts get the same
  bool threads = false;                ///< ranks as threads of this process
  int kernel_threads = 1;              ///< of each rank
  /// Shared by all ranks, which are threads if it is no CPU; with `card_each` that of this rank.
  at::Device device = at::kCPU;
  bool card_each = false;              ///< a process and a card a rank, NCCL between them
  std::string card;                    ///< then: which card this is, for all hosts
  NcclOptions nccl = {};               ///< then
  std::vector<RunFact> facts = {};     ///< beside the program: compared before anything starts
  std::string rank_count_reason = "";  ///< how many there must be, and why: "the plan has 4 ranks"
  bool tcp = false;                    ///< TCP also between ranks of one host
  std::chrono::seconds patience{60};   ///< for all ranks to be there
  /// Called once after a failure, in the process that reports it.
  std::function<void()> clean_up;
};

/// What a rank is given.
struct RankSeat {
  RankId rank;
  Transport& transport;
  RandomTurns& turns;
  /// To be called before each cell, so that a message about a failure can say where it was.
  std::function<void(const Cell&)> entering;
};

/// What a rank answers. Rank 0's text is printed; a reason of any rank is a failure.
struct RankAnswer {
  std::string text;
  std::string wrong;  ///< "" = all is well
};

/// Runs `body` on every rank that is this process's business and returns the exit code: 2 if the
/// ranks do not agree (RunFacts), which is said once and before any `body` is called. A rank that
/// throws, dies or stalls stops all others, with one message that names rank, action and cause: our
/// own launcher throws it as RuntimeFault; under another launcher the lowest rank that is left
/// prints it.
int start_ranks(std::size_t ranks, const LaunchOptions& launch,
                const std::function<RankAnswer(const RankSeat&)>& body);

}  // namespace pfeife
