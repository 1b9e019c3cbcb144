#include "runtime/device/counting_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <atomic>
#include <cstring>

#include "runtime/device/aten.h"

namespace pfeife {
namespace {

std::atomic<std::int64_t> current{0}, highest{0};
thread_local AllocationListener* listener = nullptr;

/// In front of every tensor's bytes stands their number, in a block that keeps the alignment.
constexpr std::size_t kHead = 64;

void add(std::int64_t bytes) {
  const std::int64_t now = current.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::int64_t before = highest.load(std::memory_order_relaxed);
  while (before < now && !highest.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
  }
}

void release(void* data) {
  if (data == nullptr) return;
  char* head = static_cast<char*>(data) - kHead;
  std::int64_t bytes = 0;
  std::memcpy(&bytes, head, sizeof bytes);
  add(-bytes);
  if (listener) listener->freed(data, Bytes{bytes});
  c10::free_cpu(head);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (size == 0) return {nullptr, nullptr, &release, cpu};
    char* head = static_cast<char*>(c10::alloc_cpu(size + kHead));
    const auto bytes = static_cast<std::int64_t>(size);
    std::memcpy(head, &bytes, sizeof bytes);
    add(bytes);
    char* data = head + kHead;
    if (listener) listener->allocated(data, Bytes{bytes});
    return {data, data, &release, cpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    default_copy_data(to, from, count);
  }
};

}  // namespace

void count_allocations() {
  static CountingAllocator allocator;  // LibTorch keeps the pointer for ever
  if (c10::GetCPUAllocator() != &allocator) c10::SetCPUAllocator(&allocator, /*priority=*/255);
}

AllocatedBytes allocated_bytes() { return {Bytes{current.load()}, Bytes{highest.load()}}; }

void reset_allocation_peak() { highest = current.load(); }

void listen_to_allocations(AllocationListener* new_listener) { listener = new_listener; }
AllocationListener* allocation_listener() { return listener; }

}  // namespace pfeife
