
#include "runtime/launch/join.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <sstream>
#include <thread>

#include "planner/io/files/digest.h"
#include "runtime/transport/reason.h"

namespace pfeife {
namespace {

using Clock = std::chrono::steady_clock;
using Millis = std::chrono::milliseconds;
using Topic = Meeting::Topic;

Millis left_until(Clock::time_point deadline) {
  return std::max(std::chrono::duration_cast<Millis>(deadline - Clock::now()), Millis(0));
}

std::uint64_t random_number() {
  std::random_device random;  // its only use: nothing that is computed depends on it
  return (std::uint64_t{random()} << 32) | random();
}

/// What only who knows the secret can say of `text`.
std::string proof_of(const std::string& secret, const std::string& text) {
  const std::string key = sha256("pfeife " + secret);
  return sha256(key + text + key);
}

/// The proof of whoever connects to a rank; with `answered`, of the rank itself.
std::string greeting_proof(const std::string& secret, std::uint64_t token, std::size_t caller,
                           bool answered) {
  return proof_of(secret, stream_all(answered ? "welcome " : "greeting ", token, " ", caller));
}

/// That a rank is there.
struct Arrival {
  std::string host;     ///< host_identity()
  std::string address;  ///< towards the meeting; "-" = that of the meeting
};

/// Where a rank waits for the ranks above it.
struct Listening {
  std::uint64_t token = 0;    ///< other for each run: no greeting counts twice
  std::string name = "-";     ///< on the host; "-" = nobody will connect there, as of the port 0
  std::string address = "-";  ///< "-" = that of the meeting
  std::uint16_t port = 0;
};

std::istream& operator>>(std::istream& in, Arrival& at) { return in >> at.host >> at.address; }
std::istream& operator>>(std::istream& in, Listening& at) {
  return in >> at.token >> at.name >> at.address >> at.port;
}

struct Listeners {
  Listening self;
  Socket on_host, on_port;
};

constexpr Millis kGivingUp{500};

class Joining {
 public:
  Joining(Meeting& meeting, RankId rank, std::size_t ranks, const JoinOptions& options)
      : meeting_(meeting),
        rank_(rank),
        ranks_(ranks),
        options_(options),
        deadline_(Clock::now() + options.patience) {}

  std::vector<Socket> join() {
    const std::string towards = meeting_.host().empty() ? "" : address_towards(meeting_.host());
    const std::string address = towards.empty() ? "-" : towards;
    put(Topic::Came, stream_all(host_identity(), " ", address));
    arrivals_ = lines_of_all<Arrival>(Topic::Came);
    const Listeners door = listen();
    put(Topic::Listens, stream_all(door.self.token, " ", door.self.name, " ", door.self.address,
                                   " ", door.self.port));
    const std::vector<Listening> all = lines_of_all<Listening>(Topic::Listens);
    std::vector<Socket> sockets(ranks_);
    for (std::size_t r = 0; r < rank_.index(); ++r) sockets[r] = connect_to_rank(r, all[r]);
    receive(door, sockets);
    for (std::size_t r = 0; r < rank_.index(); ++r) read_answer(r, all[r], sockets[r]);
    // A rank that has joined hears nothing of one that still waits for others.
    for (const Socket& socket : sockets)
      if (socket.is_open())
        socket.limit_silence(options_.beats ? left_until(deadline_) + kStall : Millis(0));
    return sockets;
  }

 private:
  void put(Topic topic, const std::string& text) {
    meeting_.put(topic, rank_, text + " " + line_proof(topic, rank_.index(), text));
  }
  std::string line_proof(Topic topic, std::size_t rank, const std::string& text) const {
    return proof_of(options_.secret,
                    stream_all("line ", static_cast<int>(topic), " ", rank, " ", text));
  }

  /// Empty if whoever left the line does not know the secret.
  template <class Line>
  std::optional<Line> line_of(Topic topic, std::size_t rank, const std::string& line) const {
    const std::size_t end = std::min(line.rfind(' '), line.size());
    const std::string text = line.substr(0, end);
    if (end == line.size() || line.substr(end + 1) != line_proof(topic, rank, text)) return {};
    Line found;
    std::istringstream in(text);
    if (!(in >> found))
      throw RuntimeFault("what a rank left at the meeting cannot be read: '" + line + "'");
    return found;
  }

