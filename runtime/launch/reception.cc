#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <list>

#include "runtime/launch/join.h"

namespace pfeife {
namespace {

using Clock = std::chrono::steady_clock;
using Millis = std::chrono::milliseconds;

constexpr std::size_t kMostStrangers = 256;  // who have not greeted so far
constexpr Millis kLook{100};

/// Who has connected but not greeted so far.
struct Caller {
  Socket socket;
  Greeting greeting;
  std::size_t got = 0;  // bytes of the greeting
  bool gone = false;

  bool greeted() const { return got == sizeof greeting; }
  void read() {
    const ssize_t count = recv(socket.get(), reinterpret_cast<char*>(&greeting) + got,
                               sizeof greeting - got, MSG_DONTWAIT);
    if (count > 0) got += static_cast<std::size_t>(count);
    gone = count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
  }
};

void wait_for_any(const std::vector<const Socket*>& listeners, const std::list<Caller>& callers,
                  Clock::time_point deadline) {
  std::vector<pollfd> waiting;
  for (const Socket* listener : listeners) waiting.push_back({listener->get(), POLLIN, 0});
  for (const Caller& caller : callers) waiting.push_back({caller.socket.get(), POLLIN, 0});
  const auto left = std::chrono::duration_cast<Millis>(deadline - Clock::now());
  poll(waiting.data(), waiting.size(),
       static_cast<int>(std::clamp(left, Millis(0), kLook).count()));
}

}  // namespace

std::map<std::size_t, Socket> receive_ranks(const std::vector<const Socket*>& listeners,
                                            std::size_t count,
                                            const std::function<bool(const Greeting&)>& accepts,
                                            Clock::time_point deadline) {
  std::map<std::size_t, Socket> joined;
  std::list<Caller> callers;
  while (joined.size() < count && Clock::now() < deadline) {
    wait_for_any(listeners, callers, deadline);
    for (const Socket* listener : listeners)
      for (Socket socket = accept_from(*listener); socket.is_open();
           socket = accept_from(*listener))
        callers.push_back({std::move(socket), {}});
    for (Caller& caller : callers) {
      caller.read();
      if (!caller.greeted()) continue;
      caller.gone = true;
      const auto rank = static_cast<std::size_t>(caller.greeting.rank);
      if (!joined.contains(rank) && accepts(caller.greeting))
        joined[rank] = std::move(caller.socket);
    }
    std::erase_if(callers, [](const Caller& caller) { return caller.gone; });
    while (callers.size() > kMostStrangers) callers.pop_front();
  }
  return joined;
}

}  // namespace pfeife
