// A pool of processes that do numbered pieces of work and send back bytes. Every piece runs in a
// fresh process.
//
// Inputs are inherited, not sent: a piece sees the memory of the caller as it was at the fork. A
// few workers take the next number from a shared counter and fork once for each; so the caller's
// many pages are not copied by one core alone. If a piece throws or its process dies, everything is
// stopped and the error names the piece.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace pfeife {

struct PoolWork {
  std::size_t pieces = 0;
  std::size_t workers = 0;                       ///< at most; 0 = one a core
  std::function<std::string(std::size_t)> run;   ///< does one piece, in its own process
  std::function<std::string(std::size_t)> name;  ///< of a piece, for messages
  std::function<void(std::size_t, std::string_view)>
      on_result;  ///< in the caller, in order of arrival
};

/// Returns when every piece has been done and on_result called once for each. No process is left
/// over. Errors: RuntimeFault if a piece throws, is killed or cannot be started; exceptions of
/// on_result pass through.
void run_in_processes(const PoolWork& work);

}  // namespace pfeife
