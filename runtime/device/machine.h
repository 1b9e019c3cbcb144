// What there is to say about the machine that measures.
#pragma once

#include <string>

#include "planner/ir/basics/units.h"
#include "runtime/device/device.h"

namespace pfeife {

/// "NAME OF THE PROCESSOR, 1 thread": threads of a kernel. On an accelerator "NAME OF THE CARD,
/// host NAME OF THE PROCESSOR".
std::string where(at::Device device = at::kCPU);
/// "2026-01-31, " and that.
std::string where_and_when(at::Device device = at::kCPU);

/// A warning if programs other than this one keep the cores busy; "" if not.
std::string busy_warning();

/// The machine's memory, or what its control group may use if that is less.
Bytes machine_memory();

/// The most memory that this process has held: of this program alone, not of one that it replaced
/// (torchrun's Python), which getrusage counts, too.
Bytes most_process_memory();

/// Makes the C library keep freed memory of up to 32 MiB a piece instead of handing it back: a step
/// allocates what the one before freed, and fresh pages cost a fault each, more of them where
/// activations live long. For the process, before it allocates much.
void keep_freed_memory();

}  // namespace pfeife
