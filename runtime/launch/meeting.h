// Where the ranks of a run find one another: a place that all can reach, in which each leaves lines
// about itself. Two kinds: memory that our launcher shares, and LibTorch's TCPStore.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "planner/ir/basics/ids.h"

namespace pfeife {

class SharedSlots;

class Meeting {
 public:
  /// What a line is about: that a rank is there; where it listens; under rank 0, why the first that
  /// lost patience gave up.
  enum class Topic { Came, Listens, GaveUp };

  virtual ~Meeting() = default;
  /// What the others are to know; at most 1000 bytes.
  virtual void put(Topic topic, RankId rank, const std::string& line) = 0;
  /// Empty if that rank has not said it yet.
  virtual std::optional<std::string> find(Topic topic, RankId rank) = 0;
  /// The host on which the place is, for ranks that know no address of theirs; "" = this one.
  virtual std::string host() const = 0;
};

/// In our launcher's memory, which must outlive it.
std::unique_ptr<Meeting> meeting_in_slots(SharedSlots& slots);

/// Where the store of a run is.
struct StoreAddress {
  std::string host;
  std::uint16_t port = 0;
  bool there = false;   ///< a launcher keeps it; else rank 0 does, on `host`
  std::string attempt;  ///< tells restarts of ranks apart that share a store
  friend bool operator==(const StoreAddress&, const StoreAddress&) = default;
};

/// In a TCPStore, which rank 0 starts unless it is there. Waits for it at most `patience`.
/// RuntimeFault: the port is in use, or nobody answers; ConfigError: nobody knows the host.
std::unique_ptr<Meeting> meeting_at_store(const StoreAddress& address, RankId rank,
                                          std::chrono::milliseconds patience);

}  // namespace pfeife
