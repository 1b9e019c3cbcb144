// Processes that end with the one that started them, however that ends.
//
// Functions in a header: the simulation server, which is to stay small, links no library for them.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "planner/ir/basics/error.h"

namespace pfeife {

/// Starts a process that goes on as a copy of this one, does `life` and leaves with its result as
/// exit code (4 if it throws). It gets `signal` when the thread that started it ends. Returns the
/// process id. Errors: RuntimeFault.
template <class Life>
pid_t start_dependent(int signal, const Life& life) {
  const pid_t parent = getpid(), process = fork();
  if (process < 0)
    throw RuntimeFault("no process can be started: " + std::string(std::strerror(errno)));
  if (process > 0) return process;
  prctl(PR_SET_PDEATHSIG, signal);
  if (getppid() != parent) _exit(4);  // it ended before the line above
  try {
    _exit(life());
  } catch (...) {
    _exit(4);
  }
}

/// Becomes another program; the first of `words` is its name. Returns only if that fails: 127.
inline int become_program(const char* program, std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program, arguments.data());
  return 127;
}

/// Waits for the end of a child; its wait status, 0 if somebody else has waited for it.
inline int wait_for_end(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// A wait status in words: "left with code 3", "was killed by signal 9 (Killed)".
inline std::string ending(int status) {
  if (!WIFSIGNALED(status)) return "left with code " + std::to_string(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return "was killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

}  // namespace pfeife
