// What mains do with errors: one line on standard error, and an exit code.
#pragma once

#include <csignal>
#include <exception>
#include <iostream>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/printable.h"

namespace pfeife {

/// The result of `run()`, an exit code; 2 if it throws ConfigError, 4 for any other exception, and
/// if what it printed cannot be written. A file that outgrows the process's limit (ulimit -f) is an
/// error of the write like a full disk, no signal.
template <class Run>
int run_main(const char* program, const Run& run) {
  std::signal(SIGXFSZ, SIG_IGN);
  try {
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
