#include "runtime/launch/failure_watch.h"

#include <unistd.h>

namespace pfeife {

FailureWatch::FailureWatch(SocketTransport& transport,
                           const std::function<void(const std::string&)>& report)
    : transport_(transport), report_(report), thread_([this] { watch(); }) {}

FailureWatch::~FailureWatch() {
  stopped_ = true;
  thread_.join();
}

void FailureWatch::watch() {
  std::optional<RankFault> fault;
  while (!fault && !stopped_) fault = transport_.wait_for_failure(std::chrono::milliseconds(50));
  if (!fault) fault = transport_.wait_for_failure(std::chrono::milliseconds(0));
  if (!fault) return;
  const auto deadline = std::chrono::steady_clock::now() + kGrace;
  if (transport_.is_lowest_left()) report_(fault->what());
  transport_.say_farewell();
  while (!stopped_ && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (!stopped_) _exit(4);
}

}  // namespace pfeife
