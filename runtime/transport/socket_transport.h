// Messages between processes: a socket for each pair of ranks, with one thread that writes and one
// that reads: sending never blocks the rank, and messages arrive while it computes. Of messages
// that wait for the writer the one with the least tag goes first, in one call. A rank that goes
// away without a farewell makes every call on the others fail; without a launcher of ours that
// watches the ranks, so does one that gives no sign of life.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/transport/socket.h"
#include "runtime/transport/transport.h"

namespace pfeife {

/// A rank is taken to stall when nothing is heard of it for so long.
constexpr std::chrono::seconds kStall{5};
/// What others get to end by themselves once a rank has failed.
constexpr std::chrono::seconds kGrace{3};

class SocketTransport final : public Transport {
 public:
  /// `sockets`: [rank], this one's is not used. `beats`: ranks tell each other that they live, and
  /// what they do; equal on all. A rank that has been heard of once stalls after kStall; until then
  /// it may still be joining, and the socket's own limit counts.
  SocketTransport(RankId rank, std::vector<Socket> sockets, bool beats);
  ~SocketTransport() override;

  /// Tensors that were on a sender's device arrive on this one, by way of the host. Before any use.
  void place_on(at::Device device) { device_ = device; }

  /// From now on the calling thread, and those that it starts, give way to the threads that move
  /// messages (2 on the scale of nice): where every processor computes, a message that has come
  /// would wait for the end of a time slice, some milliseconds.
  static void compute_behind_transfers();

  RankId rank() const override { return rank_; }
  std::size_t ranks() const override { return peers_.size(); }
  void send(RankId to, Tag tag, Tensors tensors) override;
  Message receive(RankId from, Tag tag) override;
  void stop(const RankFault& fault) override;

  /// What this rank is doing, for the others' messages about its end. By any thread.
  void entering(const std::string& action);
  /// The failure; waits for one at most `patience`.
  std::optional<RankFault> wait_for_failure(std::chrono::milliseconds patience);
  /// After a failure: waits until the lower ranks have said farewell, at most kGrace. True if none
  /// of them is left, so that it is for this rank to report.
  bool is_lowest_left();
  /// Tells the others that nothing follows.
  void say_farewell();
  /// Says farewell and waits until all others have. RankFault if one failed meanwhile. The
  /// destructor waits, too.
  void finish();

 private:
  enum class End { None, Farewell, Gone };
  struct Outgoing;
  struct Peer {
    Socket socket;
    ReadAhead ahead;  // of the reader alone
    std::thread writer, reader;
    std::mutex mutex;  // of the queue
    std::condition_variable more;
    std::deque<Outgoing> queue;
    bool heard = false;       // by the reader alone
    End end = End::None;      // guarded by mutex_, as is
    std::string last_action;  // what it was doing when last heard
  };

  void wait_for_all();
  bool fail(const RankFault& fault);
  void enqueue_for_all(const Outgoing& frame);
  static void enqueue(Peer& peer, Outgoing frame);
  static bool write_frame(const Socket& socket, Outgoing& frame);
  void write_loop(Peer& peer);
  void read_loop(std::size_t peer);
  bool read_frame(std::size_t peer);
  void end(std::size_t peer, End how);
  RankFault what_ended(std::size_t peer, int error);

  struct Arrived {
    Message message;  // on the CPU
    std::vector<bool> on_device;
  };

  RankId rank_;
  bool beats_;
  at::Device device_ = at::kCPU;
  std::vector<Peer> peers_;
  std::mutex mutex_;
  std::condition_variable changed_;  ///< a message, an end, a failure
  std::map<std::pair<RankId, Tag>, Arrived> inbox_;
  std::optional<RankFault> failure_;
  std::string action_;
};

}  // namespace pfeife
