#include "sim/server/server.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "planner/io/files/dependent_process.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// A piece that is being worked on.
struct Pending {
  std::size_t piece = 0;
  Channel channel;
  std::string received;
};

/// The channels; whatever happens, none is left open when this goes, and who works for it stops.
class Channels {
 public:
  explicit Channels(const ServerWork& work) : work_(work) {}
  ~Channels() {
    for (const Pending& pending : pending_) close(pending.channel.file);
  }
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;

  /// Keeps so many pieces at work until all are done.
  void run(std::size_t workers) {
    std::vector<pollfd> files;
    for (std::size_t next = 0; next < work_.pieces || !pending_.empty();) {
      while (next < work_.pieces && pending_.size() < workers) start(next++);
      files.clear();
      for (const Pending& pending : pending_) files.push_back({pending.channel.file, POLLIN, 0});
      if (poll(files.data(), files.size(), -1) < 0) {
        if (errno == EINTR) continue;
        throw RuntimeFault("cannot wait for the simulation server: " +
                           std::string(strerror(errno)));
      }
      for (std::size_t i = files.size(); i-- > 0;)
        if (files[i].revents != 0 && !receive(pending_[i])) finish(i);
    }
  }

 private:
  void start(std::size_t piece) {
    const std::string request = work_.request(piece);
    pending_.push_back({piece, connect_to_server(), {}});
    Pending& pending = pending_.back();
    std::string_view rest = request;
    while (!rest.empty()) {
      const ssize_t sent = send(pending.channel.file, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) break;  // what comes back says why
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    shutdown(pending.channel.file, SHUT_WR);
  }

  /// False at the end.
  static bool receive(Pending& pending) {
    std::array<char, 65536> buffer;
    const ssize_t count = read(pending.channel.file, buffer.data(), buffer.size());
    if (count > 0) pending.received.append(buffer.data(), static_cast<std::size_t>(count));
    return count > 0 || (count < 0 && errno == EINTR);
  }

  void finish(std::size_t i) {
    const Pending done = std::move(pending_[i]);
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    close(done.channel.file);
    std::int32_t status = 0;
    const std::string failed = work_.name(done.piece) + " failed: ";
    if (done.received.size() < sizeof status)
      throw RuntimeFault(failed + "the simulation server " + end_of_server(done.channel.server));
    const std::size_t size = done.received.size() - sizeof status;
    std::memcpy(&status, done.received.data() + size, sizeof status);
    const std::string_view answer(done.received.data(), size);
    if (status == 0) return work_.on_result(done.piece, answer);
    throw RuntimeFault(failed + (size > 0 && status == 1 << 8 ? std::string(answer)
                                                              : "its process " + ending(status)));
  }

  const ServerWork& work_;
  std::vector<Pending> pending_;
};

}  // namespace

void run_by_server(const ServerWork& work) {
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  Channels(work).run(work.workers > 0 ? work.workers : cores);
}

}  // namespace pfeife
