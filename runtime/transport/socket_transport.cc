#include "runtime/transport/socket_transport.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "planner/ir/basics/error.h"
#include "runtime/device/device.h"
#include "runtime/device/tensor_bytes.h"
#include "runtime/model/operators.h"
#include "runtime/transport/reason.h"

namespace pfeife {
namespace {

constexpr std::chrono::milliseconds kBeat{250};

/// Stop and Gone tell a RankFault, Gone one that says no more than that.
enum class FrameKind : std::uint32_t { Message, Stop, Gone, Farewell, Beat };

struct FrameHead {
  FrameKind kind = FrameKind::Message;
  std::uint32_t count = 0;  ///< tensors, or bytes of a text
  Tag tag;
  std::int64_t posted = 0;  ///< of a message; of a failure, the rank
};

struct TensorHead {
  std::int32_t type = -1;  ///< -1: undefined
  std::int32_t dimensions = 0;
  std::int64_t on_device = 0;
};

std::vector<bool> on_devices(const Tensors& tensors) {
  std::vector<bool> found;
  for (const at::Tensor& tensor : tensors)
    found.push_back(tensor.defined() && !tensor.device().is_cpu());
  return found;
}

at::Tensor stored_on_host(const at::Tensor& tensor) {
  return tensor.defined() ? as_stored(tensor).cpu() : tensor;
}

/// What goes before the bytes of a tensor: its head, sizes and strides.
void add_heads(std::vector<std::int64_t>& heads, const at::Tensor& tensor, bool on_device) {
  TensorHead head;
  if (tensor.defined())
    head = {static_cast<std::int32_t>(tensor.scalar_type()),
            static_cast<std::int32_t>(tensor.dim()), on_device};
  static_assert(sizeof head == 2 * sizeof heads[0]);
  std::int64_t words[2];
  std::memcpy(words, &head, sizeof head);
  heads.insert(heads.end(), std::begin(words), std::end(words));
  if (!tensor.defined()) return;
  heads.insert(heads.end(), tensor.sizes().begin(), tensor.sizes().end());
  heads.insert(heads.end(), tensor.strides().begin(), tensor.strides().end());
}

template <class Read>
bool read_tensor(const Read& read, at::Tensor& tensor, std::vector<bool>& on_device) {
  TensorHead head;
  if (!read(&head, sizeof head)) return false;
  on_device.push_back(head.on_device != 0);
  if (head.type < 0) return true;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(head.dimensions)), strides(sizes);
  const std::size_t extent = sizes.size() * sizeof(std::int64_t);
  if (!read(sizes.data(), extent) || !read(strides.data(), extent)) return false;
  tensor = at::empty_strided(sizes, strides,
                             at::TensorOptions().dtype(static_cast<c10::ScalarType>(head.type)));
  return read(tensor.mutable_data_ptr(), tensor.nbytes());
}

}  // namespace

struct SocketTransport::Outgoing {
  FrameHead head;
  Tensors tensors;
  std::string text;
  std::vector<bool> on_device = {};  ///< as the tensors were handed over

  static Outgoing of_text(FrameKind kind, const std::string& text) {
    return {{kind, static_cast<std::uint32_t>(text.size())}, {}, text};
  }
  static Outgoing of_failure(const RankFault& fault) {
    Outgoing frame = of_text(fault.gone() ? FrameKind::Gone : FrameKind::Stop, fault.what());
    frame.head.posted = fault.rank().value;
    return frame;
  }
  /// The waiting message whose SEND the row has first goes first: the graph numbers them
  /// so.
  bool goes_before(const Outgoing& other) const {
    return head.kind == FrameKind::Message && other.head.kind == FrameKind::Message &&
           head.tag < other.head.tag;
  }
  bool stops() const { return head.kind == FrameKind::Stop || head.kind == FrameKind::Gone; }
};

bool SocketTransport::write_frame(const Socket& socket, Outgoing& frame) {
  std::vector<std::vector<std::int64_t>> heads(frame.tensors.size());
  std::vector<iovec> parts{{&frame.head, sizeof frame.head},
                           {frame.text.data(), frame.text.size()}};
  for (std::size_t i = 0; i < frame.tensors.size(); ++i) {
    const at::Tensor& tensor = frame.tensors[i];
    add_heads(heads[i], tensor, frame.on_device[i]);
    parts.push_back({heads[i].data(), heads[i].size() * sizeof(std::int64_t)});
    if (!tensor.defined()) continue;
    const std::span<const char> bytes = stored_bytes(tensor);
    parts.push_back({const_cast<char*>(bytes.data()), bytes.size()});
  }
  return socket.write_all(parts);
}

