#include "runtime/device/rank_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "planner/ir/basics/error.h"

namespace pfeife {

class RankMemory::Account {
 public:
  void add(std::int64_t bytes) {
    const std::int64_t now = now_.fetch_add(bytes) + bytes;
    std::int64_t before = peak_.load();
    while (before < now && !peak_.compare_exchange_weak(before, now)) {
    }
  }
  AllocatedBytes bytes() const { return {Bytes{now_.load()}, Bytes{peak_.load()}}; }
  void reset_peak() { peak_ = now_.load(); }

 private:
  std::atomic<std::int64_t> now_{0}, peak_{0};
};

namespace {

using AccountOfBlock = std::shared_ptr<RankMemory::Account>;

/// Whose each block is, for all ranks of the process: any rank may free it.
class Blocks {
 public:
  void took(const void* block, std::int64_t bytes, AccountOfBlock account) {
    const std::lock_guard lock(mutex_);
    forget(block);  // freed where nobody was told
    account->add(bytes);
    blocks_[block] = {bytes, std::move(account)};
  }
  void gave_back(const void* block) {
    const std::lock_guard lock(mutex_);
    forget(block);
  }

 private:
  void forget(const void* block) {
    const auto found = blocks_.extract(block);
    if (found) found.mapped().account->add(-found.mapped().bytes);
  }
  struct Block {
    std::int64_t bytes;
    AccountOfBlock account;
  };
  std::mutex mutex_;
  std::unordered_map<const void*, Block> blocks_;
};

Blocks& blocks() {
  static auto* all = new Blocks;  // tensors may be freed while the program ends
  return *all;
}

/// LibTorch tells it of every block that the thread allocates or frees.
class Reports final : public c10::MemoryReportingInfoBase {
 public:
  Reports(at::Device device, AccountOfBlock account)
      : device_(device), account_(std::move(account)) {}
  void reportMemoryUsage(void* block, std::int64_t bytes, std::size_t, std::size_t,
                         at::Device device) override {
    if (device.type() != device_.type()) return;
    AllocationListener* listener = allocation_listener();
    if (bytes > 0) {
      blocks().took(block, bytes, account_);
      if (listener) listener->allocated(block, Bytes{bytes});
    } else if (bytes < 0) {
      blocks().gave_back(block);
      if (listener) listener->freed(block, Bytes{-bytes});
    }
  }
  bool memoryProfilingEnabled() const override { return true; }

 private:
  at::Device device_;
  AccountOfBlock account_;
};

AllocatedBytes bytes_of(const c10::CachingAllocator::StatArray& statistics) {
  const auto& all =
      statistics[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  return {Bytes{all.current}, Bytes{all.peak}};
}

}  // namespace

RankMemory::RankMemory(at::Device device) {
  if (device.is_cpu()) return;
  account_ = std::make_shared<Account>();
  reports_.emplace(c10::DebugInfoKind::PROFILER_STATE, std::make_shared<Reports>(device, account_));
}

RankMemory::~RankMemory() = default;

AllocatedBytes RankMemory::allocated() const {
  return account_ ? account_->bytes() : allocated_bytes();
}

void RankMemory::reset_peak() {
  if (account_)
    account_->reset_peak();
  else
    reset_allocation_peak();
}

std::optional<AllocatorStatistics> allocator_statistics(at::Device device) {
  if (device.is_cpu()) return {};
  const auto statistics = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return AllocatorStatistics{bytes_of(statistics.allocated_bytes),
                             bytes_of(statistics.requested_bytes),
                             bytes_of(statistics.reserved_bytes)};
}

std::string to_string(const std::optional<AllocatorStatistics>& statistics) {
  if (!statistics) return "";
  return stream_all("card, all ranks together: at most ", to_string(statistics->allocated.peak),
                    " allocated (", to_string(statistics->requested.peak), " asked for), ",
                    to_string(statistics->reserved.peak), " reserved by the caching allocator\n");
}

}  // namespace pfeife
