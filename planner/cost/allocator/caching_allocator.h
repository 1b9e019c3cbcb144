// PyTorch's CUDA caching allocator as rules: which segments of memory it holds while tensors come
// and go. Sizes, streams and order decide; addresses and contents do not exist.
//   CachingAllocator allocator(settings, 80 * kGiB);
//   const auto block = allocator.allocate(Bytes{1000});  // 1,024 allocated, 2 MiB reserved
//
// Source: c10/cuda/CUDACachingAllocator.cpp of PyTorch 2.11. A request is rounded up and taken from
// the smallest free block of its pool that is large enough, else from a new segment of the driver;
// what is left of a block is split off where it is large enough. What is freed is joined with free
// neighbours and stays reserved until the driver has no more. Not modelled: blocks that wait for
// events of other streams, garbage_collection_threshold, private pools of CUDA graphs.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "planner/ir/basics/units.h"
#include "planner/ir/machine/allocator_settings.h"

namespace pfeife {

class CachingAllocator {
 public:
  using Block = std::size_t;  ///< a number

  /// `capacity`: what the driver has.
  CachingAllocator(const AllocatorSettings& settings, Bytes capacity);

  /// nullopt: out of memory, after all that is cached and whole was given back.
  std::optional<Block> allocate(Bytes size, std::size_t stream = 0);
  /// `block` must be allocated.
  void free(Block block);
  /// torch.cuda.empty_cache().
  void empty_cache();

  /// The least that the pool of a tensor of `size` bytes reserves while it holds that tensor,
  /// whatever was allocated before.
  Bytes least_pool(Bytes size) const;
  bool is_small(Bytes size) const;  ///< from the pool of small tensors

  Bytes allocated() const { return allocated_; }  ///< blocks handed out, rounded
  Bytes reserved() const { return reserved_; }    ///< segments, or mapped pages
  Bytes peak_allocated() const { return peak_allocated_; }
  Bytes peak_reserved() const { return peak_reserved_; }
  /// How often the cache was given back because the driver had no more (num_alloc_retries).
  std::size_t retries() const { return retries_; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Pool {
    bool small = false;
    std::size_t stream = 0;
    friend auto operator<=>(const Pool&, const Pool&) = default;
  };
  /// A piece of a segment. Segments are lists of pieces.
  struct Piece {
    std::int64_t address = 0, size = 0;
    Pool pool = {};
    std::size_t before = kNone, after = kNone;  ///< in the segment
    bool free = false;
    bool mapped = true;  ///< else an address without memory: expandable segments alone
  };
  /// Trivial, unlike a tuple: lists of thousands are moved as memory.
  struct Free {
    std::int64_t size = 0, address = 0;
    std::size_t piece = 0;
    friend auto operator<=>(const Free&, const Free&) = default;
  };
  using FreeList = std::vector<Free>;  ///< sorted
  /// Addresses of a pool with expandable segments.
  struct Range {
    std::int64_t begin = 0;
    std::size_t first = kNone;
  };

  std::int64_t rounded(std::int64_t size) const;
  bool unlimited() const { return !settings_.max_split_size; }
  std::int64_t max_split() const;
  std::size_t add_piece(std::int64_t address, std::int64_t size, Pool pool);
  void reserve(std::int64_t size);
  void put(std::size_t piece);   // into its free list
  void take(std::size_t piece);  // out of it
  std::size_t cut(std::size_t piece, std::int64_t size);
  void join(std::size_t piece);
  std::size_t room(std::size_t piece) const;
  static FreeList::const_iterator first_of(const FreeList& list, std::int64_t size);
  std::optional<std::size_t> best_fit(Pool pool, std::int64_t size);
  std::optional<std::size_t> new_segment(Pool pool, std::int64_t size);
  std::optional<std::size_t> map_pages(Pool pool, std::int64_t size);
  std::size_t first_with_room(const Range& range, std::int64_t size) const;
  void release(std::size_t piece);
  bool release_oversize(Pool pool, std::int64_t size);
  void unmap_whole_pages(std::size_t piece);

  AllocatorSettings settings_;
  std::int64_t capacity_;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> unused_;  ///< of these, that others have taken in
  std::map<Pool, FreeList> free_;
  std::map<Pool, Range> ranges_;
  std::int64_t next_address_ = 0;
  Bytes allocated_{0}, reserved_{0}, peak_allocated_{0}, peak_reserved_{0};
  std::size_t retries_ = 0;
};

}  // namespace pfeife
