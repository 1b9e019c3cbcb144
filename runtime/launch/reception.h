// The connections that a rank waits for, accepted in parallel: whoever does not greet as a rank of
// the run is dropped and holds up nobody.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <vector>

#include "runtime/transport/socket.h"

namespace pfeife {

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

}  // namespace pfeife
