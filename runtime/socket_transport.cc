#include "runtime/socket_transport.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "planner/ir/error.h"
#include "runtime/operators.h"

namespace pfeife {
namespace {

/// A file descriptor that closes itself.
class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  int get() const { return descriptor_; }

  /// False at the end of the stream or on an error.
  bool read_all(void* to, std::size_t count) const {
    auto* at = static_cast<char*>(to);
    while (count > 0) {
      const ssize_t got = recv(descriptor_, at, count, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got, count -= static_cast<std::size_t>(got);
    }
    return true;
  }
  bool write_all(const void* from, std::size_t count) const {
    const auto* at = static_cast<const char*>(from);
    while (count > 0) {
      const ssize_t put = ::send(descriptor_, at, count, MSG_NOSIGNAL);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return false;
      at += put, count -= static_cast<std::size_t>(put);
    }
    return true;
  }

 private:
  int descriptor_;
};

enum class FrameKind : std::uint32_t { Message, Stop, Farewell };

struct FrameHead {
  FrameKind kind = FrameKind::Message;
  std::uint32_t count = 0;  ///< tensors, or bytes of a reason
  Tag tag;
  std::int64_t posted = 0;
};

struct TensorHead {
  std::int32_t type = -1;  ///< -1: undefined
  std::int32_t dimensions = 0;
};

struct Outgoing {
  FrameHead head;
  Tensors tensors;
  std::string reason;
};

/// The same values in a dense storage, strides kept where possible: kernels then do the same work.
at::Tensor sendable(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  const at::Tensor here = tensor.detach().cpu();
  return here.is_non_overlapping_and_dense() ? here : here.contiguous();
}

bool write_tensor(const Socket& socket, const at::Tensor& tensor) {
  TensorHead head;
  if (!tensor.defined()) return socket.write_all(&head, sizeof head);
  head = {static_cast<std::int32_t>(tensor.scalar_type()), static_cast<std::int32_t>(tensor.dim())};
  const auto extent = sizeof(std::int64_t) * static_cast<std::size_t>(tensor.dim());
  return socket.write_all(&head, sizeof head) && socket.write_all(tensor.sizes().data(), extent) &&
         socket.write_all(tensor.strides().data(), extent) &&
         socket.write_all(tensor.const_data_ptr(), tensor.nbytes());
}

bool read_tensor(const Socket& socket, at::Tensor& tensor) {
  TensorHead head;
  if (!socket.read_all(&head, sizeof head)) return false;
  if (head.type < 0) return true;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(head.dimensions)), strides(sizes);
  const std::size_t extent = sizes.size() * sizeof(std::int64_t);
  if (!socket.read_all(sizes.data(), extent) || !socket.read_all(strides.data(), extent))
    return false;
  tensor = at::empty_strided(sizes, strides,
                             at::TensorOptions().dtype(static_cast<c10::ScalarType>(head.type)));
  return socket.read_all(tensor.mutable_data_ptr(), tensor.nbytes());
}

class SocketTransport final : public Transport {
 public:
  SocketTransport(RankId rank, std::vector<Socket> sockets) : rank_(rank), peers_(sockets.size()) {
    for (std::size_t r = 0; r < peers_.size(); ++r) peers_[r].socket = std::move(sockets[r]);
    for (std::size_t r = 0; r < peers_.size(); ++r)
      if (r != rank_.index()) {
        peers_[r].writer = std::thread([this, r] { write_loop(peers_[r]); });
        peers_[r].reader = std::thread([this, r] { read_loop(r); });
      }
  }

  ~SocketTransport() override {
    for (std::size_t r = 0; r < peers_.size(); ++r)
      if (r != rank_.index()) enqueue(peers_[r], {{FrameKind::Farewell}, {}, {}});
    for (Peer& peer : peers_)
      if (peer.writer.joinable()) peer.writer.join();
    for (Peer& peer : peers_)  // until the other's farewell, or its end
      if (peer.reader.joinable()) peer.reader.join();
  }

  RankId rank() const override { return rank_; }
  std::size_t ranks() const override { return peers_.size(); }

  void send(RankId to, Tag tag, Tensors tensors) override {
    const std::int64_t posted = now().count();
    for (at::Tensor& tensor : tensors) tensor = sendable(tensor);
    {
      const std::lock_guard lock(mutex_);
      if (!failure_.empty()) throw RuntimeFault(failure_);
      if (to == rank_) {
        inbox_[{to, tag}] = {std::move(tensors), Nanoseconds{posted}, now()};
        return;
      }
    }
    const auto count = static_cast<std::uint32_t>(tensors.size());
    enqueue(peers_[to.index()], {{FrameKind::Message, count, tag, posted}, std::move(tensors), {}});
  }

