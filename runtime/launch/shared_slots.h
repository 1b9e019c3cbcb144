// Memory that our launcher and its ranks share: what each rank is doing, that it is alive, why it
// failed, and where the ranks meet. A file without a name: nothing of it outlives the processes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/transport/socket.h"

namespace pfeife {

/// A text that is written once and then read by all.
class OnceText {
 public:
  /// The first counts.
  void put(const std::string& text);
  std::optional<std::string> find() const;

 private:
  enum : std::uint32_t { kEmpty, kBeingWritten, kThere };
  std::atomic<std::uint32_t> state_;
  char text_[1024];
};

/// A rank's part. Texts are written whole before `failed` is set.
struct Slot {
  std::atomic<std::uint64_t> beats;
  std::atomic<std::uint32_t> failed, finished;
  std::atomic<std::uint32_t> only_gone;    ///< the reason is a RankFault that is gone()
  std::atomic<std::uint32_t> wrong_input;  ///< the reason is what the ranks were given
  char action[64];
  char reason[1024];
  std::array<OnceText, 3> lines;  ///< of the meeting, by topic
};

class SharedSlots {
 public:
  /// New ones, all zero.
  explicit SharedSlots(std::size_t ranks);
  /// The launcher's slots, by the descriptor that the rank has from it, which is closed.
  /// ConfigError if it is none of such a memory.
  SharedSlots(int descriptor, std::size_t ranks);
  ~SharedSlots();
  SharedSlots(const SharedSlots&) = delete;
  SharedSlots& operator=(const SharedSlots&) = delete;

  Slot& operator[](std::size_t rank) { return slots_[rank]; }
  std::size_t ranks() const { return ranks_; }
  /// In a child process, before it becomes a rank: the descriptor that the rank gets.
  int hand_over() const;

 private:
  void map();

  Socket file_;
  std::size_t ranks_;
  Slot* slots_ = nullptr;
};

}  // namespace pfeife
