// What the tensors of a rank take of its device's memory.
//
// Ranks that are threads share an accelerator and its caching allocator, whose statistics are those
// of the device. But it reports each block that it gives and takes back to the thread that asks: a
// block counts for the rank that asked for it until it is freed, by whichever rank. Blocks count
// with their sizes: CUDA's allocator rounds a request up to 512 bytes, and gives a larger block
// whole if no more than 1 MiB of it would be left (512 bytes of a small one). What it reserves
// beyond them, and the driver's own memory, do not count. On a CPU, it is the count of the process
// (counting_allocator.h).
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <memory>

#include "runtime/device/aten.h"
#include "runtime/device/counting_allocator.h"

namespace pfeife {

/// Counts what the calling thread allocates while it lives. Its reports also go to the thread's
/// AllocationListener.
class RankMemory {
 public:
  explicit RankMemory(at::Device device);
  ~RankMemory();

  AllocatedBytes allocated() const;
  void reset_peak();

  /// Bytes of blocks that the thread asked for on a device.
  class Account;

 private:
  std::shared_ptr<Account> account_;  // none: the process's
  std::optional<c10::DebugInfoGuard> reports_;
};

/// Statistics of a device's caching allocator: of all ranks together. Empty for a CPU.
struct AllocatorStatistics {
  AllocatedBytes allocated;  ///< whole blocks
  AllocatedBytes requested;  ///< what was asked for
  AllocatedBytes reserved;   ///< what it has from the driver
};
std::optional<AllocatorStatistics> allocator_statistics(at::Device device);

/// "card: at most 3.1 GiB allocated, 3.5 GiB reserved" as a line; "" for a CPU.
std::string to_string(const std::optional<AllocatorStatistics>& statistics);

}  // namespace pfeife
