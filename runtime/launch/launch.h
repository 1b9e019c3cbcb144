// Ranks as processes of this host.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/transport/socket.h"

namespace pfeife {

// Memory that our launcher and its ranks share: what each rank is doing, that it is alive, why it
// failed, and where the ranks meet. A file without a name: nothing of it outlives the processes.

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

// Our own launcher: ranks of this host as processes, started, watched and stopped together.

/// What a rank tells its launcher: what it is doing, that it is alive, why it failed. In memory
/// that both map, so that it outlives the rank.
class Status {
 public:
  /// Beats until destroyed. The slot must outlive it.
  explicit Status(Slot& slot);
  ~Status();
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;

  void entering(const std::string& action);
  /// `gone`: as in RankFault.
  void failed(const std::string& reason, bool gone = false);
  /// What the ranks were given is wrong: nothing has started.
  void refused(const std::string& reason);
  /// The rank has done all it was to do.
  void finished();

 private:
  struct Beat;
  Slot& slot_;
  std::unique_ptr<Beat> beat_;
};

/// How ranks ended.
struct LocalEnd {
  std::string reason;        ///< one sentence naming rank, action and cause; "" = all ended well
  bool wrong_input = false;  ///< of a rank that Status::refused
};

/// Starts `ranks` copies of this program with the same arguments and waits for them. When one ends
/// badly, is killed or stalls (no sign of life for 5 s), the others get 3 s and are then killed.
/// No process and no file is left behind, not even by Ctrl-C (SIGINT, SIGTERM, SIGHUP).
LocalEnd run_local_ranks(std::size_t ranks, const std::vector<std::string>& arguments);

}  // namespace pfeife
