// How ranks hand tensors to one another.
//
// Sending never blocks; receiving waits for the one message asked for, whatever else has arrived.
// Threading: a transport belongs to one rank and is used by its thread, only stop() may be called
// by any. Once a rank has failed, every call throws its RankFault, on every rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "planner/ir/ids.h"
#include "planner/ir/units.h"
#include "runtime/model/stage.h"
#include "runtime/transport/reason.h"

namespace pfeife {

/// Which message: equal on both sides, and used once between two ranks.
struct Tag {
  std::uint64_t step = 0;
  std::uint32_t task = 0;     ///< of the DependencyGraph, or a number above all tasks
  std::uint32_t channel = 0;  ///< tells messages of one task apart
  friend auto operator<=>(const Tag&, const Tag&) = default;
};

struct Message {
  Tensors tensors;         ///< some may be undefined
  Nanoseconds posted{0};   ///< when the sender handed it over
  Nanoseconds arrived{0};  ///< when all of it was at the receiver
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual RankId rank() const = 0;
  virtual std::size_t ranks() const = 0;

  /// Hands the tensors over and returns at once. Nobody may write into them afterwards.
  virtual void send(RankId to, Tag tag, Tensors tensors) = 0;
  /// Waits for the message.
  virtual Message receive(RankId from, Tag tag) = 0;
  /// Makes every call on every rank fail with `fault`, unless one has failed before.
  virtual void stop(const RankFault& fault) = 0;
};

/// The clock of the thread if it has one of its own (virtual_clock.h), else nullptr.
inline thread_local Nanoseconds* thread_clock = nullptr;

/// Time since an unspecified start, the same for all processes of a machine.
inline Nanoseconds now() {
  if (thread_clock != nullptr) return *thread_clock;
  return std::chrono::duration_cast<Nanoseconds>(
      std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace pfeife