  /// All give up together, with the same reason; the lowest rank that came tells it for all.
  [[noreturn]] void give_up(const std::string& reason, Topic topic, bool is_lowest) {
    meeting_.put(Topic::GaveUp, RankId{0}, reason.substr(0, 1000));
    std::this_thread::sleep_for(kGivingUp);  // this one may be the keeper of the meeting
    end_with(reason, topic, is_lowest);
  }
  /// A lower rank, the keeper of the meeting above all, may come just after this one looked.
  [[noreturn]] void end_with(const std::string& reason, Topic topic, bool is_lowest) {
    if (is_lowest && rank_.index() > 0) {
      std::this_thread::sleep_for(kGivingUp);
      for (std::size_t r = 0; r < rank_.index(); ++r)
        is_lowest = is_lowest && !meeting_.find(topic, RankId{r});
    }
    throw RankMissing(reason, is_lowest);
  }

  template <class Line>
  std::vector<Line> lines_of_all(Topic topic) {
    std::vector<std::optional<Line>> found(ranks_);
    for (;;) {
      std::string missing, strangers;
      std::size_t count = 0, other_secrets = 0, lowest = ranks_;
      for (std::size_t r = 0; r < ranks_; ++r) {
        if (!found[r])
          if (const auto line = meeting_.find(topic, RankId{r})) {
            lowest = std::min(lowest, r);
            found[r] = line_of<Line>(topic, r, *line);
            if (!found[r]) strangers += (other_secrets++ == 0 ? "" : ", ") + std::to_string(r);
          }
        if (found[r]) lowest = std::min(lowest, r);
        if (!found[r]) missing += (count++ == 0 ? "" : ", ") + std::to_string(r);
      }
      if (count == 0) break;
      const bool is_lowest = lowest == rank_.index();
      if (const auto reason = meeting_.find(Topic::GaveUp, RankId{0}))
        end_with(*reason, topic, is_lowest);
      if (other_secrets > 0)
        give_up(
            stream_all(other_secrets == 1 ? "rank " : "ranks ", strangers,
                       other_secrets == 1 ? " has" : " have", " another PFEIFE_SECRET than rank ",
                       rank_.value, ", or no part in this run; give all ranks the same"),
            topic, is_lowest);
      if (Clock::now() >= deadline_)
        give_up(stream_all(count == 1 ? "rank " : "ranks ", missing, " of ", ranks_,
                           " did not come within ",
                           static_cast<double>(options_.patience.count()) / 1000, " s"),
                topic, is_lowest);
      std::this_thread::sleep_for(Millis(10));
    }
    std::vector<Line> all;
    for (auto& line : found) all.push_back(std::move(*line));
    return all;
  }

  bool by_name(std::size_t a, std::size_t b) const {
    return arrivals_[a].host == arrivals_[b].host && !options_.tcp;
  }

  /// The address of this host at which the ranks above reach it; "" = every one.
  std::string address_here() const {
    const std::string& host = arrivals_[rank_.index()].host;
    bool all_here = true;
    for (std::size_t r = rank_.index() + 1; r < ranks_; ++r)
      all_here = all_here && arrivals_[r].host == host;
    if (all_here) return "127.0.0.1";
    if (arrivals_[rank_.index()].address != "-") return arrivals_[rank_.index()].address;
    for (std::size_t r = rank_.index() + 1; r < ranks_; ++r)
      if (arrivals_[r].host != host && arrivals_[r].address != "-")
        return address_towards(arrivals_[r].address);
    return "";
  }

