// Ranks that are processes become a Transport: each tells the others at a meeting where it listens,
// and connects to all.
#pragma once

#include <memory>

#include "planner/ir/error.h"
#include "runtime/launch/meeting.h"
#include "runtime/transport/socket_transport.h"

namespace pfeife {

struct JoinOptions {
  std::chrono::milliseconds patience = std::chrono::seconds(60);  ///< until all ranks are there
  bool tcp = false;    ///< also between ranks of one host
  bool beats = false;  ///< no launcher of ours watches the ranks: they watch each other
};

/// A rank that did not come, as a failure that each rank sees by itself. `report`: of all that
/// came this one is to say so.
class RankMissing : public RuntimeFault {
 public:
  RankMissing(const std::string& reason, bool report) : RuntimeFault(reason), report(report) {}
  bool report;
};

/// Ranks on one host are connected by Unix domain sockets, others by TCP. RankMissing naming those
/// that did not come in time; RuntimeFault if one cannot be reached.
std::unique_ptr<SocketTransport> join_by_sockets(Meeting& meeting, RankId rank, std::size_t ranks,
                                                 const JoinOptions& options = {});

}  // namespace pfeife
