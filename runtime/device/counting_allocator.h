// What tensors take of a CPU's memory: LibTorch's allocator for CPUs, with a count.
//
// Counts the bytes asked for by tensors. Not counted: what libraries allocate for themselves
// (packed operands of matrix products), mapped files, the program's own structures.
#pragma once

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

}  // namespace pfeife
