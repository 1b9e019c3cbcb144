// Ranks as threads of one process: a message is a handle to the sender's tensors; on an
// accelerator, which the ranks share, a copy that the receiver makes on its own stream.
#pragma once

#include <c10/core/Event.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/model/stage.h"
#include "runtime/transport/transport.h"

namespace pfeife {

/// Made by the thread that hands tensors over, at that moment. Tensors on CPUs need nothing of it.
class StreamHandover {
 public:
  explicit StreamHandover(const Tensors& tensors);

  /// To be called by the other thread: copies on its own stream, made when the first thread's work
  /// on the tensors is done; nobody waits on the host. Copies, so that each rank holds the memory
  /// that it would hold on a device of its own. CPU tensors are passed on as they are.
  Tensors receive(Tensors tensors) const;

 private:
  std::optional<c10::Event> ready_;
};

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
