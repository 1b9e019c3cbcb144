// Stream sockets: Unix domain sockets of this host, and TCP. No threads and no messages here.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pfeife {

/// A file descriptor that closes itself.
class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  /// Gives the descriptor away.
  int release();

  /// False at the end of the stream (errno is then 0), on an error, or when the next byte takes
  /// longer than limit_silence() allows (EAGAIN).
  bool read_all(void* to, std::size_t count) const;
  bool write_all(const void* from, std::size_t count) const;
  /// The parts one after the other, in as few calls as the system takes: each call may wake the
  /// reader, who then takes a processor from whoever computes. `parts` are used up.
  bool write_all(std::span<iovec> parts) const;
  /// What is there, at most `count` bytes, at least one; 0 where read_all is false.
  std::size_t read_some(void* to, std::size_t count) const;
  /// How long read_all waits for the next byte; zero = for ever.
  void limit_silence(std::chrono::milliseconds limit) const;

 private:
  int descriptor_;
};

/// Reads ahead: many short reads are few calls. Long ones go past the buffer.
class ReadAhead {
 public:
  /// Socket::read_all through the buffer. Nobody else may read from `socket`.
  bool read_all(const Socket& socket, void* to, std::size_t count);

 private:
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  ///< in buffer_: read, not yet asked for
};

/// Listens under a name of this host that is no file: nothing of it outlives the process.
/// RuntimeFault with the system's reason.
Socket listen_on_host(const std::string& name);
/// Listens on all addresses of this host, IPv6 and IPv4; 0 = any free port. RuntimeFault with the
/// system's reason.
Socket listen_on_port(std::uint16_t port);
/// Listens only at the address of this host that others know as `host`: on all addresses if that is
/// none of this host's, or if a name stands for this host itself here and may stand for another of
/// its addresses elsewhere. RuntimeFault with the system's reason.
Socket listen_at(const std::string& host, std::uint16_t port);
/// The numeric address that it listens at; "" = all.
std::string address_of(const Socket& listener);
std::uint16_t port_of(const Socket& listener);

/// Not open if nobody listens there; errno tells why.
Socket connect_on_host(const std::string& name);
/// `host` is a name or an address. Waits at most `limit`; not open if that fails, errno tells why.
Socket connect_to(const std::string& host, std::uint16_t port, std::chrono::milliseconds limit);

/// The next that has connected; not open if there is none.
Socket accept_from(const Socket& listener);

/// Why nothing is known by this name or address; "" if something is.
std::string why_unknown(const std::string& host);

/// The address of this host from which `host` is reached; "" if it is this host itself, or cannot
/// be reached.
std::string address_towards(const std::string& host);

/// Equal for all processes that can reach each other by listen_on_host().
std::string host_identity();

}  // namespace pfeife
