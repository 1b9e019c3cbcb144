#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "planner/io/files/dependent_process.h"
#include "planner/ir/basics/error.h"
#include "sim/server/server.h"

extern char** environ;

namespace pfeife {
namespace {

std::array<int, 2> socket_pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw RuntimeFault("no socket to the simulation server: " + std::string(strerror(errno)));
  return ends;
}

/// Sends an open file; false if nobody is there. Messages of one byte are not mixed, whoever sends.
bool pass(int control, int file) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  ssize_t sent = 0;
  do sent = sendmsg(control, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == 1;
}

/// The one server of this process.
class ServerProcess {
 public:
  Channel connect() {
    const std::lock_guard hold(mutex_);
    const std::array<int, 2> ends = socket_pair();
    bool passed = control_ >= 0 && pass(control_, ends[1]);
    if (!passed) {
      try {
        stop();
        start();
        passed = pass(control_, ends[1]);
      } catch (...) {
        close(ends[0]);
        close(ends[1]);
        throw;
      }
    }
    close(ends[1]);
    if (passed) return {ends[0], process_};
    close(ends[0]);
    throw RuntimeFault("the simulation server " + stop());
  }

  /// How it ended.
  std::string stop() {
    if (control_ >= 0) {
      shutdown(control_, SHUT_RDWR);  // forks of this process may hold it, too
      close(control_);
    }
    control_ = -1;
    if (process_ <= 0) return "has ended";
    int status = 0;
    pid_t waited = 0;
    do waited = waitpid(process_, &status, 0);
    while (waited < 0 && errno == EINTR);
    // Somebody else may have waited for it; only its parent can.
    ended_ = {process_, waited > 0 ? ending(status) : "has ended"};
    process_ = -1;
    return ended_.how;
  }
  std::string end(pid_t process) {
    const std::lock_guard hold(mutex_);
    if (process == process_) return stop();
    return process == ended_.process ? ended_.how : "has ended";
  }

 private:
  /// It has no other file of this process than its standard error, answers signals as programs do,
  /// and does not belong to the keyboard's process group: an interrupt is for the caller to answer.
  void start() {
    const std::string program = server_program();
    const std::array<int, 2> ends = socket_pair();
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    posix_spawnattr_t how;
    posix_spawnattr_init(&how);
    sigset_t set;
    sigemptyset(&set);
    posix_spawnattr_setsigmask(&how, &set);
    sigfillset(&set);
    posix_spawnattr_setsigdefault(&how, &set);
    posix_spawnattr_setpgroup(&how, 0);
    posix_spawnattr_setflags(
        &how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    std::string name = "pfeife_sim_server";
    std::array<char*, 2> arguments{name.data(), nullptr};
    const int error =
        posix_spawn(&process_, program.c_str(), &files, &how, arguments.data(), environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    control_ = ends[0];
    if (error == 0) return;
    process_ = -1;
    close(control_);
    control_ = -1;
    throw RuntimeFault("cannot start the simulation server " + program + ": " + strerror(error));
  }

  std::mutex mutex_;
  int control_ = -1;
  pid_t process_ = -1;
  struct {
    pid_t process = -1;
    std::string how;
  } ended_;  // the last one
};

/// Not destroyed: threads may simulate until the process ends, and the server ends with it.
ServerProcess& server() {
  static ServerProcess& process = *new ServerProcess;
  return process;
}

}  // namespace

Channel connect_to_server() { return server().connect(); }
std::string end_of_server(int process) { return server().end(process); }

}  // namespace pfeife
