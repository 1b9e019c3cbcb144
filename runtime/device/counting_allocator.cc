#include "runtime/device/counting_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <algorithm>
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

void AllocationLog::enter(NodeId node) { events_.push_back({What::Enter, node.index()}); }

void AllocationLog::allocated(const void* data, Bytes bytes) {
  alive_[data] = allocations_.size();
  allocations_.push_back({bytes, events_.size(), kNever});
  events_.push_back({What::Allocate, allocations_.size() - 1});
}

void AllocationLog::freed(const void* data, Bytes) {
  const auto found = alive_.find(data);
  if (found == alive_.end()) return;  // allocated before the log began
  allocations_[found->second].gone = events_.size();
  events_.push_back({What::Free, found->second});
  alive_.erase(found);
}

std::optional<std::size_t> AllocationLog::at(const void* data) const {
  const auto found = alive_.find(data);
  return found == alive_.end() ? std::nullopt : std::optional(found->second);
}

Bytes AllocationLog::kept(std::size_t begin, std::size_t end) const {
  Bytes sum{0};
  for (const Allocation& a : allocations_)
    if (a.allocated_at >= begin && a.allocated_at < end && a.gone >= end) sum += a.bytes;
  return sum;
}

std::vector<Bytes> AllocationLog::temporary(std::size_t begin, std::size_t end) const {
  return most(begin, end, /*with_kept=*/false);
}
std::vector<Bytes> AllocationLog::highest(std::size_t begin, std::size_t end) const {
  return most(begin, end, /*with_kept=*/true);
}

std::vector<Bytes> AllocationLog::above_kept(std::size_t begin, std::size_t end) const {
  std::vector<Bytes> above = highest(begin, end), kept(nodes_);
  Bytes level{0};
  std::optional<std::size_t> node;
  for (std::size_t e = begin; e < end; ++e) {
    const auto [what, which] = events_[e];
    if (what == What::Enter)
      node = which;
    else if (what == What::Allocate && allocations_[which].gone >= end)
      level += allocations_[which].bytes;
    if (node) kept[*node] = level;
  }
  for (std::size_t n = 0; n < nodes_; ++n) above[n] = std::max(above[n] - kept[n], Bytes{0});
  return above;
}

std::vector<Bytes> AllocationLog::most(std::size_t begin, std::size_t end, bool with_kept) const {
  const auto counts = [&](const Allocation& a) {
    return a.allocated_at >= begin && (with_kept || a.gone < end);
  };
  std::vector<Bytes> most(nodes_);
  Bytes level{0};
  std::optional<std::size_t> node;
  for (std::size_t e = begin; e < end; ++e) {
    const auto [what, which] = events_[e];
    if (what == What::Enter) {
      node = which;
    } else if (counts(allocations_[which])) {
      if (what == What::Allocate)
        level += allocations_[which].bytes;
      else
        level -= allocations_[which].bytes;
    }
    if (node) most[*node] = std::max(most[*node], level);
  }
  return most;
}

}  // namespace pfeife
