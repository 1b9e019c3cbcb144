// Devices: what differs between a CPU and an accelerator besides the tensors themselves.
//
// Written against LibTorch's interfaces for any accelerator: building needs nothing of CUDA, and
// programs that stay on the CPU do not load it. LibTorch's library for CUDA (and all that it needs,
// 2 GB) is loaded when a card is asked for.
#pragma once

#include <c10/core/StreamGuard.h>

#include <optional>
#include <string>

#include "runtime/device/aten.h"

namespace pfeife {

/// "cpu", "cuda" (the first card) or "cuda:N". LibTorch looks for CUDA once, so this comes before
/// anything else that it does with devices. ConfigError with the reason and the remedy: another
/// word, no driver, no card, no library.
at::Device open_device(const std::string& name);

/// Products and convolutions of float32 on accelerators read only the 10 upper bits of their
/// operands' mantissas (TF32), or all. Of the whole process; CPUs always read all.
void allow_tf32(bool allowed);

/// "NVIDIA H200"; "" for a CPU.
std::string card_name(at::Device device);

/// A copy on the device for which the host does not wait: by way of page-locked memory, which
/// LibTorch keeps until the device has read it. On a CPU, a copy only where the type differs.
at::Tensor copied_ahead(const at::Tensor& on_cpu, at::Device device, at::ScalarType type);

/// Waits until all is done that the calling thread has given to the device.
void finish(at::Device device);

/// Refuses more ranks on one card than CUDA's pool has streams for threads that share it (32):
/// ranks beyond that would wait for one another. ConfigError.
void check_streams(std::size_t ranks, at::Device device);

/// While it lives, what the calling thread gives to the device is done on a stream of the thread's
/// own, in order, after all that was given to the device before; and backward passes run on the
/// calling thread, where LibTorch would have one for all ranks on a device.
class DeviceThread {
 public:
  explicit DeviceThread(at::Device device);
  ~DeviceThread();
  DeviceThread(const DeviceThread&) = delete;
  DeviceThread& operator=(const DeviceThread&) = delete;

 private:
  bool backward_elsewhere_;
  std::optional<c10::StreamGuard> stream_;
};

}  // namespace pfeife
