// Ranks as threads of one process: a message is a handle to the sender's tensors; on an
// accelerator, which the ranks share, a copy that the receiver makes.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/transport/stream_handover.h"
#include "runtime/transport/transport.h"

namespace pfeife {

/// What the ranks of a process share. Must outlive its transports.
class InProcessHub {
 public:
  explicit InProcessHub(std::size_t ranks) : boxes_(ranks) {}
  /// The transport of one rank.
  std::unique_ptr<Transport> transport(RankId rank);

 private:
  friend class InProcessTransport;
  struct Sent {
    Message message;
    StreamHandover handover;
  };
  struct Box {
    std::mutex mutex;
    std::condition_variable arrived;
    std::map<std::pair<RankId, Tag>, Sent> messages;
  };
  void check() const;  ///< throws the failure, if there is one
  bool failed() const;

  std::vector<Box> boxes_;
  mutable std::mutex failure_mutex_;
  std::optional<RankFault> failure_;
};

}  // namespace pfeife
