// How ranks hand tensors to one another.
//
// Sending never blocks; receiving waits for the one message asked for, whatever else has arrived.
// A transport may want what a step exchanges in the order of the rank's row (keeps_rows): it then
// moves tensors behind the host, in that order, and makes the device wait for them, not the host.
// Threading: a transport belongs to one rank and is used by its thread, only stop() may be called
// by any. Once a rank has failed, every call throws its RankFault, on every rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/units.h"
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

/// Messages between two ranks that hold tensors of equal types and sizes, whatever the microbatch.
struct Form {
  StageId from, to;
  bool onward = true;        ///< values; else gradients
  std::int64_t samples = 0;  ///< of the microbatch
  friend auto operator<=>(const Form&, const Form&) = default;
};

/// What the steps of a pipeline exchange; equal on all ranks.
struct Exchanges {
  std::set<std::pair<RankId, RankId>> messages;         ///< (from, to)
  std::set<std::vector<RankId>> sums;                   ///< parties, sorted
  std::function<std::string(std::uint32_t task)> name;  ///< for messages about failures
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

  /// Whether a step is given to it in the order of the rank's row, by the functions below, which
  /// are then there. Every rank must call each of them as its row says.
  virtual bool keeps_rows() const { return false; }
  /// Before the first step.
  virtual void prepare(const Exchanges&) {}
  /// A SEND.
  virtual void send_in_row(RankId, Tag, const Form&, Tensors) {}
  /// A RECV. receive() of the same tag makes the device wait for it.
  virtual void expect(RankId, Tag, const Form&) {}
  /// A reduction: dense tensors, equal in types and sizes on all parties, become their sum.
  virtual void add_up(const std::vector<RankId>&, Tag, Tensors) {}
  /// The sum, for which the device waits.
  virtual Tensors sum(Tag) { return {}; }
  /// Waits until all of the step has been exchanged.
  virtual void end_step() {}
};

/// The clock of the thread if it has one of its own, else nullptr.
inline thread_local Nanoseconds* thread_clock = nullptr;

/// Time since an unspecified start, the same for all processes of a machine.
inline Nanoseconds now() {
  if (thread_clock != nullptr) return *thread_clock;
  return std::chrono::duration_cast<Nanoseconds>(
      std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace pfeife
