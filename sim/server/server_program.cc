// The simulation server: a small process that forks one child for each simulation, so that the
// program that simulates, which may be large, have threads and hold a GPU, does not fork. Started
// by sim/server/server.cc; knows nothing of what the children compute.
//
// Standard input is the control socket: each byte comes with an open channel, a stream socket.
// On a channel comes a request (engine.h), up to its end; then go its answer, or the reason why
// there is none, and last the wait status of the process that worked on it (4 bytes). Who closes
// a channel does not want its answer any more: the child is killed. When the control socket ends,
// so do the server and its children.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "planner/io/files/dependent_process.h"
#include "planner/ir/basics/error.h"
#include "sim/engine.h"

namespace pfeife {
namespace {

constexpr int kControl = STDIN_FILENO;
constexpr int kFailed = 1 << 8;  // wait status of a process that left with code 1

/// A simulation in progress.
struct Session {
  int channel = -1;         // -1 = nobody wants the answer
  pid_t process = -1;       // that makes it; -1 = it has ended
  int life = -1;            // reaches its end with the process
  std::int32_t status = 0;  // its wait status
};

void close_if_open(int& file) {
  if (file >= 0) close(file);
  file = -1;
}

bool send_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(file, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string receive_all(int file) {
  std::string bytes;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t count = read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return bytes;
    bytes.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

/// For each run the number of ends that follow, and these: every end of the run that is wanted
/// whole, and of one in which some task never ran; else the last one.
std::string answer(const EngineWork& work) {
  std::vector<std::int64_t> numbers;
  run_engine(work, [&](std::uint64_t run, const std::vector<std::int64_t>& ends) {
    const bool stuck = std::find(ends.begin(), ends.end(), -1) != ends.end();
    if (stuck || run == work.whole) {
      numbers.push_back(static_cast<std::int64_t>(ends.size()));
      numbers.insert(numbers.end(), ends.begin(), ends.end());
    } else {
      numbers.insert(numbers.end(), {1, ends.empty() ? 0 : *std::ranges::max_element(ends)});
    }
  });
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof numbers[0]};
}

/// The life of a child; its exit code.
int simulate(int channel) {
  std::string reason;
  try {
    return send_all(channel, answer(engine_work(receive_all(channel)))) ? 0 : 1;
  } catch (const std::exception& error) {
    reason = error.what();
  } catch (...) {
    reason = "unknown exception";
  }
  send_all(channel, reason);
  return 1;
}

/// The next channel from the control socket; none at its end.
std::optional<int> take_channel() {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  const ssize_t count = recvmsg(kControl, &message, MSG_CMSG_CLOEXEC);
  if (count < 0 && errno == EINTR) return -1;
  if (count <= 0) return std::nullopt;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return -1;  // no file could be opened
  int channel = -1;
  std::memcpy(&channel, CMSG_DATA(header), sizeof channel);
  return channel;
}

class Server {
 public:
  /// Until the control socket ends.
  void serve() {
    std::vector<pollfd> files;
    for (bool open = true; open;) {
      files.assign(1, {kControl, POLLIN, 0});
      for (const Session& session : sessions_) {
        const bool ended = session.process < 0;
        files.push_back({session.life, POLLIN, 0});
        files.push_back({session.channel, static_cast<short>(ended ? POLLOUT : 0), 0});
      }
      if (poll(files.data(), files.size(), -1) < 0) continue;  // by a signal
      for (std::size_t s = 0; s < sessions_.size(); ++s)
        attend(sessions_[s], files[1 + 2 * s].revents, files[2 + 2 * s].revents);
      std::erase_if(sessions_, [](const Session& s) { return s.process < 0 && s.channel < 0; });
      if (files[0].revents == 0) continue;
      const std::optional<int> channel = take_channel();
      open = channel.has_value();
      if (open && *channel >= 0) start(*channel);
    }
    for (const Session& session : sessions_)
      if (session.process > 0) kill(session.process, SIGKILL);
  }

 private:
  void start(int channel) {
    Session session{.channel = channel};
    std::array<int, 2> life{-1, -1};
    try {
      if (pipe2(life.data(), O_CLOEXEC) != 0)
        throw RuntimeFault("no pipe to a process: " + std::string(strerror(errno)));
      session.process = start_dependent(SIGKILL, [&] {
        for (Session& other : sessions_) {
          close_if_open(other.channel);
          close_if_open(other.life);
        }
        close(life[0]);
        close(kControl);
        return simulate(channel);
      });
    } catch (const RuntimeFault& fault) {
      send_all(channel, fault.what());
      session.status = kFailed;
      close_if_open(life[0]);
    }
    close_if_open(life[1]);
    session.life = life[0];
    sessions_.push_back(session);
  }

  /// What has happened to a simulation's process, and at the other end of its channel.
  static void attend(Session& session, short of_life, short of_channel) {
    if (of_life != 0) {
      session.status = wait_for_end(session.process);
      session.process = -1;
      close_if_open(session.life);
    } else if ((of_channel & (POLLHUP | POLLERR)) != 0) {
      if (session.process > 0) kill(session.process, SIGKILL);
      close_if_open(session.channel);
    } else if ((of_channel & POLLOUT) != 0) {
      // What the process sent may fill the channel: then once more.
      if (::send(session.channel, &session.status, sizeof session.status,
                 MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
          (errno == EAGAIN || errno == EINTR))
        return;
      close_if_open(session.channel);
    }
  }

  std::vector<Session> sessions_;
};

}  // namespace
}  // namespace pfeife

int main() {
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    std::fputs(
        "pfeife_sim_server: programs that simulate start it; there is nothing to be started by "
        "hand\n",
        stderr);
    return 2;
  }
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  pfeife::Server().serve();
}
