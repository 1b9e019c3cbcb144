// Ranks that are processes become a Transport: each tells the others at a meeting that it is there
// and where it listens, and connects to all.
#pragma once

#include <memory>

#include "planner/ir/basics/error.h"
#include "runtime/launch/meeting.h"
#include "runtime/transport/socket_transport.h"

namespace pfeife {

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
