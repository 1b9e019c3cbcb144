// Ranks that are processes find and connect to each other.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "planner/ir/basics/error.h"
#include "runtime/launch/meeting.h"
#include "runtime/transport/socket.h"
#include "runtime/transport/socket_transport.h"

namespace pfeife {

// The connections that a rank waits for, accepted in parallel: whoever does not greet as a rank of
// the run is dropped and holds up nobody.

/// The first bytes of a connection: which rank it is, and that it knows the run's secret.
struct Greeting {
  std::uint64_t rank = 0;
  std::array<char, 64> proof{};  ///< hexadecimal
};

/// Sockets by rank of those that greet, until `count` have or the deadline has come. `accepts`: is
/// it a rank that is expected, with the right proof?
std::map<std::size_t, Socket> receive_ranks(const std::vector<const Socket*>& listeners,
                                            std::size_t count,
                                            const std::function<bool(const Greeting&)>& accepts,
                                            std::chrono::steady_clock::time_point deadline);

// Ranks that are processes become a Transport: each tells the others at a meeting that it is there
// and where it listens, and connects to all.

struct JoinOptions {
  std::chrono::milliseconds patience = std::chrono::seconds(60);  ///< until all ranks are there
  bool tcp = false;    ///< also between ranks of one host
  bool beats = false;  ///< no launcher of ours watches the ranks: they watch each other
  /// Known to the ranks of the run alone. Whoever connects, or leaves a line at the meeting, proves
  /// that he knows it, without saying it. "" = the meeting is trusted.
  std::string secret;
};

/// A rank that did not come, as a failure that each rank sees by itself. `report`: of all that
/// came this one is to say so.
class RankMissing : public RuntimeFault {
 public:
  RankMissing(const std::string& reason, bool report) : RuntimeFault(reason), report(report) {}
  bool report;
};

/// Ranks on one host are connected by Unix domain sockets, others by TCP. A rank listens only where
/// another one will connect, and until all have. RankMissing naming those that did not come in
/// time; RuntimeFault if one cannot be reached or has another secret.
std::unique_ptr<SocketTransport> join_by_sockets(Meeting& meeting, RankId rank, std::size_t ranks,
                                                 const JoinOptions& options = {});

/// A secret that nobody can guess.
std::string fresh_secret();

}  // namespace pfeife
