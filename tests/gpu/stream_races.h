// A race detector for the streams of the stand-in card: which access to a block of memory is
// ordered behind which, by streams, events and the host's waits alone. The method is that of
// torch.cuda._sanitizer: a vector clock for each stream and event, and the last accesses to each
// block.
//
// A block counts as a whole: two views of one storage are not told apart. Freeing counts as an
// access on the stream that the block was asked for on, whose next block may have its memory, as
// LibTorch's caching allocator has it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace pfeife::testing {

using CardStream = std::int64_t;
/// [stream] how much of its work comes before; of streams behind its end, nothing.
using StreamClock = std::vector<std::uint64_t>;

/// Seen by all threads; each call takes a lock.
class StreamRaces {
 public:
  /// What an event that is recorded on the stream now stands for.
  StreamClock record(CardStream stream);
  /// The stream's next work comes after `event`. False if it would have done so anyway.
  bool wait(CardStream stream, const StreamClock& event);
  /// The host has waited for all of `event`.
  bool host_knows(const StreamClock& event);
  bool would_learn(CardStream stream, const StreamClock& event);
  /// What any thread gives to any stream from now on comes after `event`.
  void host_waited(const StreamClock& event);
  /// The same, of what the calling thread gives: it has asked, not waited.
  void host_saw(const StreamClock& event);

  void allocated(const void* block, std::size_t bytes, CardStream stream);
  void freed(const void* block);
  /// A free block is not used again before what the stream has been given is done.
  void borrowed(const void* data, CardStream stream);

  struct Access {
    const void* data;
    bool writes;
  };
  /// One piece of work on the stream.
  void accessed(CardStream stream, const std::string& by, const std::vector<Access>& what);

  /// Sentences, in the order found; at most a hundred.
  std::vector<std::string> take_reports();

 private:
  struct Moment {
    CardStream stream = 0;
    std::uint64_t number = 0;  ///< 0: never
    std::string by;
  };
  struct Block {
    std::size_t bytes;
    CardStream stream;
    Moment written;
    std::map<CardStream, Moment> read;  ///< since then
    std::set<CardStream> borrowers;
  };
  StreamClock& now(CardStream stream);
  std::map<const char*, Block>::iterator block_of(const void* data);
  void require(bool ordered, const Moment& before, const std::string& what, CardStream stream);

  std::map<CardStream, StreamClock> clocks_;
  StreamClock waited_;
  std::map<const char*, Block> blocks_;
  std::vector<std::string> reports_;
};

}  // namespace pfeife::testing
