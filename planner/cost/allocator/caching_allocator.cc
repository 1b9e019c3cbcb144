#include "planner/cost/allocator/caching_allocator.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace pfeife {
namespace {

constexpr std::int64_t kMiBytes = std::int64_t{1} << 20;
constexpr std::int64_t kLeastBlock = 512;
constexpr std::int64_t kSmallRequest = kMiBytes;       // at most: the small pool
constexpr std::int64_t kSmallSegment = 2 * kMiBytes;   // also a page of it
constexpr std::int64_t kLargeSegment = 20 * kMiBytes;  // likewise, of the large pool
constexpr std::int64_t kLeastOwnSegment = 10 * kMiBytes;
constexpr std::int64_t kSegmentRounding = 2 * kMiBytes;
constexpr std::int64_t kLeastLargeRest = kMiBytes;  // more than that is split off a large block

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::int64_t page_of(bool small) { return small ? kSmallSegment : kLargeSegment; }

}  // namespace

CachingAllocator::CachingAllocator(const AllocatorSettings& settings, Bytes capacity)
    : settings_(settings), capacity_(capacity.value) {}

std::int64_t CachingAllocator::max_split() const {
  return settings_.max_split_size ? settings_.max_split_size->value
                                  : std::numeric_limits<std::int64_t>::max();
}

std::int64_t CachingAllocator::rounded(std::int64_t size) const {
  const std::int64_t divisions = settings_.roundup_power2_divisions;
  if (divisions > 1 && size > kLeastBlock * divisions) {
    const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(size)));
    return round_up(size, power / divisions);
  }
  return std::max(kLeastBlock, round_up(size, kLeastBlock));
}

bool CachingAllocator::is_small(Bytes size) const { return rounded(size.value) <= kSmallRequest; }

Bytes CachingAllocator::least_pool(Bytes size) const {
  if (size <= Bytes{0}) return Bytes{0};
  const bool small = is_small(size);
  const std::int64_t bytes = rounded(size.value);
  if (small || settings_.expandable_segments) return Bytes{round_up(bytes, page_of(small))};
  // A segment of 20 MiB, or one of its own, of which a smaller tensor may take a part.
  return Bytes{std::max(kLeastOwnSegment, round_up(bytes, kSegmentRounding))};
}

std::size_t CachingAllocator::add_piece(std::int64_t address, std::int64_t size, Pool pool) {
  const Piece piece{.address = address, .size = size, .pool = pool};
  if (unused_.empty()) {
    pieces_.push_back(piece);
    return pieces_.size() - 1;
  }
  const std::size_t number = unused_.back();
  unused_.pop_back();
  pieces_[number] = piece;
  return number;
}

void CachingAllocator::reserve(std::int64_t size) {
  reserved_ += Bytes{size};
  peak_reserved_ = std::max(peak_reserved_, reserved_);
}

void CachingAllocator::put(std::size_t piece) {
  Piece& p = pieces_[piece];
  p.free = true;
  FreeList& list = free_[p.pool];
  const Free entry{p.size, p.address, piece};
  list.insert(std::ranges::lower_bound(list, entry), entry);
}

void CachingAllocator::take(std::size_t piece) {
  Piece& p = pieces_[piece];
  p.free = false;
  FreeList& list = free_[p.pool];
  list.erase(std::ranges::lower_bound(list, Free{p.size, p.address, piece}));
}

/// The piece keeps `size` bytes; the rest is a new one behind it.
std::size_t CachingAllocator::cut(std::size_t piece, std::int64_t size) {
  const std::size_t rest =
      add_piece(pieces_[piece].address + size, pieces_[piece].size - size, pieces_[piece].pool);
  Piece& kept = pieces_[piece];
  Piece& behind = pieces_[rest];
  behind.mapped = kept.mapped;
  behind.before = piece, behind.after = kept.after;
  if (behind.after != kNone) pieces_[behind.after].before = rest;
  kept.after = rest, kept.size = size;
  return rest;
}

