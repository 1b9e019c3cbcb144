#include <c10/util/Exception.h>
#include <c10/util/Logging.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "planner/ir/basics/error.h"
#include "runtime/launch/meeting.h"
#include "runtime/transport/socket.h"

namespace pfeife {
namespace {

using Clock = std::chrono::steady_clock;
using Millis = std::chrono::milliseconds;
using Store = c10::intrusive_ptr<c10d::TCPStore>;
constexpr auto kNameComes = std::chrono::seconds(10);

Millis store_wait(Clock::time_point deadline) {
  return std::max(std::chrono::duration_cast<Millis>(deadline - Clock::now()), Millis(1));
}

std::string place(const StoreAddress& address) {
  return stream_all("MASTER_ADDR=", address.host, " MASTER_PORT=", address.port);
}

/// The store says every failure a second time, with a stack trace, in LibTorch's log; whoever wants
/// that sets TORCH_CPP_LOG_LEVEL.
class QuietLog {
 public:
  QuietLog() : before_(FLAGS_caffe2_log_level) {
    if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = c10::GLOG_FATAL;
  }
  ~QuietLog() { FLAGS_caffe2_log_level = before_; }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;

 private:
  int before_;
};

std::string keeper_ended(const StoreAddress& address) {
  return address.there ? "the launcher has ended it" : "rank 0 has ended, and its message says why";
}

/// One that listens at the port, but is no store, would let the store wait for ever: `call` is then
/// left to its thread, and must own all that it uses. `answered`: the store has done so before.
template <class Call>
auto ask(const StoreAddress& address, Millis patience, Call call, bool answered = false) {
  std::packaged_task<decltype(call())()> task(std::move(call));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  const std::string who = "no TCPStore answers at " + place(address);
  if (result.wait_for(patience) != std::future_status::ready)
    throw RuntimeFault(who + ", though something listens there");
  try {
    return result.get();
  } catch (const c10::Error& error) {
    if (answered)
      throw RuntimeFault("the store at " + place(address) + " is gone: " + keeper_ended(address));
    throw RuntimeFault(who + ": " + error.what_without_backtrace());
  }
}

/// A name may come with its host: it is looked up for a while.
void require_known(const StoreAddress& address, Clock::time_point deadline) {
  deadline = std::min(deadline, Clock::now() + kNameComes);
  for (std::string why; !(why = why_unknown(address.host)).empty();) {
    if (Clock::now() >= deadline)
      throw ConfigError({"environment"},
                        stream_all("unknown host: MASTER_ADDR=", address.host, " (", why,
                                   "); give a name or an address of rank 0's host that all hosts "
                                   "of the run know"));
    std::this_thread::sleep_for(Millis(100));
  }
}

/// Whether somebody listens; the store itself would try in vain for ever, and loudly.
void wait_for_listener(const StoreAddress& address, Clock::time_point deadline) {
  for (;;) {
    if (connect_to(address.host, address.port, store_wait(deadline)).is_open()) return;
    const int cause = errno;
    if (Clock::now() >= deadline)
      throw RuntimeFault(
          stream_all("nobody listens at ", place(address), " (", std::strerror(cause), "): ",
                     address.there ? keeper_ended(address)
                                   : "rank 0 has not come; or " + keeper_ended(address)));
    std::this_thread::sleep_for(Millis(20));
  }
}

Socket listen_for_store(const StoreAddress& address) {
  try {
    return listen_at(address.host, address.port);
  } catch (const RuntimeFault& error) {
    throw RuntimeFault(
        stream_all("rank 0 ", error.what(), " (", place(address), "); give another MASTER_PORT"));
  }
}

class StoreMeeting final : public Meeting {
 public:
  StoreMeeting(const StoreAddress& address, RankId rank, Millis patience)
      : address_(address), patience_(patience) {
    const Clock::time_point deadline = Clock::now() + patience;
    require_known(address, deadline);
    c10d::TCPStoreOptions options;
    options.port = address.port;
    options.waitWorkers = false;
    options.isServer = !address.there && rank == RankId{0};
    std::string host = address.host;
    if (options.isServer) {
      Socket listener = listen_for_store(address);
      host = address_of(listener);
      if (host.empty()) host = "localhost";
      options.masterListenFd = listener.release();
    } else {
      wait_for_listener(address, deadline);
    }
    options.timeout = store_wait(deadline);
    store_ = ask(address_, options.timeout,
                 [=] { return c10::make_intrusive<c10d::TCPStore>(host, options); });
  }

  void put(Topic topic, RankId rank, const std::string& line) override {
    const std::vector<std::uint8_t> bytes(line.begin(), line.end());
    ask(
        address_, patience_,
        [=, store = store_, key = key(topic, rank)] { store->set(key, bytes); }, true);
  }
  std::optional<std::string> find(Topic topic, RankId rank) override {
    return ask(
        address_, patience_,
        [store = store_, key = key(topic, rank)] {
          std::optional<std::string> line;
          if (store->check({key})) {
            const std::vector<std::uint8_t> found = store->get(key);
            line.emplace(found.begin(), found.end());
          }
          return line;
        },
        true);
  }
  std::string host() const override { return address_.host; }

 private:
  std::string key(Topic topic, RankId rank) const {
    return stream_all("pfeife/", address_.attempt, "/", static_cast<int>(topic), "/", rank.value);
  }

  QuietLog quiet_;
  StoreAddress address_;
  Millis patience_;
  Store store_;
};

}  // namespace

std::unique_ptr<Meeting> meeting_at_store(const StoreAddress& address, RankId rank,
                                          std::chrono::milliseconds patience) {
  return std::make_unique<StoreMeeting>(address, rank, patience);
}

}  // namespace pfeife