  Message receive(RankId from, Tag tag) override {
    std::unique_lock lock(mutex_);
    const std::pair key{from, tag};
    arrived_.wait(lock, [&] { return inbox_.contains(key) || !failure_.empty(); });
    if (!failure_.empty()) throw RuntimeFault(failure_);
    return std::move(inbox_.extract(key).mapped());
  }

  void stop(const std::string& reason) override {
    if (!fail(reason)) return;
    for (std::size_t r = 0; r < peers_.size(); ++r)
      if (r != rank_.index())
        enqueue(peers_[r],
                {{FrameKind::Stop, static_cast<std::uint32_t>(reason.size())}, {}, reason});
  }

 private:
  struct Peer {
    Socket socket;
    std::thread writer, reader;
    std::mutex mutex;
    std::condition_variable more;
    std::deque<Outgoing> queue;
  };

  /// True if this is the first failure.
  bool fail(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return false;
    failure_ = reason;
    arrived_.notify_all();
    return true;
  }

  static void enqueue(Peer& peer, Outgoing frame) {
    {
      const std::lock_guard lock(peer.mutex);
      peer.queue.push_back(std::move(frame));
    }
    peer.more.notify_one();
  }

  static void write_loop(Peer& peer) {
    for (;;) {
      std::unique_lock lock(peer.mutex);
      peer.more.wait(lock, [&] { return !peer.queue.empty(); });
      const Outgoing frame = std::move(peer.queue.front());
      peer.queue.pop_front();
      lock.unlock();
      bool good = peer.socket.write_all(&frame.head, sizeof frame.head) &&
                  peer.socket.write_all(frame.reason.data(), frame.reason.size());
      for (const at::Tensor& tensor : frame.tensors)
        good = good && write_tensor(peer.socket, tensor);
      if (!good || frame.head.kind == FrameKind::Farewell) break;  // the reader tells why
    }
    shutdown(peer.socket.get(), SHUT_WR);
  }

  void read_loop(std::size_t peer) {
    const Socket& socket = peers_[peer].socket;
    const RankId from{static_cast<std::int64_t>(peer)};
    FrameHead head;
    while (socket.read_all(&head, sizeof head)) {
      if (head.kind == FrameKind::Farewell) return;
      if (head.kind == FrameKind::Stop) {
        std::string reason(head.count, '\0');
        if (socket.read_all(reason.data(), reason.size())) fail(reason);
        continue;
      }
      Message message{Tensors(head.count), Nanoseconds{head.posted}, {}};
      bool good = true;
      for (at::Tensor& tensor : message.tensors) good = good && read_tensor(socket, tensor);
      if (!good) break;
      message.arrived = now();
      const std::lock_guard lock(mutex_);
      inbox_[{from, head.tag}] = std::move(message);
      arrived_.notify_all();
    }
    fail("rank " + to_string(from) + " ended without a farewell: it crashed or was killed");
  }

  RankId rank_;
  std::vector<Peer> peers_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::pair<RankId, Tag>, Message> inbox_;
  std::string failure_;
};

sockaddr_un address_of(const std::filesystem::path& folder, std::size_t rank) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (folder / ("rank_" + std::to_string(rank))).string();
  if (path.size() >= sizeof address.sun_path)
    throw RuntimeFault("the path of the ranks' sockets is too long: " + path);
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace

std::unique_ptr<Transport> join_by_sockets(const std::filesystem::path& folder, RankId rank,
                                           std::size_t ranks, std::chrono::seconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  Socket listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un own = address_of(folder, rank.index());
  const timeval limit{patience.count(), 0};
  setsockopt(listener.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
      listen(listener.get(), static_cast<int>(ranks)) != 0)
    throw RuntimeFault("rank " + to_string(rank) + " cannot listen at " + own.sun_path + ": " +
                       std::strerror(errno));
  std::vector<Socket> sockets(ranks);
  for (std::size_t r = 0; r < rank.index(); ++r) {
    const sockaddr_un address = address_of(folder, r);
    Socket joined;
    for (;;) {
      joined = Socket(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (connect(joined.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        break;
      if (std::chrono::steady_clock::now() > deadline)
        throw RuntimeFault(stream_all("rank ", rank.value, " waited in vain for rank ", r));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const std::uint32_t name = static_cast<std::uint32_t>(rank.value);
    joined.write_all(&name, sizeof name);
    sockets[r] = std::move(joined);
  }
  for (std::size_t r = rank.index() + 1; r < ranks; ++r) {
    Socket joined(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::uint32_t name = 0;
    if (joined.get() < 0 || !joined.read_all(&name, sizeof name) || name >= ranks)
      throw RuntimeFault("rank " + to_string(rank) + " waited in vain for the ranks above it");
    sockets[name] = std::move(joined);
  }
  unlink(own.sun_path);
  return std::make_unique<SocketTransport>(rank, std::move(sockets));
}

}  // namespace pfeife
