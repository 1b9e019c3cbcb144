#include "sim/process_pool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <thread>
#include <vector>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::uint64_t kNoPiece = ~std::uint64_t{0};

/// What a worker is at; seen by the caller too.
struct Progress {
  std::atomic<std::uint64_t> piece{kNoPiece};
  std::atomic<int> status{0};  // wait status of the process that did it, if it ended badly
};

/// Memory that all the processes share.
class Board {
 public:
  explicit Board(std::size_t workers) : bytes_(sizeof(Progress) * workers + kOffset) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw RuntimeFault("no shared memory for the worker processes");
    next_ = new (memory_) std::atomic<std::uint64_t>{0};
    progress_ = reinterpret_cast<Progress*>(static_cast<char*>(memory_) + kOffset);
    for (std::size_t w = 0; w < workers; ++w) new (progress_ + w) Progress;
  }
  ~Board() { munmap(memory_, bytes_); }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  std::uint64_t take() { return next_->fetch_add(1); }
  Progress& progress(std::size_t worker) { return progress_[worker]; }

 private:
  static constexpr std::size_t kOffset = 64;
  std::size_t bytes_;
  void* memory_;
  std::atomic<std::uint64_t>* next_;
  Progress* progress_;
};

/// In front of every message from a worker.
struct Header {
  std::uint64_t piece = 0;
  std::uint64_t size = 0;
  std::uint64_t failed = 0;  // then the bytes are the reason
};

bool write_all(int file, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t written = write(file, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

bool send(int file, std::uint64_t piece, const std::string& bytes, bool failed) {
  const Header header{piece, bytes.size(), failed ? std::uint64_t{1} : 0};
  return write_all(file, reinterpret_cast<const char*>(&header), sizeof header) &&
         write_all(file, bytes.data(), bytes.size());
}

/// Does not outlive the process that started it, leaves no core file, and leaves it to that process
/// to answer an interrupt from the keyboard, which reaches all of them.
void become_dependent(pid_t parent) {
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_DFL);
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
#else
  static_cast<void>(parent);
#endif
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

/// The life of a piece; never returns.
[[noreturn]] void do_piece(const PoolWork& work, std::uint64_t piece, int out) {
  std::string reason;
  try {
    if (send(out, piece, work.run(static_cast<std::size_t>(piece)), false)) _exit(0);
  } catch (const std::exception& error) {
    reason = error.what();
  } catch (...) {
    reason = "unknown exception";
  }
  send(out, piece, reason, true);
  _exit(1);
}

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0)
    if (errno != EINTR) return 0;  // somebody else reaps; the results tell whether all is well
  return status;
}

/// The life of a worker; never returns.
[[noreturn]] void work_until_done(const PoolWork& work, Board& board, std::size_t worker, int out) {
  Progress& progress = board.progress(worker);
  const pid_t self = getpid();
  for (std::uint64_t piece; (piece = board.take()) < work.pieces;) {
    progress.piece = piece;
    const pid_t process = fork();
    if (process == 0) {
      become_dependent(self);
      do_piece(work, piece, out);
    }
    const int status = process < 0 ? 0 : wait_for(process);
    if (process < 0 || status != 0) {
      progress.status = status;
      _exit(1);
    }
    progress.piece = kNoPiece;
  }
  _exit(0);
}

struct Worker {
  pid_t process = -1;
  int input = -1;  // what it writes
  std::string received;
};

/// The processes; whatever happens, none is left when this goes.
class Workers {
 public:
  Workers(const PoolWork& work, Board& board, std::size_t count)
      : work_(work), board_(board), workers_(count) {
    std::fflush(nullptr);  // or every child would write it again
    for (std::size_t w = 0; w < count; ++w) start(w);
  }
  ~Workers() {
    for (Worker& worker : workers_) {
      if (worker.input >= 0) close(worker.input);
      if (worker.process <= 0) continue;
      kill(worker.process, SIGKILL);
      wait_for(worker.process);
    }
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Passes on results until all workers have ended.
  void collect() {
    std::vector<pollfd> files;
    std::vector<std::size_t> owner;
    for (;;) {
      files.clear();
      owner.clear();
      for (std::size_t w = 0; w < workers_.size(); ++w)
        if (workers_[w].input >= 0) {
          files.push_back({workers_[w].input, POLLIN, 0});
          owner.push_back(w);
        }
      if (files.empty()) return;
      if (poll(files.data(), files.size(), -1) < 0 && errno != EINTR)
        throw RuntimeFault("cannot wait for the worker processes: " + std::string(strerror(errno)));
      for (std::size_t i = 0; i < files.size(); ++i)
        if (files[i].revents != 0) receive(owner[i]);
    }
  }

 private:
  void start(std::size_t w) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      throw RuntimeFault("no pipe to a worker process: " + std::string(strerror(errno)));
    const pid_t self = getpid(), process = fork();
    if (process == 0) {
      become_dependent(self);
      for (const Worker& other : workers_)
        if (other.input >= 0) close(other.input);
      close(ends[0]);
      work_until_done(work_, board_, w, ends[1]);
    }
    const int error = errno;
    close(ends[1]);
    workers_[w].input = ends[0];
    workers_[w].process = process;
    if (process < 0)
      throw RuntimeFault("cannot start a worker process: " + std::string(strerror(error)));
  }

  void receive(std::size_t w) {
    Worker& worker = workers_[w];
    std::array<char, 65536> buffer;
    const ssize_t count = read(worker.input, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) return;
    if (count <= 0) {
      close(worker.input);
      worker.input = -1;
      const int status = wait_for(worker.process);
      worker.process = -1;
      check_end(w, status);
      return;
    }
    worker.received.append(buffer.data(), static_cast<std::size_t>(count));
    deliver(worker.received);
  }

  /// Takes the whole messages off the front of what has come in.
  void deliver(std::string& received) {
    std::size_t at = 0;
    Header header;
    while (received.size() - at >= sizeof header) {
      std::memcpy(&header, received.data() + at, sizeof header);
      if (received.size() - at - sizeof header < header.size) break;
      const std::string_view bytes(received.data() + at + sizeof header, header.size);
      if (header.failed != 0)
        throw RuntimeFault(name(header.piece) + " failed: " + std::string(bytes));
      work_.on_result(static_cast<std::size_t>(header.piece), bytes);
      at += sizeof header + header.size;
    }
    received.erase(0, at);
  }

  void check_end(std::size_t w, int status) {
    if (status == 0 && workers_[w].received.empty()) return;
    const Progress& progress = board_.progress(w);
    throw RuntimeFault(name(progress.piece) + " failed: its process " +
                       ending(progress.status != 0 ? progress.status.load() : status));
  }

  static std::string ending(int status) {
    if (!WIFSIGNALED(status)) return "left with code " + std::to_string(WEXITSTATUS(status));
    const int signal = WTERMSIG(status);
    return "was killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  }

  std::string name(std::uint64_t piece) const {
    return piece < work_.pieces ? work_.name(static_cast<std::size_t>(piece)) : "a worker";
  }

  const PoolWork& work_;
  Board& board_;
  std::vector<Worker> workers_;
};

}  // namespace

void run_in_processes(const PoolWork& work) {
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t count = std::min(work.pieces, work.workers > 0 ? work.workers : cores);
  if (count == 0) return;
  Board board(count);
  Workers workers(work, board, count);
  workers.collect();
}

}  // namespace pfeife
