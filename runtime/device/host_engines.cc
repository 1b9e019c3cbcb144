#include "runtime/device/host_engines.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

c10::impl::VirtualGuardImpl guard_of(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type());
}

at::Tensor bytes_of(const c10::Storage& storage, at::Device device) {
  const auto count = static_cast<std::int64_t>(storage.nbytes());
  return at::for_blob(storage.mutable_data(), {count})
      .options(at::TensorOptions().dtype(at::kByte).device(device))
      .target_device(device)
      .make_tensor();
}

}  // namespace

/// While it lives, the thread's work goes to a stream, behind all that the thread gave to the
/// device before. On a CPU it does nothing.
class HostEngines::OnStream {
 public:
  OnStream(at::Device device, std::optional<c10::Stream>& stream) {
    if (device.is_cpu()) return;
    const auto guard = guard_of(device);
    if (!stream) stream = guard.getNewStream(device);
    c10::Event given(device.type());
    given.record(guard.getStream(device));
    given.block(*stream);
    stream_.emplace(*stream);
  }
  /// The end of what the stream was given so far.
  void record(c10::Event& event) const { event.record(stream_->current_stream()); }
  c10::Stream stream() const { return stream_->current_stream(); }

 private:
  std::optional<c10::StreamGuard> stream_;
};

Bytes OnHost::bytes() const {
  Bytes sum{0};
  for (const auto& [storage, buffer] : storages)
    sum += Bytes{static_cast<std::int64_t>(storage.nbytes())};
  return sum;
}

HostBuffer HostEngines::buffer(std::size_t bytes) {
  if (auto& unused = free_[bytes]; !unused.empty()) {
    HostBuffer again = std::move(unused.back());
    unused.pop_back();
    return again;
  }
  held_ += Bytes{static_cast<std::int64_t>(bytes)};
  // Not the allocator that counts what tensors take of a CPU: here a CPU is a device.
  c10::Allocator* allocator = device_.is_cpu()
                                  ? c10::GetDefaultCPUAllocator()
                                  : at::globalContext().getPinnedMemoryAllocator(device_.type());
  return {at::detail::empty_generic({static_cast<std::int64_t>(bytes)}, allocator,
                                    c10::DispatchKeySet(c10::DispatchKey::CPU), at::kByte, {}),
          nullptr};
}

HostEngines::Span HostEngines::offload(const std::vector<c10::Storage>& storages, OnHost& copies,
                                       const Mark& mark) {
  const at::NoGradGuard no_history;
  const OnStream on(device_, out_);
  const Nanoseconds start = mark();
  for (const c10::Storage& storage : storages) {
    HostBuffer to = buffer(storage.nbytes());
    if (to.read) to.read->block(on.stream());
    to.bytes.copy_(bytes_of(storage, device_), /*non_blocking=*/true);
    const c10::DataPtr left = storage.set_data_ptr(c10::DataPtr(nullptr, storage.device()));
    if (!device_.is_cpu()) guard_of(device_).recordDataPtrOnStream(left, on.stream());
    copies.storages.emplace_back(storage, std::move(to));
  }
  const Nanoseconds end = mark();
  if (!device_.is_cpu()) on.record(copies.away.emplace(device_.type()));
  return {start, end};
}

HostEngines::Span HostEngines::reload(OnHost& copies, const Mark& mark) {
  const at::NoGradGuard no_history;
  for (auto& [storage, buffer] : copies.storages) {  // memory of the stream that will read it
    PFEIFE_CHECK(storage.data() == nullptr, "what was copied to the host is on the device, too");
    storage.set_data_ptr(storage.allocator()->allocate(storage.nbytes()));
  }
  const OnStream on(device_, back_);
  if (copies.away) copies.away->block(on.stream());
  const Nanoseconds start = mark();
  for (const auto& [storage, buffer] : copies.storages)
    bytes_of(storage, device_).copy_(buffer.bytes, /*non_blocking=*/true);
  const Nanoseconds end = mark();
  if (!device_.is_cpu()) on.record(*(copies.back = std::make_shared<c10::Event>(device_.type())));
  for (auto& [storage, buffer] : copies.storages) {
    buffer.read = copies.back;
    free_[storage.nbytes()].push_back(std::move(buffer));
  }
  copies.storages.clear();
  return {start, end};
}

void HostEngines::await(const OnHost& copies) const {
  if (copies.back) copies.back->block(guard_of(device_).getStream(device_));
}

}  // namespace pfeife
