// What mains do with errors: one line on standard error, and an exit code.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <thread>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/printable.h"

namespace pfeife {

/// A stack limit (ulimit -s) below 1 MiB becomes 8 MiB, of threads, too. ConfigError where the
/// system forbids it: a full stack ends a program without a word.
inline void ensure_stack() {
  constexpr rlim_t kLeast = rlim_t{1} << 20, kUsual = rlim_t{8} << 20;
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeast) return;
  const rlim_t found = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max >= kLeast ? std::min(limit.rlim_max, kUsual) : kUsual;
  limit.rlim_max = std::max(limit.rlim_max, limit.rlim_cur);
  if (setrlimit(RLIMIT_STACK, &limit) != 0)
    throw ConfigError({}, "the stack limit is " + std::to_string(found / 1024) +
                              " KiB, and 1024 are needed; raise it with ulimit -s 8192");
  pthread_attr_t threads;
  pthread_attr_init(&threads);
  pthread_attr_setstacksize(&threads, limit.rlim_cur);
  pthread_setattr_default_np(&threads);
  pthread_attr_destroy(&threads);
}

/// The result of `run()`, an exit code; 2 if it throws ConfigError, 4 for any other exception, and
/// if what it printed cannot be written. A file that outgrows the process's limit (ulimit -f) is an
/// error of the write like a full disk, no signal.
template <class Run>
int run_main(const char* program, const Run& run) {
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    ensure_stack();
    const int code = run();
    std::cout.flush();
    if (!std::cout) throw RuntimeFault("standard output cannot be written");
    return code;
  } catch (const ConfigError& error) {
    std::cerr << program << ": " << error.what() << "\n";
    return 2;
  } catch (const RuntimeFault& fault) {
    std::cerr << program << ": " << printable_line(fault.what()) << "\n";
    return 4;
  } catch (const std::exception& error) {
    std::cerr << program << ": " << printable(error.what()) << "\n";
    return 4;
  }
}

}  // namespace pfeife