/// The piece, which is in no free list, takes in its neighbours that are free and mapped, or not,
/// as it is.
void CachingAllocator::join(std::size_t piece) {
  Piece& p = pieces_[piece];
  for (const std::size_t neighbour : {p.before, p.after}) {
    if (neighbour == kNone) continue;
    Piece& n = pieces_[neighbour];
    if (!n.free || n.mapped != p.mapped) continue;
    if (n.mapped) take(neighbour);
    if (neighbour == p.before) {
      p.address = n.address, p.before = n.before;
      if (p.before != kNone) pieces_[p.before].after = piece;
    } else {
      p.after = n.after;
      if (p.after != kNone) pieces_[p.after].before = piece;
    }
    p.size += n.size;
    unused_.push_back(neighbour);
  }
  if (p.before == kNone)
    if (const auto range = ranges_.find(p.pool); range != ranges_.end())
      range->second.first = piece;
}

/// Bytes that it may grow to: with the addresses behind it that have no memory yet.
std::size_t CachingAllocator::room(std::size_t piece) const {
  const Piece& p = pieces_[piece];
  const bool grows = p.after != kNone && !pieces_[p.after].mapped;
  return static_cast<std::size_t>(p.size + (grows ? pieces_[p.after].size : 0));
}

/// The smallest block of at least `size` bytes.
auto CachingAllocator::first_of(const FreeList& list, std::int64_t size)
    -> FreeList::const_iterator {
  return std::ranges::lower_bound(list, Free{size, std::numeric_limits<std::int64_t>::min(), 0});
}

std::optional<std::size_t> CachingAllocator::best_fit(Pool pool, std::int64_t size) {
  const FreeList& list = free_[pool];
  auto at = first_of(list, size);
  if (at == list.end()) return std::nullopt;
  if (settings_.expandable_segments)
    for (auto next = std::next(at); next != list.end() && room(next->piece) < room(at->piece);
         ++next)
      at = next;
  const std::size_t piece = at->piece;
  const std::int64_t found = pieces_[piece].size;
  if (size < max_split() && found >= max_split()) return std::nullopt;
  if (size >= max_split() && found >= size + kLargeSegment) return std::nullopt;
  take(piece);
  return piece;
}

std::optional<std::size_t> CachingAllocator::new_segment(Pool pool, std::int64_t size) {
  if (settings_.expandable_segments) return map_pages(pool, size);
  const std::int64_t segment = size <= kSmallRequest     ? kSmallSegment
                               : size < kLeastOwnSegment ? kLargeSegment
                                                         : round_up(size, kSegmentRounding);
  if (reserved_.value + segment > capacity_) return std::nullopt;
  const std::size_t piece = add_piece(next_address_, segment, pool);
  next_address_ += segment;
  reserve(segment);
  return piece;
}

/// The first free piece from which free ones, with memory or without, have `size` bytes together.
std::size_t CachingAllocator::first_with_room(const Range& range, std::int64_t size) const {
  for (std::size_t hole = range.first; hole != kNone; hole = pieces_[hole].after) {
    if (pieces_[hole].mapped) continue;
    const std::size_t before = pieces_[hole].before;
    const std::size_t start = before != kNone && pieces_[before].free ? before : hole;
    std::int64_t free = 0;
    for (std::size_t p = start; p != kNone && pieces_[p].free && free < size; p = pieces_[p].after)
      free += pieces_[p].size;
    if (free >= size) return start;
  }
  return kNone;
}