SocketTransport::SocketTransport(RankId rank, std::vector<Socket> sockets, bool beats)
    : rank_(rank), beats_(beats), peers_(sockets.size()) {
  for (std::size_t r = 0; r < peers_.size(); ++r) peers_[r].socket = std::move(sockets[r]);
  for (std::size_t r = 0; r < peers_.size(); ++r)
    if (r != rank_.index()) {
      peers_[r].writer = std::thread([this, r] { write_loop(peers_[r]); });
      peers_[r].reader = std::thread([this, r] { read_loop(r); });
    }
}

void SocketTransport::compute_behind_transfers() {
  const auto self = static_cast<id_t>(gettid());
  setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + 2);  // at worst as it was
}

SocketTransport::~SocketTransport() {
  wait_for_all();
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    Peer& peer = peers_[r];
    if (r == rank_.index()) continue;
    {
      const std::lock_guard lock(mutex_);
      if (peer.end != End::Farewell) shutdown(peer.socket.get(), SHUT_RDWR);  // wakes both threads
    }
    peer.writer.join();
    peer.reader.join();
  }
}

/// Until all have ended; only for a while if one of them has failed.
void SocketTransport::wait_for_all() {
  say_farewell();
  std::unique_lock lock(mutex_);
  const auto all_ended = [&] {
    for (std::size_t r = 0; r < peers_.size(); ++r)
      if (r != rank_.index() && peers_[r].end == End::None) return false;
    return true;
  };
  changed_.wait(lock, [&] { return all_ended() || failure_; });
  changed_.wait_for(lock, kGrace, all_ended);
}

void SocketTransport::finish() {
  wait_for_all();
  const std::lock_guard lock(mutex_);
  if (failure_) throw *failure_;
}

void SocketTransport::send(RankId to, Tag tag, Tensors tensors) {
  const std::int64_t posted = now().count();
  std::vector<bool> on_device = on_devices(tensors);
  for (at::Tensor& tensor : tensors) tensor = stored_on_host(tensor);
  {
    const std::lock_guard lock(mutex_);
    if (failure_) throw *failure_;
    if (to == rank_) {
      inbox_[{to, tag}] = {{std::move(tensors), Nanoseconds{posted}, now()}, std::move(on_device)};
      return;
    }
  }
  const auto count = static_cast<std::uint32_t>(tensors.size());
  enqueue(peers_[to.index()],
          {{FrameKind::Message, count, tag, posted}, std::move(tensors), {}, std::move(on_device)});
}

Message SocketTransport::receive(RankId from, Tag tag) {
  std::unique_lock lock(mutex_);
  const std::pair key{from, tag};
  const Peer& peer = peers_[from.index()];
  changed_.wait(lock, [&] { return inbox_.contains(key) || failure_ || peer.end != End::None; });
  if (failure_) throw *failure_;
  auto found = inbox_.extract(key);
  if (!found) throw RankFault(from, "rank " + to_string(from) + " ended before all was done");
  lock.unlock();
  Arrived& arrived = found.mapped();
  for (std::size_t i = 0; i < arrived.on_device.size(); ++i)
    if (at::Tensor& tensor = arrived.message.tensors[i]; arrived.on_device[i] && tensor.defined())
      tensor = copied_ahead(tensor, device_, tensor.scalar_type());
  return std::move(arrived.message);
}

void SocketTransport::stop(const RankFault& fault) { fail(fault); }

void SocketTransport::entering(const std::string& action) {
  const std::lock_guard lock(mutex_);
  action_ = action;
}

std::optional<RankFault> SocketTransport::wait_for_failure(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] { return failure_.has_value(); });
  return failure_;
}

bool SocketTransport::is_lowest_left() {
  const auto deadline = std::chrono::steady_clock::now() + kGrace;
  std::unique_lock lock(mutex_);
  for (std::size_t r = 0; r < rank_.index(); ++r) {
    changed_.wait_until(lock, deadline, [&] { return peers_[r].end != End::None; });
    if (peers_[r].end == End::Farewell) return false;
  }
  return true;
}

void SocketTransport::say_farewell() { enqueue_for_all({{FrameKind::Farewell}, {}, {}}); }

/// True if this is the first failure. All ranks get to know: not each may have noticed.
bool SocketTransport::fail(const RankFault& fault) {
  const std::lock_guard lock(mutex_);
  if (failure_) return false;
  // Before this rank's own thread can see the failure, and say farewell: nothing follows that.
  enqueue_for_all(Outgoing::of_failure(fault));
  failure_ = fault;
  changed_.notify_all();
  return true;
}

