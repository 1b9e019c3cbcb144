#include "runtime/transport/reason.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <new>

namespace pfeife {

std::string reason_of(const std::exception& error) {
  std::string text = error.what();
  if (const auto* torch = dynamic_cast<const c10::Error*>(&error))
    text = torch->what_without_backtrace();
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                      text.find("can't allocate memory") != std::string::npos ||
                      text.find("out of memory") != std::string::npos;
  std::ranges::replace(text, '\n', ' ');
  return memory ? "out of memory: " + text : text;
}

RankFault rank_fault(const std::exception& error, RankId rank, const std::string& at) {
  if (const auto* known = dynamic_cast<const RankFault*>(&error)) return *known;
  return {rank, "rank " + to_string(rank) + " failed" + (at.empty() ? "" : " at " + at) + ": " +
                    reason_of(error)};
}

}  // namespace pfeife
