// The memory that a plan needs on every rank and every host, beside what they have.
//   if (!plan.need.fits()) std::puts(shortage_text(plan.need).c_str());
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/basics/units.h"

namespace pfeife {

/// A rank or a host whose memory is too small.
struct Shortage {
  std::size_t number = 0;  ///< of the rank or the host
  Bytes needed{0}, available{0};

  Bytes lacking() const { return needed - available; }
  friend bool operator==(const Shortage&, const Shortage&) = default;
};

struct Need {
  std::vector<Bytes> allocated;     ///< [rank] peak
  std::vector<Bytes> reserved;      ///< [rank] by PyTorch's allocator, modelled; empty = no model
  std::vector<Bytes> limit;         ///< [rank] of held()
  std::vector<Bytes> host;          ///< [host] that offloaded values take; empty = none are
  std::optional<Bytes> host_limit;  ///< of each host; empty = not known

  /// [rank] What is held against the limit: reserved bytes, or allocated ones without a model.
  const std::vector<Bytes>& held() const { return reserved.empty() ? allocated : reserved; }
  /// No rank and no host is short of memory.
  bool fits() const;
  /// held() of the fullest rank, as a share of its limit: above 1 it does not fit.
  double fullness() const;
  /// What a rank needs beyond its limit; 0 if it fits, or has no limit.
  Bytes excess(std::size_t rank) const;
  /// The rank that lacks most, of these the first; nothing if all have enough.
  std::optional<Shortage> rank_shortage() const;
  /// The host that lacks most, of these the first; nothing if all have enough.
  std::optional<Shortage> host_shortage() const;

  friend bool operator==(const Need&, const Need&) = default;
};

/// No rank holds more than its limit. Both: [rank].
bool fits(const std::vector<Bytes>& held, const std::vector<Bytes>& limit);
/// The fullest rank's share of its limit. Both: [rank].
double fullness(const std::vector<Bytes>& held, const std::vector<Bytes>& limit);

/// "host 0 needs 3 GiB for what its devices offload and has 2 GiB (host_memory of the cluster), so
/// it lacks 1 GiB: ..." and what to do.
std::string host_text(const Shortage& host);
/// "rank 1 needs 40 GiB and has 38 GiB; host 0 needs ..."; "" if the plan fits.
std::string shortage_text(const Need& need);

}  // namespace pfeife
