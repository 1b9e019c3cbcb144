// A library that is no NCCL: the entry points that the runtime uses, with their real signatures,
// between processes of one host, on memory of the stand-in card. Built as libfake_nccl.so, named by
// PFEIFE_NCCL.
//
// PFEIFE_FAKE_NCCL, read when a communicator is made, is a list of words:
//   strict      a call returns when its peer has made the matching one: the strictest order there
//               is. Otherwise a thread of the stream does the work, in the order of the calls
//   delay=N     pieces of work begin up to N us late, by chance (seed=N)
//   fail=K@R    call K (SEND, RECV, sum; from 1) of rank R fails
//   never=K@R   call K of rank R never matches
//   version=N   what ncclGetVersion answers
// Ranks meet in memory without a name, which rank 0 makes and the others open by its process:
// nothing of it outlives them. As with NCCL, who waits for a rank that is gone waits until
// ncclCommAbort.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/transport/nccl_library.h"
#include "tests/gpu/fake_nccl/stream_work.h"

namespace {

namespace nccl = pfeife::nccl;
constexpr std::size_t kMostRanks = 16, kRing = 16 << 10;
constexpr int kSystemError = 2, kInvalidUsage = 5, kRemoteError = 6;

/// From one rank to another: one message at a time, its bytes through a ring.
struct Pair {
  std::atomic<std::uint64_t> sends, receives;  ///< begun
  std::atomic<std::uint64_t> size;             ///< of the message, once its SEND has begun
  std::atomic<std::uint64_t> put, taken;       ///< bytes, of all messages
  char ring[kRing];
};
/// A rank's part of a sum, a ring's length at a time.
struct Part {
  std::atomic<std::uint64_t> put, read;
  char bytes[kRing];
};
struct Split {
  std::atomic<int> process, file;
};
struct Shared {
  std::atomic<int> arrived;
  Part parts[kMostRanks];
  Split splits[64];
  Pair pairs[kMostRanks][kMostRanks];
};

struct Modes {
  bool strict = false;
  int delay = 0;
  long fail = 0, never = 0;
  std::mt19937 random{1};
};

/// "fail=3@1": 3 on rank 1, else 0.
long number_at(const std::string& word, int rank) {
  const std::size_t at = word.find('@');
  if (at != std::string::npos && std::atoi(word.c_str() + at + 1) != rank) return 0;
  return std::atol(word.c_str() + word.find('=') + 1);
}

std::vector<std::string> words() {
  std::vector<std::string> found;
  const char* text = std::getenv("PFEIFE_FAKE_NCCL");
  std::string word;
  for (const char c : std::string(text ? text : "") + " ")
    if (c != ' ')
      word += c;
    else if (!word.empty())
      found.push_back(std::exchange(word, ""));
  return found;
}

Modes modes_of(int rank) {
  Modes modes;
  for (const std::string& word : words()) {
    if (word == "strict") modes.strict = true;
    if (word.starts_with("delay=")) modes.delay = static_cast<int>(number_at(word, rank));
    if (word.starts_with("fail=")) modes.fail = number_at(word, rank);
    if (word.starts_with("never=")) modes.never = number_at(word, rank);
    if (word.starts_with("seed="))
      modes.random.seed(static_cast<unsigned>(number_at(word, rank) * 31 + rank));
  }
  return modes;
}

struct Communicator {
  int rank = 0, ranks = 0;
  Shared* shared = nullptr;
  int file = -1;  ///< of the memory, if made here
  std::atomic<bool> aborted{false};
  std::atomic<int> error{nccl::kSuccess};
  std::shared_ptr<Modes> modes;  // of all split from one
  std::shared_ptr<std::atomic<long>> calls;
  int splits = 0;
  std::atomic<bool> joining{true};
};
Communicator* of(void* communicator) { return static_cast<Communicator*>(communicator); }

struct Memory {
  int process, file;
};

/// Memory without a name has a file in who made it, which is open until all have mapped it.
Memory make_memory() {
  const int file = memfd_create("pfeife_fake_nccl", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) std::abort();
  return {getpid(), file};
}

Shared* map_memory(Memory memory) {
  const std::string path =
      "/proc/" + std::to_string(memory.process) + "/fd/" + std::to_string(memory.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return at == MAP_FAILED ? nullptr : static_cast<Shared*>(at);
}

template <class Number>
void add_to(char* sum, const char* more, std::size_t bytes) {
  auto* to = reinterpret_cast<Number*>(sum);
  const auto* from = reinterpret_cast<const Number*>(more);
  for (std::size_t i = 0; i < bytes / sizeof(Number); ++i) to[i] += from[i];
}

/// A SEND, a RECV or a sum under way. advance() does what can be done now.
class Operation {
 public:
  enum Kind { kSend, kReceive, kSum };
  Operation(Communicator* communicator, Kind kind, const void* in, void* out, std::size_t bytes,
            int type, int peer)
      : c_(communicator),
        kind_(kind),
        in_(static_cast<const char*>(in)),
        out_(static_cast<char*>(out)),
        bytes_(bytes),
        type_(type),
        peer_(peer) {
    const long call = ++*c_->calls;
    fails_ = call == c_->modes->fail;
    never_ = call == c_->modes->never;
  }
  Communicator* communicator() const { return c_; }
  bool fails() const { return fails_; }
  void tell_card(void* stream) const {
    if (kind_ != kReceive) pfeife_stand_in_uses(stream, kind_ == kSum ? "sum" : "SEND", in_, false);
    if (kind_ != kSend) pfeife_stand_in_uses(stream, kind_ == kSum ? "sum" : "RECV", out_, true);
  }
  /// Done, or broken off.
  bool over() const { return done_ || c_->aborted; }
  /// Later ones with the same are not begun before it is over.
  std::tuple<Communicator*, Kind, int> turn() const { return {c_, kind_, peer_}; }
  void advance() {
    if (never_ || over()) return;
    if (kind_ == kSum) return advance_sum();
    Pair& pair =
        kind_ == kSend ? c_->shared->pairs[c_->rank][peer_] : c_->shared->pairs[peer_][c_->rank];
    kind_ == kSend ? advance_send(pair) : advance_receive(pair);
  }

 private:
  void advance_send(Pair& pair) {
    if (!begun_) {
      pair.size = bytes_;
      number_ = pair.sends.fetch_add(1) + 1;
      begun_ = true;
    }
    if (pair.receives < number_) return;
    while (at_ < bytes_) {
      const std::size_t room = kRing - (pair.put - pair.taken), place = pair.put % kRing;
      const std::size_t count = std::min({room, kRing - place, bytes_ - at_});
      if (count == 0) return;
      std::memcpy(pair.ring + place, in_ + at_, count);
      at_ += count, pair.put += count;
    }
    done_ = pair.put == pair.taken;
  }
  void advance_receive(Pair& pair) {
    if (!begun_) number_ = pair.receives.fetch_add(1) + 1, begun_ = true;
    if (pair.sends < number_) return;
    if (pair.size != bytes_) {
      std::fprintf(stderr, "stand-in for NCCL: rank %d sends %zu bytes, rank %d takes %zu\n", peer_,
                   static_cast<std::size_t>(pair.size), c_->rank, bytes_);
      c_->error = kInvalidUsage;
      return;
    }
    while (at_ < bytes_) {
      const std::size_t there = pair.put - pair.taken, place = pair.taken % kRing;
      const std::size_t count = std::min({there, kRing - place, bytes_ - at_});
      if (count == 0) return;
      std::memcpy(out_ + at_, pair.ring + place, count);
      at_ += count, pair.taken += count;
    }
    done_ = true;
  }
  bool all(std::atomic<std::uint64_t> Part::*what, std::uint64_t value) const {
    for (int r = 0; r < c_->ranks; ++r)
      if (c_->shared->parts[r].*what < value) return false;
    return true;
  }
  void advance_sum() {
    Part& own = c_->shared->parts[c_->rank];
    for (;;) {
      const std::size_t count = std::min(kRing, bytes_ - at_);
      if (!begun_) {
        number_ = own.put + 1;
        if (!all(&Part::read, number_ - 1)) return;  // of the part before
        std::memcpy(own.bytes, in_ + at_, count);
        own.put = number_, begun_ = true;
      }
      if (!all(&Part::put, number_)) return;
      std::memset(out_ + at_, 0, count);
      for (int r = 0; r < c_->ranks; ++r) {
        const char* part = c_->shared->parts[r].bytes;
        type_ == nccl::kFloat64 ? add_to<double>(out_ + at_, part, count)
                                : add_to<float>(out_ + at_, part, count);
      }
      own.read = number_;
      begun_ = false, at_ += count;
      if ((done_ = at_ == bytes_)) return;
    }
  }

  Communicator* c_;
  Kind kind_;
  const char* in_;
  char* out_;
  std::size_t bytes_, at_ = 0;
  int type_, peer_;
  bool fails_ = false, never_ = false, begun_ = false, done_ = false;
  std::uint64_t number_ = 0;
};
using Operations = std::vector<Operation>;

/// Returns when all are over: those of a group advance together.
void run(Operations& group) {
  Modes& modes = *group[0].communicator()->modes;
  if (modes.delay > 0) {
    static std::mutex drawing;
    std::unique_lock lock(drawing);
    const int us = static_cast<int>(modes.random() % static_cast<unsigned>(modes.delay + 1));
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  }
  for (int idle = 0;; ++idle) {
    std::set<std::tuple<Communicator*, Operation::Kind, int>> begun;
    bool over = true;
    for (Operation& operation : group) {
      if (operation.over() || !begun.insert(operation.turn()).second) continue;
      operation.advance();
      over = over && operation.over();
    }
    if (over && std::ranges::all_of(group, &Operation::over)) return;
    if (idle < 20)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

/// What does the work of a stream, in its order.
class Worker {
 public:
  explicit Worker(void* stream) : stream_(stream), thread_([this] { work(); }) { thread_.detach(); }
  void add(Operations group) {
    const std::lock_guard lock(mutex_);
    groups_.push_back(std::move(group));
    more_.notify_one();
  }

 private:
  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      more_.wait(lock, [&] { return !groups_.empty(); });
      Operations group = std::move(groups_.front());
      groups_.pop_front();
      lock.unlock();
      run(group);
      pfeife_stand_in_done(stream_);
    }
  }
  void* stream_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<Operations> groups_;
  std::thread thread_;
};

Worker& worker_of(void* stream) {
  static std::mutex mutex;
  static auto* workers = new std::map<void*, Worker*>;  // they end with the process
  const std::lock_guard lock(mutex);
  Worker*& worker = (*workers)[stream];
  if (worker == nullptr) worker = new Worker(stream);
  return *worker;
}

thread_local int group_depth = 0;
thread_local Operations grouped;
thread_local void* group_stream = nullptr;

int give(Operations group, void* stream) {
  Communicator* c = group[0].communicator();
  if (c->aborted) return kInvalidUsage;
  if (std::ranges::any_of(group, &Operation::fails)) return kSystemError;
  pfeife_stand_in_given(stream);
  for (const Operation& operation : group) operation.tell_card(stream);
  if (!c->modes->strict) {
    worker_of(stream).add(std::move(group));
    return nccl::kSuccess;
  }
  run(group);
  pfeife_stand_in_done(stream);
  return c->error;
}

int take(Operation operation, void* stream) {
  if (group_depth == 0) return give({operation}, stream);
  grouped.push_back(operation);
  group_stream = stream;
  return nccl::kSuccess;
}

std::size_t size_of(int type) {
  switch (type) {
    case nccl::kFloat64:
    case nccl::kInt64:
      return 8;
    case nccl::kFloat32:
    case nccl::kInt32:
      return 4;
    case nccl::kFloat16:
    case nccl::kBfloat16:
      return 2;
    default:
      return 1;
  }
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 22809;
  for (const std::string& word : words())
    if (word.starts_with("version=")) {
      const char* rank = std::getenv("RANK");
      if (const long number = number_at(word, rank ? std::atoi(rank) : 0); number > 0)
        *version = static_cast<int>(number);
    }
  return nccl::kSuccess;
}

int ncclGetUniqueId(nccl::UniqueId* id) {
  const Memory memory = make_memory();
  std::memcpy(id, &memory, sizeof memory);
  return nccl::kSuccess;
}

int ncclCommInitRankConfig(void** communicator, int ranks, nccl::UniqueId id, int rank,
                           nccl::Config* config) {
  if (config->magic != 0xcafebeef || ranks > static_cast<int>(kMostRanks)) return kInvalidUsage;
  Memory memory{};
  std::memcpy(&memory, &id, sizeof memory);
  Shared* shared = map_memory(memory);
  if (shared == nullptr) return kSystemError;
  auto* made = new Communicator;  // never deleted: a thread may still be inside
  made->rank = rank, made->ranks = ranks, made->shared = shared;
  made->modes = std::make_shared<Modes>(modes_of(rank));
  made->calls = std::make_shared<std::atomic<long>>(0);
  if (memory.process == getpid()) made->file = memory.file;
  ++shared->arrived;
  *communicator = made;
  return nccl::kInProgress;
}

/// All say in their parts, which no sum uses meanwhile, whether they are of the color 0: the
/// runtime has no other. The first of them makes the memory.
int ncclCommSplit(void* communicator, int color, int, void** made, nccl::Config*) {
  Communicator* parent = of(communicator);
  Shared* all = parent->shared;
  Split& split = all->splits[parent->splits++ % 64];
  Part& own = all->parts[parent->rank];
  const std::uint64_t number = own.put + 1;
  const auto wait = [&](const auto& until) {
    while (!until() && !parent->aborted) std::this_thread::sleep_for(std::chrono::microseconds(20));
  };
  const auto wait_for_all = [&](std::atomic<std::uint64_t> Part::*what) {
    for (int r = 0; r < parent->ranks; ++r) wait([&] { return all->parts[r].*what >= number; });
  };
  own.bytes[0] = color == 0 ? 1 : 0;
  own.put = number;
  wait_for_all(&Part::put);
  auto child = std::make_unique<Communicator>();
  int first = -1;
  for (int r = 0; r < parent->ranks; ++r) {
    if (all->parts[r].bytes[0] == 0) continue;
    if (first < 0) first = r;
    if (r == parent->rank) child->rank = child->ranks;
    ++child->ranks;
  }
  own.read = number;
  wait_for_all(&Part::read);
  *made = nullptr;
  if (color != 0 || parent->aborted) return nccl::kSuccess;
  if (parent->rank == first) {
    const Memory memory = make_memory();
    split.file = memory.file, split.process = memory.process;
  }
  wait([&] { return split.process != 0; });
  child->shared = map_memory({split.process, split.file});
  child->modes = parent->modes, child->calls = parent->calls;
  child->joining = false;
  if (child->shared == nullptr) return kSystemError;
  ++child->shared->arrived;
  wait([&] { return child->shared->arrived >= child->ranks; });
  if (parent->rank == first) {
    close(split.file);
    split.process = 0;  // the place is free
  }
  *made = child.release();
  return nccl::kSuccess;
}

int ncclCommGetAsyncError(void* communicator, int* error) {
  Communicator* c = of(communicator);
  if (c->joining && c->shared->arrived >= c->ranks) {
    c->joining = false;
    if (c->file >= 0) close(std::exchange(c->file, -1));
  }
  *error = c->joining ? static_cast<int>(nccl::kInProgress) : c->error.load();
  return nccl::kSuccess;
}

int ncclCommFinalize(void*) { return nccl::kSuccess; }
int ncclCommDestroy(void* communicator) {
  munmap(of(communicator)->shared, sizeof(Shared));
  return nccl::kSuccess;
}
int ncclCommAbort(void* communicator) {
  of(communicator)->aborted = true;
  return nccl::kSuccess;
}

int ncclGroupStart() {
  ++group_depth;
  return nccl::kSuccess;
}
int ncclGroupEnd() {
  if (--group_depth > 0 || grouped.empty()) return nccl::kSuccess;
  return give(std::exchange(grouped, {}), group_stream);
}

int ncclSend(const void* data, std::size_t count, int type, int peer, void* c, void* stream) {
  return take({of(c), Operation::kSend, data, nullptr, count * size_of(type), type, peer}, stream);
}
int ncclRecv(void* data, std::size_t count, int type, int peer, void* c, void* stream) {
  return take({of(c), Operation::kReceive, nullptr, data, count * size_of(type), type, peer},
              stream);
}
int ncclAllReduce(const void* in, void* out, std::size_t count, int type, int, void* c,
                  void* stream) {
  if (type != nccl::kFloat32 && type != nccl::kFloat64) return kInvalidUsage;
  return take({of(c), Operation::kSum, in, out, count * size_of(type), type, 0}, stream);
}

const char* ncclGetErrorString(int error) {
  return error == kSystemError   ? "unhandled system error"
         : error == kRemoteError ? "remote process exited or there was a network error"
                                 : "invalid usage";
}
const char* ncclGetLastError(void*) { return "the stand-in was told to fail"; }

}  // extern "C"
