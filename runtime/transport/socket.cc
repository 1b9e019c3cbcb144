#include "runtime/transport/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr int kBacklog = 1024;

/// A name in the abstract namespace: its first byte is zero.
struct HostName {
  sockaddr_un address{};
  socklen_t length = 0;
  explicit HostName(const std::string& name) {
    PFEIFE_CHECK(name.size() + 1 < sizeof address.sun_path);
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// What getaddrinfo returns, and why it found nothing.
std::pair<Addresses, int> look_up(const std::string& host, std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  return {Addresses(error == 0 ? found : nullptr, freeaddrinfo), error};
}

/// errno tells why there is none.
Addresses addresses_of(const std::string& host, std::uint16_t port) {
  auto [found, error] = look_up(host, port);
  if (error != 0) errno = EHOSTUNREACH;
  return std::move(found);
}

void set(const Socket& socket, int level, int option, int value) {
  setsockopt(socket.get(), level, option, &value, sizeof value);
}

timeval as_timeval(std::chrono::milliseconds time) {
  return {time.count() / 1000, time.count() % 1000 * 1000};
}

Socket connect_to_one(const addrinfo& address, std::chrono::milliseconds limit) {
  Socket joined(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!joined.is_open()) return joined;
  const timeval wait = as_timeval(std::max(limit, std::chrono::milliseconds(1)));
  setsockopt(joined.get(), SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);  // also of connect()
  if (connect(joined.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno == EINPROGRESS) errno = ETIMEDOUT;
    return Socket();
  }
  const timeval none{};
  setsockopt(joined.get(), SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
  set(joined, IPPROTO_TCP, TCP_NODELAY, 1);
  return joined;
}

std::string numeric(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST];
  return getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text
                                                                                          : "";
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

std::pair<sockaddr_storage, socklen_t> end_here(const Socket& socket) {
  std::pair<sockaddr_storage, socklen_t> end{{}, sizeof(sockaddr_storage)};
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&end.first), &end.second);
  return end;
}

/// Not open if that fails; errno tells why.
Socket listen_on(const sockaddr* address, socklen_t length) {
  Socket listener(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.is_open()) return listener;
  if (address->sa_family == AF_INET6) set(listener, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(listener.get(), address, length) != 0 || listen(listener.get(), kBacklog) != 0)
    return Socket();
  return listener;
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Socket::~Socket() {
  if (descriptor_ < 0) return;
  const int before = errno;
  close(descriptor_);
  errno = before;
}

int Socket::release() { return std::exchange(descriptor_, -1); }

std::size_t Socket::read_some(void* to, std::size_t count) const {
  ssize_t got = 0;
  do got = recv(descriptor_, to, count, 0);
  while (got < 0 && errno == EINTR);
  if (got == 0) errno = 0;
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

bool Socket::read_all(void* to, std::size_t count) const {
  auto* at = static_cast<char*>(to);
  while (count > 0) {
    const std::size_t got = read_some(at, count);
    if (got == 0) return false;
    at += got, count -= got;
  }
  return true;
}

bool Socket::write_all(const void* from, std::size_t count) const {
  iovec all{const_cast<void*>(from), count};
  return write_all({&all, 1});
}

bool Socket::write_all(std::span<iovec> parts) const {
  while (true) {
    while (!parts.empty() && parts.front().iov_len == 0) parts = parts.subspan(1);
    if (parts.empty()) return true;
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = std::min<std::size_t>(parts.size(), IOV_MAX);
    const ssize_t put = ::sendmsg(descriptor_, &message, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    for (auto left = static_cast<std::size_t>(put); left > 0;) {
      iovec& first = parts.front();
      const std::size_t taken = std::min(left, first.iov_len);
      first.iov_base = static_cast<char*>(first.iov_base) + taken;
      first.iov_len -= taken, left -= taken;
      if (first.iov_len == 0) parts = parts.subspan(1);
    }
  }
}

bool ReadAhead::read_all(const Socket& socket, void* to, std::size_t count) {
  constexpr std::size_t kBuffer = std::size_t{64} << 10;
  auto* at = static_cast<char*>(to);
  while (count > 0) {
    if (begin_ == end_) {
      if (count >= kBuffer) return socket.read_all(at, count);
      buffer_.resize(kBuffer);
      begin_ = 0, end_ = socket.read_some(buffer_.data(), kBuffer);
      if (end_ == 0) return false;
    }
    const std::size_t taken = std::min(count, end_ - begin_);
    std::memcpy(at, buffer_.data() + begin_, taken);
    at += taken, count -= taken, begin_ += taken;
  }
  return true;
}

void Socket::limit_silence(std::chrono::milliseconds limit) const {
  const timeval wait = as_timeval(limit);
  setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
}

Socket listen_on_host(const std::string& name) {
  Socket listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const HostName own(name);
  if (bind(listener.get(), own.get(), own.length) != 0 || listen(listener.get(), kBacklog) != 0)
    throw RuntimeFault(std::string("cannot listen for ranks of this host: ") +
                       std::strerror(errno));
  return listener;
}

Socket listen_on_port(std::uint16_t port) {
  sockaddr_in6 six{};
  sockaddr_in four{};
  six.sin6_family = AF_INET6, four.sin_family = AF_INET;
  six.sin6_port = four.sin_port = htons(port);
  Socket listener = listen_on(reinterpret_cast<const sockaddr*>(&six), sizeof six);
  if (!listener.is_open() && errno == EAFNOSUPPORT)  // a host without IPv6
    listener = listen_on(reinterpret_cast<const sockaddr*>(&four), sizeof four);
  if (!listener.is_open())
    throw RuntimeFault(stream_all("cannot listen at port ", port, ": ", std::strerror(errno)));
  return listener;
}

Socket listen_at(const std::string& host, std::uint16_t port) {
  const Addresses found = addresses_of(host, port);
  for (const addrinfo* address = found.get(); address != nullptr; address = address->ai_next) {
    if (is_loopback(numeric(address->ai_addr, address->ai_addrlen)) && host != "localhost" &&
        !is_loopback(host))
      break;
    Socket listener = listen_on(address->ai_addr, address->ai_addrlen);
    if (listener.is_open()) return listener;
    if (errno == EADDRINUSE)
      throw RuntimeFault(stream_all("cannot listen at port ", port, ": ", std::strerror(errno)));
  }
  return listen_on_port(port);
}

std::string address_of(const Socket& listener) {
  const auto [address, length] = end_here(listener);
  const std::string text = numeric(reinterpret_cast<const sockaddr*>(&address), length);
  return text == "::" || text == "0.0.0.0" ? "" : text;
}

std::uint16_t port_of(const Socket& listener) {
  const sockaddr_storage address = end_here(listener).first;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

Socket connect_on_host(const std::string& name) {
  Socket joined(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const HostName other(name);
  if (connect(joined.get(), other.get(), other.length) != 0) return Socket();
  return joined;
}

Socket connect_to(const std::string& host, std::uint16_t port, std::chrono::milliseconds limit) {
  const Addresses found = addresses_of(host, port);
  for (const addrinfo* address = found.get(); address != nullptr; address = address->ai_next)
    if (Socket joined = connect_to_one(*address, limit); joined.is_open()) return joined;
  return Socket();
}

Socket accept_from(const Socket& listener) {
  fcntl(listener.get(), F_SETFL, O_NONBLOCK);
  Socket joined(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (joined.is_open())
    set(joined, IPPROTO_TCP, TCP_NODELAY, 1);  // refused, without harm, by a Unix domain socket
  return joined;
}

std::string why_unknown(const std::string& host) {
  const int error = look_up(host, 0).second;
  return error == 0 ? "" : gai_strerror(error);
}

std::string address_towards(const std::string& host) {
  const Addresses found = addresses_of(host, 9);  // no packet is sent: any port will do
  for (const addrinfo* to = found.get(); to != nullptr; to = to->ai_next) {
    const Socket probe(socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (connect(probe.get(), to->ai_addr, to->ai_addrlen) != 0) continue;
    const auto [address_here, length] = end_here(probe);
    const std::string name = numeric(reinterpret_cast<const sockaddr*>(&address_here), length);
    if (!name.empty()) return is_loopback(name) ? "" : name;
  }
  return "";
}

std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code ignored;  // containers of one machine have networks, and thus names, of their own
  return boot + "/" + std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
}

}  // namespace pfeife
