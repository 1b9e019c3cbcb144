#include "tests/gpu/stream_races.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace pfeife::testing {
namespace {

std::mutex mutex;
thread_local StreamClock seen;  // by the thread

/// True if `into` has grown.
bool join(StreamClock& into, const StreamClock& other) {
  if (into.size() < other.size()) into.resize(other.size());
  bool grown = false;
  for (std::size_t s = 0; s < other.size(); ++s) {
    grown |= into[s] < other[s];
    into[s] = std::max(into[s], other[s]);
  }
  return grown;
}

bool has(const StreamClock& clock, CardStream stream, std::uint64_t number) {
  const auto s = static_cast<std::size_t>(stream);
  return (s < clock.size() ? clock[s] : 0) >= number;
}

std::uint64_t next(StreamClock& clock, CardStream stream) {
  const auto s = static_cast<std::size_t>(stream);
  if (clock.size() <= s) clock.resize(s + 1);
  return ++clock[s];
}

}  // namespace

/// The stream's clock, with what the host knows: what it gives now comes after that.
StreamClock& StreamRaces::now(CardStream stream) {
  StreamClock& clock = clocks_[stream];
  join(clock, waited_);
  join(clock, seen);
  return clock;
}

StreamClock StreamRaces::record(CardStream stream) {
  const std::lock_guard lock(mutex);
  return now(stream);
}

bool StreamRaces::wait(CardStream stream, const StreamClock& event) {
  const std::lock_guard lock(mutex);
  return join(now(stream), event);
}

bool StreamRaces::host_knows(const StreamClock& event) {
  const std::lock_guard lock(mutex);
  for (std::size_t s = 0; s < event.size(); ++s)
    if (!has(waited_, static_cast<CardStream>(s), event[s])) return false;
  return true;
}

bool StreamRaces::would_learn(CardStream stream, const StreamClock& event) {
  const std::lock_guard lock(mutex);
  StreamClock clock = now(stream);
  return join(clock, event);
}

void StreamRaces::host_waited(const StreamClock& event) {
  const std::lock_guard lock(mutex);
  join(waited_, event);
}

void StreamRaces::host_saw(const StreamClock& event) { join(seen, event); }

void StreamRaces::allocated(const void* block, std::size_t bytes, CardStream stream) {
  const std::lock_guard lock(mutex);
  // Its memory may have belonged to a block whose last work is the stream's last work.
  const std::uint64_t number = next(now(stream), stream);
  blocks_[static_cast<const char*>(block)] = {
      bytes, stream, {stream, number, "earlier work"}, {}, {}};
}

void StreamRaces::borrowed(const void* data, CardStream stream) {
  const std::lock_guard lock(mutex);
  if (const auto found = block_of(data); found != blocks_.end())
    found->second.borrowers.insert(stream);
}

void StreamRaces::freed(const void* block) {
  const std::lock_guard lock(mutex);
  const auto found = blocks_.find(static_cast<const char*>(block));
  if (found == blocks_.end()) return;
  const Block& gone = found->second;
  const StreamClock& clock = now(gone.stream);
  const auto check = [&](const Moment& access) {
    if (!gone.borrowers.contains(access.stream))
      require(has(clock, access.stream, access.number), access, "its memory is free", gone.stream);
  };
  check(gone.written);
  for (const auto& [stream, access] : gone.read) check(access);
  blocks_.erase(found);
}

void StreamRaces::accessed(CardStream stream, const std::string& by,
                           const std::vector<Access>& what) {
  const std::lock_guard lock(mutex);
  StreamClock& clock = now(stream);
  const std::uint64_t number = next(clock, stream);
  for (const auto& [data, writes] : what) {
    const auto found = block_of(data);
    if (found == blocks_.end()) continue;
    Block& block = found->second;
    require(has(clock, block.written.stream, block.written.number), block.written,
            by + (writes ? " writes" : " reads") + " what that writes", stream);
    if (writes)
      for (const auto& [reader, access] : block.read)
        require(has(clock, reader, access.number), access, by + " writes what that reads", stream);
    if (writes) {
      block.written = {stream, number, by};
      block.read.clear();
    } else {
      block.read[stream] = {stream, number, by};
    }
  }
}

std::map<const char*, StreamRaces::Block>::iterator StreamRaces::block_of(const void* data) {
  const char* at = static_cast<const char*>(data);
  const auto after = blocks_.upper_bound(at);
  if (after == blocks_.begin()) return blocks_.end();
  const auto found = std::prev(after);
  return at < found->first + found->second.bytes ? found : blocks_.end();
}

void StreamRaces::require(bool ordered, const Moment& before, const std::string& what,
                          CardStream stream) {
  if (ordered || reports_.size() >= 100) return;
  reports_.push_back(before.by + " on stream " + std::to_string(before.stream) +
                     " may not be done: " + what + " (stream " + std::to_string(stream) + ")");
}

std::vector<std::string> StreamRaces::take_reports() {
  const std::lock_guard lock(mutex);
  return std::exchange(reports_, {});
}

}  // namespace pfeife::testing
