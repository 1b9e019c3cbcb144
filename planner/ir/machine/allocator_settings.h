// PyTorch's CUDA caching allocator as a user sets it, and what it reserves where no lifetimes are
// known.
#pragma once

#include <cstdint>
#include <optional>

#include "planner/ir/basics/units.h"

namespace pfeife {

/// Keys of PYTORCH_ALLOC_CONF (PYTORCH_CUDA_ALLOC_CONF).
struct AllocatorSettings {
  bool expandable_segments = false;
  std::optional<Bytes> max_split_size = {};  ///< larger blocks are never split; absent = any may be
  /// Requests are rounded up to a multiple of 1/n of the power of two below; a power of two, 1 =
  /// to 512 bytes.
  std::int64_t roundup_power2_divisions = 1;
  friend bool operator==(const AllocatorSettings&, const AllocatorSettings&) = default;
};

/// Reserved over allocated bytes, where lifetimes are not known: 1.05, with expandable segments
/// 1.02. Played steps of a Llama layer have 1.01 to 1.06, and 1.00 to 1.02; published runs 1.02
/// (Llama 3.3 70B) and 1.03 to 1.18 (Megatron).
constexpr double reserved_factor(const AllocatorSettings& settings) {
  return settings.expandable_segments ? 1.02 : 1.05;
}

/// Share of a device's usable memory that stays free: what lifetimes do not say, such as workspaces
/// of libraries. Deployments keep 5 % beside plain allocated bytes; the allocator's own part is
/// modelled here.
inline constexpr double kMemoryMargin = 0.02;
/// The margin that was asked for. Else kMemoryMargin, or 0 where no allocator is modelled: what is
/// allocated may then fill the device.
constexpr double memory_margin(const std::optional<double>& asked, bool allocator) {
  return asked.value_or(allocator ? kMemoryMargin : 0);
}

// Outside the allocator: what DeviceKind::reserve stands for.

/// Context, cuBLAS and cuDNN of a process: 0.3 to 1 GB measured (nairr.readthedocs.io,
/// gpu_estimation), 0.95 GiB in a 70B run (vllm-project/compressed-tensors, pull request 587).
constexpr Bytes kContext = kGiB;
/// A communicator of NCCL: 544 MB of two A100, 688 MB of more (NVIDIA/nccl, issue 964).
constexpr Bytes kCommunicator{kGiB.value / 5 * 3};
constexpr Bytes outside_allocator(std::int64_t communicators) {
  return kContext + communicators * kCommunicator;
}

}  // namespace pfeife
