// Tensors from the stream of one thread to that of another.
#pragma once

#include <c10/core/Event.h>

#include <optional>

#include "runtime/model/stage.h"

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

}  // namespace pfeife
