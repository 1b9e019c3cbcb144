// Matrix products that a profiler saw, with their sizes: what an efficiency curve is made of.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "planner/ir/basics/units.h"

namespace pfeife {

struct ObservedProduct {
  std::size_t step = 0;   ///< of the profiler (ProfilerStep#...), counted from 0 in their order
  std::string precision;  ///< of what is multiplied: "fp32", "bf16", "fp16"
  Flops work;             ///< 2 m n k, times the batch
  Nanoseconds time{0};    ///< of the operator; where the file has kernels, of those it launched
};

/// The products (mm, addmm, bmm, baddbmm) of one rank's torch.profiler trace within its steps.
/// Empty if the file has no shapes (record_shapes=True) or none of these operators. Not read:
/// convolutions, fused attention, complex and integer types. Errors: as read_profiler_events.
std::vector<ObservedProduct> read_products(const std::filesystem::path& file);

}  // namespace pfeife
