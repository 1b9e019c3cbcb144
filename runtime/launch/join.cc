#include "runtime/launch/join.h"

#include <cerrno>
#include <cstring>
#include <random>
#include <sstream>
#include <thread>

#include "runtime/transport/reason.h"

namespace pfeife {
namespace {

using Clock = std::chrono::steady_clock;
using Millis = std::chrono::milliseconds;

Millis left_until(Clock::time_point deadline) {
  return std::max(std::chrono::duration_cast<Millis>(deadline - Clock::now()), Millis(0));
}

/// What a rank says of itself at the meeting.
struct Listening {
  std::uint64_t token = 0;  ///< whoever connects must know it; also its name on the host
  std::string host;         ///< host_identity()
  std::uint16_t port = 0;
  std::string address;  ///< "-" = that of the meeting
};

std::string to_line(const Listening& at) {
  return stream_all(at.token, " ", at.host, " ", at.port, " ", at.address);
}

Listening from_line(const std::string& line) {
  Listening at;
  std::istringstream in(line);
  if (!(in >> at.token >> at.host >> at.port >> at.address))
    throw RuntimeFault("what a rank left at the meeting cannot be read: '" + line + "'");
  return at;
}

std::string name_on_host(std::uint64_t token) { return stream_all("pfeife-", token); }

std::uint64_t fresh_token() {
  std::random_device random;  // its only use: nothing that is computed depends on it
  return (std::uint64_t{random()} << 32) | random();
}

/// The first bytes of a connection: which rank it is, and that it is one.
struct Greeting {
  std::uint64_t token = 0;
  std::uint64_t rank = 0;
};

/// What a rank listens at until all have connected.
struct Listeners {
  Listening self;
  Socket on_host, on_port;
};

Listeners listen(const Meeting& meeting) {
  const std::uint64_t token = fresh_token();
  Listeners at{
      {token, host_identity(), 0, "-"}, listen_on_host(name_on_host(token)), listen_on_port(0)};
  at.self.port = port_of(at.on_port);
  const std::string address = meeting.host().empty() ? "" : address_towards(meeting.host());
  if (!address.empty()) at.self.address = address;
  return at;
}

/// Under this rank's name stands why the first that lost patience gave up.
constexpr RankId kNobody{-1};

/// All give up together, with the same reason, so that one of them can tell for all.
[[noreturn]] void give_up(Meeting& meeting, const std::string& reason, bool report) {
  meeting.put(kNobody, reason);
  std::this_thread::sleep_for(Millis(500));  // this one may be the keeper of the meeting
  throw RankMissing(reason, report);
}

/// The lines of all ranks.
std::vector<Listening> meet(Meeting& meeting, RankId rank, std::size_t ranks,
                            Clock::time_point deadline, Millis patience) {
  std::vector<std::optional<Listening>> found(ranks);
  for (;;) {
    std::string missing;
    std::size_t count = 0, lowest = ranks;
    for (std::size_t r = 0; r < ranks; ++r) {
      if (!found[r])
        if (const auto line = meeting.find(RankId{r})) found[r] = from_line(*line);
      if (found[r]) lowest = std::min(lowest, r);
      if (!found[r]) missing += (count++ == 0 ? "" : ", ") + std::to_string(r);
    }
    if (count == 0) break;
    if (const auto reason = meeting.find(kNobody))
      throw RankMissing(*reason, lowest == rank.index());
    if (Clock::now() >= deadline)
      give_up(
          meeting,
          stream_all(count == 1 ? "rank " : "ranks ", missing, " of ", ranks,
                     " did not come within ", static_cast<double>(patience.count()) / 1000, " s"),
          lowest == rank.index());
    std::this_thread::sleep_for(Millis(10));
  }
  std::vector<Listening> all;
  for (const auto& one : found) all.push_back(*one);
  return all;
}

/// To a lower rank.
Socket connect_to_rank(const Listening& self, std::size_t own_rank, const Listening& other,
                       const std::string& meeting_host, std::size_t rank,
                       const JoinOptions& options, Clock::time_point deadline) {
  const bool same_host = self.host == other.host;
  const std::string host = same_host              ? "localhost"
                           : other.address == "-" ? meeting_host
                                                  : other.address;
  Socket joined = same_host && !options.tcp ? connect_on_host(name_on_host(other.token))
                                            : connect_to(host, other.port, left_until(deadline));
  const Greeting greeting{other.token, own_rank};
  if (!joined.is_open() || !joined.write_all(&greeting, sizeof greeting))
    throw RuntimeFault(stream_all("rank ", own_rank, " ", kCannotConnect, rank,
                                  same_host && !options.tcp
                                      ? std::string(" on its own host")
                                      : stream_all(" at ", host, " port ", other.port),
                                  ": ", std::strerror(errno)));
  return joined;
}

}  // namespace

std::unique_ptr<SocketTransport> join_by_sockets(Meeting& meeting, RankId rank, std::size_t ranks,
                                                 const JoinOptions& options) {
  const auto deadline = Clock::now() + options.patience;
  const Listeners listeners = listen(meeting);
  meeting.put(rank, to_line(listeners.self));
  const std::vector<Listening> all = meet(meeting, rank, ranks, deadline, options.patience);
  std::vector<Socket> sockets(ranks);
  for (std::size_t r = 0; r < rank.index(); ++r)
    sockets[r] =
        connect_to_rank(listeners.self, rank.index(), all[r], meeting.host(), r, options, deadline);
  for (std::size_t missing = ranks - rank.index() - 1; missing > 0;) {
    Socket joined = accept_one(listeners.on_host, listeners.on_port, left_until(deadline));
    if (!joined.is_open())
      throw RuntimeFault(stream_all("rank ", rank.value, " waited in vain for ", missing,
                                    " ranks above it to connect: is port ", listeners.self.port,
                                    " closed by a firewall?"));
    Greeting greeting;
    joined.limit_silence(std::chrono::seconds(5));
    if (!joined.read_all(&greeting, sizeof greeting) || greeting.token != listeners.self.token ||
        greeting.rank <= rank.index() || greeting.rank >= ranks || sockets[greeting.rank].is_open())
      continue;  // none of ours
    joined.limit_silence(Millis(0));
    sockets[greeting.rank] = std::move(joined);
    --missing;
  }
  return std::make_unique<SocketTransport>(rank, std::move(sockets), options.beats);
}

}  // namespace pfeife
