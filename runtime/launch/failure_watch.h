// Ranks that another launcher started watch each other: what makes all of them end within seconds,
// with one message.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "runtime/transport/socket_transport.h"

namespace pfeife {

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

}  // namespace pfeife
