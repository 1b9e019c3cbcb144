#include "runtime/device/allocation_log.h"

#include <algorithm>

namespace pfeife {

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