  Listeners listen() const {
    bool name = false, port = false;
    for (std::size_t r = rank_.index() + 1; r < ranks_; ++r)
      (by_name(rank_.index(), r) ? name : port) = true;
    Listeners door;
    door.self.token = random_number();
    if (name) {
      door.self.name = stream_all("pfeife-", random_number());
      door.on_host = listen_on_host(door.self.name);
    }
    if (!port) return door;
    const std::string address = address_here();
    door.on_port = address.empty() ? listen_on_port(0) : listen_at(address, 0);
    door.self.port = port_of(door.on_port);
    if (!address.empty()) door.self.address = address;
    return door;
  }

  [[noreturn]] void fail_to_reach(std::size_t rank, const std::string& place,
                                  const std::string& why) const {
    throw RankFault(
        RankId{rank},
        stream_all("rank ", rank_.value, " cannot connect to rank ", rank, place, ": ", why), true);
  }
  std::string place_of(const Listening& other) const {
    if (other.port == 0) return " on its own host";
    return stream_all(" at ", host_of(other), " port ", other.port);
  }
  std::string host_of(const Listening& other) const {
    return other.address != "-" ? other.address : meeting_.host();
  }

  /// To a lower rank, with a greeting.
  Socket connect_to_rank(std::size_t rank, const Listening& other) const {
    Socket joined = by_name(rank, rank_.index())
                        ? connect_on_host(other.name)
                        : connect_to(host_of(other), other.port, left_until(deadline_));
    Greeting greeting{rank_.index(), {}};
    std::ranges::copy(greeting_proof(options_.secret, other.token, rank_.index(), false),
                      greeting.proof.begin());
    if (!joined.is_open() || !joined.write_all(&greeting, sizeof greeting))
      fail_to_reach(rank, place_of(other), std::strerror(errno));
    return joined;
  }

  void read_answer(std::size_t rank, const Listening& other, const Socket& socket) const {
    std::string proof(64, ' ');
    socket.limit_silence(std::max(left_until(deadline_), Millis(1)));
    if (!socket.read_all(proof.data(), proof.size()))
      fail_to_reach(rank, place_of(other), errno == 0 ? "it hung up" : std::strerror(errno));
    if (proof != greeting_proof(options_.secret, other.token, rank_.index(), true))
      fail_to_reach(rank, place_of(other), "who answers does not know the run's secret");
  }

  /// From all higher ranks.
  void receive(const Listeners& door, std::vector<Socket>& sockets) const {
    std::vector<const Socket*> listeners;
    for (const Socket* listener : {&door.on_host, &door.on_port})
      if (listener->is_open()) listeners.push_back(listener);
    const auto proof = [&](std::size_t rank, bool answered) {
      return greeting_proof(options_.secret, door.self.token, rank, answered);
    };
    const auto accepts = [&](const Greeting& greeting) {
      return greeting.rank > rank_.index() && greeting.rank < ranks_ &&
             std::ranges::equal(greeting.proof, proof(greeting.rank, false));
    };
    const std::size_t above = ranks_ - rank_.index() - 1;
    auto joined = receive_ranks(listeners, above, accepts, deadline_);
    if (joined.size() < above)
      throw RuntimeFault(stream_all("rank ", rank_.value, " waited in vain for ",
                                    above - joined.size(), " ranks above it to connect: is port ",
                                    door.self.port, " closed by a firewall?"));
    for (auto& [rank, socket] : joined) {
      const std::string answer = proof(rank, true);
      if (!socket.write_all(answer.data(), answer.size()))
        throw RankFault(RankId{rank},
                        stream_all("rank ", rank, " ended without a farewell while joining"), true);
      sockets[rank] = std::move(socket);
    }
  }

  Meeting& meeting_;
  RankId rank_;
  std::size_t ranks_;
  const JoinOptions& options_;
  Clock::time_point deadline_;
  std::vector<Arrival> arrivals_;
};

}  // namespace

std::unique_ptr<SocketTransport> join_by_sockets(Meeting& meeting, RankId rank, std::size_t ranks,
                                                 const JoinOptions& options) {
  return std::make_unique<SocketTransport>(rank, Joining(meeting, rank, ranks, options).join(),
                                           options.beats);
}

std::string fresh_secret() {
  return stream_all(std::hex, random_number(), random_number(), random_number(), random_number());
}

}  // namespace pfeife