/// Gives memory to addresses of the pool, page by page, until there is a piece of `size` bytes.
std::optional<std::size_t> CachingAllocator::map_pages(Pool pool, std::int64_t size) {
  const std::int64_t page = page_of(pool.small);
  const auto [range, added] = ranges_.try_emplace(pool);
  if (added) {
    const std::int64_t addresses = round_up(capacity_ + capacity_ / 8, page);
    range->second = {next_address_, add_piece(next_address_, addresses, pool)};
    Piece& all = pieces_[range->second.first];
    all.mapped = false, all.free = true;
    next_address_ += addresses;
  }
  std::size_t piece = first_with_room(range->second, size);
  if (piece == kNone) return std::nullopt;
  while (!pieces_[piece].mapped || pieces_[piece].size < size) {
    const bool grows = pieces_[piece].mapped;
    const std::size_t hole = grows ? pieces_[piece].after : piece;
    const std::int64_t lacking = grows ? size - pieces_[piece].size : size;
    const std::int64_t mapped =
        std::min(round_up(std::min(lacking, pieces_[hole].size), page), pieces_[hole].size);
    if (reserved_.value + mapped > capacity_) return std::nullopt;
    if (pieces_[hole].size > mapped) pieces_[cut(hole, mapped)].free = true;
    pieces_[hole].mapped = true;
    reserve(mapped);
    join(hole);
    put(hole);
    piece = hole;
  }
  take(piece);
  return piece;
}

void CachingAllocator::release(std::size_t piece) {
  take(piece);
  reserved_ -= Bytes{pieces_[piece].size};
}

/// With a largest size to split: gives back as little of the cache as the request needs.
bool CachingAllocator::release_oversize(Pool pool, std::int64_t size) {
  if (settings_.expandable_segments || unlimited()) return false;
  FreeList& list = free_[pool];
  const std::int64_t needed = std::max(size, max_split());
  const auto enough = first_of(list, needed);
  if (enough != list.end()) {
    release(enough->piece);
    return true;
  }
  std::int64_t released = 0;
  while (released < needed && !list.empty() && list.back().size >= max_split()) {
    released += list.back().size;
    release(list.back().piece);
  }
  return released >= needed;
}

void CachingAllocator::unmap_whole_pages(std::size_t piece) {
  const Pool pool = pieces_[piece].pool;
  const std::int64_t page = page_of(pool.small);
  const std::int64_t at = pieces_[piece].address - ranges_[pool].begin;
  const std::int64_t begin = round_up(at, page);
  const std::int64_t end = (at + pieces_[piece].size) / page * page;
  if (begin >= end) return;
  take(piece);
  if (begin > at) {
    const std::size_t whole = cut(piece, begin - at);
    put(piece);
    piece = whole;
  }
  if (pieces_[piece].size > end - begin) put(cut(piece, end - begin));
  pieces_[piece].mapped = false, pieces_[piece].free = true;
  reserved_ -= Bytes{pieces_[piece].size};
  join(piece);
}

void CachingAllocator::empty_cache() {
  for (const auto& [pool, list] : free_) {
    const FreeList cached = list;
    for (const auto& [size, address, piece] : cached)
      if (settings_.expandable_segments)
        unmap_whole_pages(piece);
      else if (pieces_[piece].before == kNone && pieces_[piece].after == kNone)
        release(piece);
  }
}

std::optional<CachingAllocator::Block> CachingAllocator::allocate(Bytes requested,
                                                                  std::size_t stream) {
  const std::int64_t size = rounded(requested.value);
  const Pool pool{size <= kSmallRequest, stream};
  std::optional<std::size_t> piece = best_fit(pool, size);
  if (!piece) piece = new_segment(pool, size);
  if (!piece && release_oversize(pool, size)) piece = new_segment(pool, size);
  if (!piece) {
    ++retries_;
    empty_cache();
    piece = new_segment(pool, size);
  }
  if (!piece) return std::nullopt;
  const std::int64_t rest = pieces_[*piece].size - size;
  const bool split = pool.small || settings_.expandable_segments
                         ? rest >= kLeastBlock
                         : size < max_split() && rest > kLeastLargeRest;
  if (split) put(cut(*piece, size));
  pieces_[*piece].free = false;
  allocated_ += Bytes{pieces_[*piece].size};
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return *piece;
}

void CachingAllocator::free(Block block) {
  allocated_ -= Bytes{pieces_[block].size};
  join(block);
  put(block);
}

}  // namespace pfeife
