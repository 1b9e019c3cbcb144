#include "runtime/start_ranks.h"

#include <ATen/Parallel.h>

#include <iostream>

#include "planner/ir/error.h"
#include "runtime/launch.h"
#include "runtime/rank_threads.h"
#include "runtime/socket_transport.h"

namespace pfeife {
namespace {

using Body = std::function<RankAnswer(const RankSeat&)>;

int run_as_rank(std::size_t ranks, const RankEnvironment& environment, const Body& body) {
  Status status(environment);
  try {
    if (environment.ranks != ranks)
      throw ConfigError({"environment"}, stream_all("WORLD_SIZE=", environment.ranks,
                                                    ", the plan has ", ranks, " ranks"));
    const auto transport = join_by_sockets(environment.folder, environment.rank, environment.ranks);
    RandomTurns turns;
    RankAnswer answer;
    try {
      answer = body({environment.rank, *transport, turns,
                     [&](const Cell& cell) { status.entering(to_string(cell)); }});
    } catch (const std::exception& error) {
      const std::string text = error.what();
      const std::string reason = text.starts_with("rank ")
                                     ? text
                                     : "rank " + to_string(environment.rank) + " failed: " + text;
      transport->stop(reason);
      throw RuntimeFault(reason);
    }
    if (environment.rank == RankId{0}) std::cout << answer.text << std::flush;
    if (!answer.wrong.empty()) status.failed(answer.wrong);
    return answer.wrong.empty() ? 0 : 4;
  } catch (const std::exception& error) {
    status.failed(error.what());
    return 4;
  }
}

int run_as_threads(std::size_t ranks, const Body& body) {
  RandomTurns turns;
  std::vector<RankAnswer> answers(ranks);
  run_ranks(ranks, [&](RankId rank, Transport& transport) {
    answers[rank.index()] = body({rank, transport, turns, {}});
  });
  std::cout << answers[0].text << std::flush;
  for (const RankAnswer& answer : answers)
    if (!answer.wrong.empty()) throw RuntimeFault(answer.wrong);
  return 0;
}

}  // namespace

int start_ranks(std::size_t ranks, const LaunchOptions& launch, const Body& body) {
  at::set_num_threads(launch.kernel_threads);
  if (const auto environment = rank_environment()) return run_as_rank(ranks, *environment, body);
  if (launch.threads || ranks == 1) return run_as_threads(ranks, body);
  const std::string failure = run_local_ranks(ranks, launch.arguments);
  if (failure.empty()) return 0;
  throw RuntimeFault(failure);
}

}  // namespace pfeife
