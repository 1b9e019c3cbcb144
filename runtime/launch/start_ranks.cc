#include "runtime/launch/start_ranks.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <optional>
#include <thread>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/printable.h"
#include "runtime/launch/join.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/rank_environment.h"
#include "runtime/launch/rank_threads.h"
#include "runtime/transport/reason.h"
#include "runtime/transport/socket_transport.h"

namespace pfeife {
namespace {

/// While it lives, a failure of any rank is reported once, by the lowest rank that is left; and
/// this process ends with exit code 4 if its rank has not stopped kGrace later, say in a long
/// action.
class FailureWatch {
 public:
  /// `report` is called on a thread of its own. Both must outlive the watch.
  FailureWatch(SocketTransport& transport,
               const std::function<void(const std::string& reason)>& report);
  /// Waits until the failure is reported, if there is one.
  ~FailureWatch();
  FailureWatch(const FailureWatch&) = delete;
  FailureWatch& operator=(const FailureWatch&) = delete;

 private:
  void watch();

  SocketTransport& transport_;
  const std::function<void(const std::string&)>& report_;
  std::atomic<bool> stopped_{false};  ///< the rank has
  std::thread thread_;
};

FailureWatch::FailureWatch(SocketTransport& transport,
                           const std::function<void(const std::string&)>& report)
    : transport_(transport), report_(report), thread_([this] { watch(); }) {}

FailureWatch::~FailureWatch() {
  stopped_ = true;
  thread_.join();
}

void FailureWatch::watch() {
  std::optional<RankFault> fault;
  while (!fault && !stopped_) fault = transport_.wait_for_failure(std::chrono::milliseconds(50));
  if (!fault) fault = transport_.wait_for_failure(std::chrono::milliseconds(0));
  if (!fault) return;
  const auto deadline = std::chrono::steady_clock::now() + kGrace;
  if (transport_.is_lowest_left()) report_(fault->what());
  transport_.say_farewell();
  while (!stopped_ && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (!stopped_) _exit(4);
}

using Body = std::function<RankAnswer(const RankSeat&)>;

/// What `body` answers; a failure stops all ranks and is thrown with the rank's name.
RankAnswer answer_of(const Body& body, const LaunchOptions& launch, SocketTransport& transport,
                     const std::function<void(const std::string&)>& entering) {
  RandomTurns turns;
  const auto run = [&](Transport& over) {
    return body({over.rank(), over, turns, [&](const Cell& cell) { entering(to_string(cell)); }});
  };
  try {
    SocketTransport::compute_behind_transfers();
    RankAnswer answer;
    if (launch.card_each) {
      const DeviceThread place(launch.device);
      NcclTransport cards(transport, open_nccl(), launch.device, launch.nccl);
      answer = run(cards);
      cards.finish();
    } else {
      answer = run(transport);
    }
    transport.finish();
    return answer;
  } catch (const std::exception& error) {
    const RankFault fault = rank_fault(error, transport.rank());
    transport.stop(fault);
    throw fault;
  }
}

/// Says no to all ranks alike, before any of them starts.
void compare_ranks(const LaunchOptions& launch, Transport& transport) {
  RunFacts facts{program_facts(), launch.card_each ? launch.card : ""};
  if (launch.card_each)
    facts.equal.push_back(
        {"NCCL", nccl_version_text(open_nccl().version()), "install one version on all hosts"});
  facts.equal.insert(facts.equal.end(), launch.facts.begin(), launch.facts.end());
  require_agreement(transport, facts);
}

JoinOptions join_options(const RankEnvironment& environment, const LaunchOptions& launch) {
  return {.patience = launch.patience,
          .tcp = launch.tcp,
          .beats = !environment.shared,
          .secret = environment.secret};
}

/// Names of tensors may be in it.
void print(const RankAnswer& answer) { std::cout << printable(answer.text) << std::flush; }

/// A process of our own launcher, which watches it and prints its failure.
int run_as_child(const RankEnvironment& environment, const LaunchOptions& launch,
                 const Body& body) {
  SharedSlots slots(*environment.shared, environment.ranks);
  Status status(slots[environment.rank.index()]);
  try {
    const auto meeting = meeting_in_slots(slots);
    const auto transport = join_by_sockets(*meeting, environment.rank, environment.ranks,
                                           join_options(environment, launch));
    compare_ranks(launch, *transport);
    const RankAnswer answer = answer_of(body, launch, *transport,
                                        [&](const std::string& cell) { status.entering(cell); });
    if (environment.rank == RankId{0}) print(answer);
    if (answer.wrong.empty())
      status.finished();
    else
      status.failed(answer.wrong);
    return answer.wrong.empty() ? 0 : 4;
  } catch (const ConfigError& error) {
    status.refused(error.what());
    return 2;
  } catch (const RankFault& fault) {
    status.failed(fault.what(), fault.gone());
    return 4;
  } catch (const std::exception& error) {
    status.failed(error.what());
    return 4;
  }
}

void report(const LaunchOptions& launch, const std::string& reason) {
  std::cerr << "pfeife-run: " + printable_line(reason) + "\n" << std::flush;
  if (launch.clean_up) launch.clean_up();
}

/// A process of another launcher.
int run_among_others(const RankEnvironment& environment, const LaunchOptions& launch,
                     const Body& body) {
  const std::function<void(const std::string&)> report_failure = [&](const std::string& reason) {
    report(launch, reason);
  };
  std::unique_ptr<SocketTransport> transport;
  try {
    const auto meeting = meeting_at_store(environment.store, environment.rank, launch.patience);
    transport = join_by_sockets(*meeting, environment.rank, environment.ranks,
                                join_options(environment, launch));
  } catch (const RankMissing& missing) {
    if (missing.report) report_failure(missing.what());
    return 4;
  }
  try {
    const FailureWatch watch(*transport, report_failure);
    compare_ranks(launch, *transport);
    const RankAnswer answer = answer_of(
        body, launch, *transport, [&](const std::string& cell) { transport->entering(cell); });
    if (environment.rank == RankId{0}) print(answer);
    if (answer.wrong.empty()) return 0;
    report_failure(answer.wrong);
  } catch (const ConfigError& error) {  // of all ranks alike
    if (environment.rank == RankId{0}) report_failure(error.what());
    return 2;
  } catch (const RuntimeFault&) {  // reported by the watch of one rank
  }
  return 4;
}

int run_as_rank(std::size_t ranks, const RankEnvironment& environment, const LaunchOptions& launch,
                const Body& body) {
  if (environment.ranks != ranks)
    throw ConfigError(
        {"environment"},
        stream_all(environment.size_variable, "=", environment.ranks, ", ",
                   launch.rank_count_reason.empty() ? stream_all("the plan has ", ranks, " ranks")
                                                    : launch.rank_count_reason));
  return environment.shared ? run_as_child(environment, launch, body)
                            : run_among_others(environment, launch, body);
}

int run_as_threads(std::size_t ranks, at::Device device, const Body& body) {
  RandomTurns turns;
  std::vector<RankAnswer> answers(ranks);
  run_ranks(ranks, device, [&](RankId rank, Transport& transport) {
    answers[rank.index()] = body({rank, transport, turns, {}});
  });
  print(answers[0]);
  for (const RankAnswer& answer : answers)
    if (!answer.wrong.empty()) throw RuntimeFault(answer.wrong);
  return 0;
}

}  // namespace

int start_ranks(std::size_t ranks, const LaunchOptions& launch, const Body& body) {
  at::set_num_threads(launch.kernel_threads);
  if (launch.card_each) {
    open_nccl();  // or say why not before anything starts
  } else if (!launch.device.is_cpu()) {
    if (rank_environment())
      throw ConfigError({"--device"},
                        "all ranks on one card are threads of one process: leave the launcher "
                        "out, or use cuda, a card for each rank");
    return run_as_threads(ranks, launch.device, body);
  }
  if (const auto environment = rank_environment())
    return run_as_rank(ranks, *environment, launch, body);
  if (!launch.card_each && (launch.threads || ranks == 1))
    return run_as_threads(ranks, launch.device, body);
  const LocalEnd end = run_local_ranks(ranks, launch.arguments);
  if (end.reason.empty()) return 0;
  if (launch.clean_up) launch.clean_up();
  if (end.wrong_input) throw ConfigError({}, end.reason);
  throw RuntimeFault(end.reason);
}

}  // namespace pfeife
