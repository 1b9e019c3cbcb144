// What a rank copies to its host and back, beside what it computes.
//
// On an accelerator each way is a stream of its own, and nothing here waits on the host. On a CPU,
// whose memory is the host's, a copy is done when the call returns: it holds the rank.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "planner/ir/basics/units.h"
#include "runtime/device/aten.h"

namespace pfeife {

/// Memory of the host, page-locked where the device is an accelerator.
struct HostBuffer {
  at::Tensor bytes;
  std::shared_ptr<const c10::Event> read;  ///< its last reload; none on a CPU
};

/// Storages whose bytes are on the host.
struct OnHost {
  std::vector<std::pair<c10::Storage, HostBuffer>> storages;
  std::optional<c10::Event> away;
  std::shared_ptr<c10::Event> back;  ///< since reload()

  Bytes bytes() const;
};

class HostEngines {
 public:
  /// A moment of the current stream; begin and end of a copy.
  using Mark = std::function<Nanoseconds()>;
  using Span = std::pair<Nanoseconds, Nanoseconds>;

  explicit HostEngines(at::Device device) : device_(device) {}

  /// Copies the bytes out when all is done that the thread has given to the device, and lets go of
  /// the device's memory: until reload(), the storages have none, and nobody may read them. Others
  /// get the memory when the copy is done.
  Span offload(const std::vector<c10::Storage>& storages, OnHost& copies, const Mark& mark);
  /// Copies them back into memory of the device's that is taken now.
  Span reload(OnHost& copies, const Mark& mark);
  /// What the thread gives to the device from now on waits for the reload.
  void await(const OnHost& copies) const;

  /// The host's memory: in use, or kept for the next copies of the same sizes.
  Bytes held() const { return held_; }

 private:
  class OnStream;
  HostBuffer buffer(std::size_t bytes);

  at::Device device_;
  std::optional<c10::Stream> out_, back_;  // made for the first copy
  std::map<std::size_t, std::vector<HostBuffer>> free_;
  Bytes held_{0};
};

}  // namespace pfeife
