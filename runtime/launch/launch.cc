#include "runtime/launch/launch.h"

#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "planner/io/files/dependent_process.h"
#include "planner/ir/basics/error.h"
#include "runtime/launch/join.h"
#include "runtime/transport/socket_transport.h"

namespace pfeife {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBeat = std::chrono::milliseconds(100);
constexpr auto kStart = std::chrono::seconds(60);  // to load the program and LibTorch, or to leave

void put(char* to, std::size_t room, const std::string& text) {
  const std::size_t count = std::min(room - 1, text.size());
  std::memcpy(to, text.data(), count);
  to[count] = '\0';
}

struct Child {
  pid_t process = -1;
  bool running = true;
  bool ended_by_us = false;
  int status = 0;
  int stopped_by = 0;  ///< signal after which it has not gone on; 0 = none
  std::uint64_t beats = 0;
  Clock::duration silence{0};  ///< since the last sign of life
};

pid_t start(std::size_t rank, const SharedSlots& slots, const std::string& secret,
            const std::vector<std::string>& arguments) {
  return start_dependent(SIGKILL, [&] {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    setenv("WORLD_SIZE", std::to_string(slots.ranks()).c_str(), 1);
    setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
    setenv("PFEIFE_MEETING", std::to_string(slots.hand_over()).c_str(), 1);
    setenv("PFEIFE_SECRET", secret.c_str(), 1);
    return become_program("/proc/self/exe", arguments);
  });
}

/// The signal that asked this launcher to end; a handler has no other way to say so.
volatile std::sig_atomic_t interrupted_by = 0;
extern "C" void note_interruption(int signal) { interrupted_by = signal; }

/// While it lives, Ctrl-C and the like end the ranks and leave nothing behind; then they end this
/// process as they would have.
class InterruptionGuard {
 public:
  InterruptionGuard() {
    struct sigaction action {};
    action.sa_handler = note_interruption;
    for (std::size_t i = 0; i < std::size(kSignals); ++i)
      sigaction(kSignals[i], &action, &before_[i]);
  }
  ~InterruptionGuard() {
    for (std::size_t i = 0; i < std::size(kSignals); ++i)
      sigaction(kSignals[i], &before_[i], nullptr);
    if (interrupted_by != 0) raise(interrupted_by);
  }
  InterruptionGuard(const InterruptionGuard&) = delete;
  InterruptionGuard& operator=(const InterruptionGuard&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[std::size(kSignals)]{};
};

class Watch {
 public:
  Watch(std::size_t ranks, const std::vector<std::string>& arguments)
      : slots_(ranks), children_(ranks) {
    const char* given = std::getenv("PFEIFE_SECRET");
    const std::string secret = given && *given ? given : fresh_secret();
    for (std::size_t r = 0; r < ranks; ++r)
      children_[r].process = start(r, slots_, secret, arguments);
  }
  ~Watch() {
    for (Child& child : children_)
      if (child.running && child.process > 0)
        kill(child.process, SIGKILL), wait_for_end(child.process);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  LocalEnd run() {
    auto last_look = Clock::now();
    for (bool any = true; any; std::this_thread::sleep_for(std::chrono::milliseconds(10))) {
      any = false;
      // Where this process did not run (Ctrl-Z, a machine that stood still), nor did its ranks.
      const auto look = Clock::now();
      passed_ = std::min<Clock::duration>(look - last_look, kBeat);
      last_look = look;
      for (std::size_t r = 0; r < children_.size(); ++r) {
        look_at(r);
        any = any || children_[r].running;
      }
      if (interrupted_by != 0) {
        blame(stream_all("interrupted by signal ", interrupted_by));
        deadline_ = {};
      }
      if (!cause_.empty())
        for (std::size_t r = 0; r < children_.size(); ++r)
          if (children_[r].running && (Clock::now() > deadline_ || has_nothing_to_say(r)))
            end(children_[r]);
    }
    return {cause_, wrong_input_};
  }

 private:
  void look_at(std::size_t r) {
    Child& child = children_[r];
    if (!child.running) return;
    const Slot& slot = slots_[r];
    // A rank that failed by itself says so first; what others say after it is a consequence.
    if (slot.failed.load() != 0) blame(slot);
    if (has_ended(child)) {
      child.running = false;
      if (child.ended_by_us) return;
      if (WIFSIGNALED(child.status))
        blame(
            stream_all("rank ", r, " was killed by signal ", WTERMSIG(child.status), place(slot)));
      else if (WEXITSTATUS(child.status) != 0 && slot.failed.load() == 0)
        blame(stream_all("rank ", r, " ended with code ", WEXITSTATUS(child.status), place(slot)));
      else if (slot.failed.load() != 0)
        blame(slot);
      else if (slot.finished.load() == 0)
        blame(stream_all("rank ", r, " ended before all was done", place(slot)));
      return;
    }
    if (const std::uint64_t beats = slot.beats.load(); beats != child.beats) {
      child.beats = beats;
      child.silence = {};
    } else if (child.silence += passed_; child.silence > patience(child, slot) && cause_.empty()) {
      blame(stream_all(
          "rank ", r, " stalls", place(slot),
          child.stopped_by ? stream_all(": signal ", child.stopped_by, " stopped it") : ""));
      end(child);
    }
  }
  /// Notes, too, that the process was stopped, and that it goes on.
  static bool has_ended(Child& child) {
    if (waitpid(child.process, &child.status, WNOHANG | WUNTRACED | WCONTINUED) != child.process)
      return false;
    child.stopped_by = WIFSTOPPED(child.status) ? WSTOPSIG(child.status) : 0;
    return !WIFSTOPPED(child.status) && !WIFCONTINUED(child.status);
  }
  /// Beats begin when a program and LibTorch are loaded, and cease when a rank is done: on a busy
  /// machine it may take its time to end.
  static Clock::duration patience(const Child& child, const Slot& slot) {
    const bool beats = slot.beats.load() > 0 && slot.finished.load() == 0;
    return beats || child.stopped_by ? Clock::duration(kStall) : kStart;
  }
  /// A rank before its first action waits for others, which it does not hear of, and no reason of
  /// its own would replace the one that is known.
  bool has_nothing_to_say(std::size_t r) {
    return !only_gone_ && slots_[r].action[0] == '\0' && slots_[r].finished.load() == 0;
  }
  static void end(Child& child) {
    child.ended_by_us = true;
    kill(child.process, SIGKILL);
  }
  static std::string place(const Slot& slot) {
    return slot.action[0] == '\0' ? " before its first action"
                                  : " while at " + std::string(slot.action);
  }
  /// `gone`: as in RankFault; what tells more replaces it.
  void blame(const std::string& reason, bool gone = false) {
    if (cause_.empty()) deadline_ = Clock::now() + kGrace;
    if (!cause_.empty() && !only_gone_) return;
    cause_ = reason;
    only_gone_ = gone;
  }
  void blame(const Slot& slot) {
    if (cause_.empty()) wrong_input_ = slot.wrong_input.load() != 0;
    blame(slot.reason, slot.only_gone.load() != 0);
  }

  SharedSlots slots_;
  std::vector<Child> children_;
  std::string cause_;
  bool only_gone_ = false, wrong_input_ = false;
  Clock::time_point deadline_;
  Clock::duration passed_{0};  ///< since the last look, as far as this process was awake
};

}  // namespace

struct Status::Beat {
  std::atomic<bool> stop{false};
  std::thread thread;
};

Status::Status(Slot& slot) : slot_(slot), beat_(std::make_unique<Beat>()) {
  beat_->thread = std::thread([this] {
    while (!beat_->stop) {
      slot_.beats.fetch_add(1);
      std::this_thread::sleep_for(kBeat);
    }
  });
}

Status::~Status() {
  beat_->stop = true;
  beat_->thread.join();
}

void Status::entering(const std::string& action) { put(slot_.action, sizeof slot_.action, action); }

void Status::failed(const std::string& reason, bool gone) {
  put(slot_.reason, sizeof slot_.reason, reason);
  slot_.only_gone = gone ? 1 : 0;
  slot_.failed = 1;
}

void Status::refused(const std::string& reason) {
  slot_.wrong_input = 1;
  failed(reason);
}

void Status::finished() { slot_.finished = 1; }

LocalEnd run_local_ranks(std::size_t ranks, const std::vector<std::string>& arguments) {
  const InterruptionGuard guard;
  return Watch(ranks, arguments).run();
}

}  // namespace pfeife