void SocketTransport::enqueue_for_all(const Outgoing& frame) {
  for (std::size_t r = 0; r < peers_.size(); ++r)
    if (r != rank_.index()) enqueue(peers_[r], frame);
}

void SocketTransport::enqueue(Peer& peer, Outgoing frame) {
  {
    const std::lock_guard lock(peer.mutex);
    const bool stop = frame.stops();
    const bool farewell = !peer.queue.empty() && peer.queue.back().head.kind == FrameKind::Farewell;
    if (stop) peer.queue.clear();  // nobody waits for these any more
    auto turn = peer.queue.end();
    while (turn != peer.queue.begin() && frame.goes_before(*std::prev(turn))) --turn;
    peer.queue.insert(turn, std::move(frame));
    if (stop && farewell) peer.queue.push_back({{FrameKind::Farewell}, {}, {}});  // ends the writer
  }
  peer.more.notify_one();
}

void SocketTransport::write_loop(Peer& peer) {
  const auto any = [&] { return !peer.queue.empty(); };
  auto next_beat = std::chrono::steady_clock::now();
  for (bool last = false; !last;) {
    Outgoing frame;
    if (beats_ && std::chrono::steady_clock::now() >= next_beat) {
      next_beat += kBeat;
      const std::lock_guard lock(mutex_);
      frame = Outgoing::of_text(FrameKind::Beat, action_);
    } else {
      std::unique_lock lock(peer.mutex);
      if (!beats_) peer.more.wait(lock, any);
      if (!peer.more.wait_until(lock, next_beat, any)) continue;
      frame = std::move(peer.queue.front());
      peer.queue.pop_front();
    }
    last = !write_frame(peer.socket, frame) || frame.head.kind == FrameKind::Farewell;
  }
  shutdown(peer.socket.get(), SHUT_WR);
}

void SocketTransport::read_loop(std::size_t peer) {
  try {
    while (read_frame(peer)) {
    }
  } catch (const std::exception& error) {  // no memory for what comes
    fail({rank_, stream_all("rank ", rank_.value, " failed to receive from rank ", peer, ": ",
                            error.what())});
    end(peer, End::Gone);
  }
}

/// False if it was the last.
bool SocketTransport::read_frame(std::size_t peer) {
  const Socket& socket = peers_[peer].socket;
  const auto read = [&](void* to, std::size_t count) {
    return peers_[peer].ahead.read_all(socket, to, count);
  };
  const RankId from{peer};
  FrameHead head;
  bool good = read(&head, sizeof head);
  if (good && beats_ && !std::exchange(peers_[peer].heard, true)) socket.limit_silence(kStall);
  if (good && head.kind == FrameKind::Farewell) {
    end(peer, End::Farewell);
    return false;
  }
  if (good && head.kind == FrameKind::Message) {
    Arrived arrived{{Tensors(head.count), Nanoseconds{head.posted}, {}}, {}};
    for (at::Tensor& tensor : arrived.message.tensors)
      good = good && read_tensor(read, tensor, arrived.on_device);
    if (good) {
      arrived.message.arrived = now();
      const std::lock_guard lock(mutex_);
      inbox_[{from, head.tag}] = std::move(arrived);
      changed_.notify_all();
    }
  } else if (good) {
    std::string text(head.count, '\0');
    good = read(text.data(), text.size());
    if (good && (head.kind == FrameKind::Stop || head.kind == FrameKind::Gone))
      fail({RankId{head.posted}, text, head.kind == FrameKind::Gone});
    const std::lock_guard lock(mutex_);
    if (good && head.kind == FrameKind::Beat) peers_[peer].last_action = text;
  }
  if (good) return true;
  fail(what_ended(peer, errno));
  end(peer, End::Gone);
  return false;
}

void SocketTransport::end(std::size_t peer, End how) {
  const std::lock_guard lock(mutex_);
  peers_[peer].end = how;
  changed_.notify_all();
}

RankFault SocketTransport::what_ended(std::size_t peer, int error) {
  const std::lock_guard lock(mutex_);
  const std::string& action = peers_[peer].last_action;
  const std::string place = action.empty() ? "" : ", last heard of at " + action;
  if (error == EAGAIN)
    return {RankId{peer}, stream_all("rank ", peer, " stalls: no sign of life for ", kStall.count(),
                                     " s", place)};
  return {
      RankId{peer},
      stream_all("rank ", peer, " ended without a farewell", place, ": it crashed or was killed"),
      true};
}

}  // namespace pfeife
