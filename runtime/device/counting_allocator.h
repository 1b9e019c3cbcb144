// What tensors take of a CPU's memory: LibTorch's allocator for CPUs, with a count.
//
// Counts the bytes asked for by tensors. Not counted: what libraries allocate for themselves
// (packed operands of matrix products), mapped files, the program's own structures.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/units.h"

namespace pfeife {

/// Told of every tensor that the thread which set it allocates, and of every one that is freed.
class AllocationListener {
 public:
  virtual ~AllocationListener() = default;
  virtual void allocated(const void* data, Bytes bytes) = 0;
  virtual void freed(const void* data, Bytes bytes) = 0;
};

/// Puts the count in front of LibTorch's allocator; once a process, before other threads allocate.
/// Tensors that exist already are not counted.
void count_allocations();

struct AllocatedBytes {
  Bytes now{0};
  Bytes peak{0};  ///< since the last reset_allocation_peak()
};
/// Bytes of all threads. Zero before count_allocations().
AllocatedBytes allocated_bytes();
void reset_allocation_peak();

/// Listens to this thread; nullptr = nobody. Needs count_allocations().
void listen_to_allocations(AllocationListener* listener);
AllocationListener* allocation_listener();

/// An event log of one thread. A pass is a range of events: what is allocated in it and still there
/// at its end is kept, everything else is temporary.
class AllocationLog final : public AllocationListener {
 public:
  explicit AllocationLog(std::size_t nodes) : nodes_(nodes) {}

  /// What follows happens while the node runs.
  void enter(NodeId node);
  void allocated(const void* data, Bytes bytes) override;
  void freed(const void* data, Bytes bytes) override;

  /// Number of events so far: where a pass begins or ends.
  std::size_t here() const { return events_.size(); }
  /// The allocation that lives at `data` now; empty if it is older than the log.
  std::optional<std::size_t> at(const void* data) const;
  /// All bytes allocated within [begin, end) and alive at `end`.
  Bytes kept(std::size_t begin, std::size_t end) const;
  /// [node] the most temporary bytes of the pass [begin, end) alive while the node ran.
  std::vector<Bytes> temporary(std::size_t begin, std::size_t end) const;
  /// [node] how far the bytes of the pass rose while the node ran above those, of what is kept,
  /// that were there when it ended: what a node keeps may come when its temporaries are gone.
  std::vector<Bytes> above_kept(std::size_t begin, std::size_t end) const;
  /// [node] the most of all bytes of the pass, those that are kept included.
  std::vector<Bytes> highest(std::size_t begin, std::size_t end) const;

 private:
  enum class What { Enter, Allocate, Free };
  struct Event {
    What what;
    std::size_t which;  // node or allocation
  };
  struct Allocation {
    Bytes bytes;
    std::size_t allocated_at, gone;  // events; gone = never if it is alive
  };
  static constexpr std::size_t kNever = ~std::size_t{0};
  std::vector<Bytes> most(std::size_t begin, std::size_t end, bool with_kept) const;

  std::size_t nodes_;
  std::vector<Event> events_;
  std::vector<Allocation> allocations_;
  std::map<const void*, std::size_t> alive_;
};

}  // namespace pfeife
