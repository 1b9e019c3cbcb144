// Where the ranks of a run find one another: a place that all can reach, in which each leaves a
// line about itself. Two kinds: a folder of one host, and LibTorch's TCPStore.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "planner/ir/ids.h"

namespace pfeife {

class Meeting {
 public:
  virtual ~Meeting() = default;
  /// What the others are to know of this rank.
  virtual void put(RankId rank, const std::string& line) = 0;
  /// Empty if that rank has not come yet.
  virtual std::optional<std::string> find(RankId rank) = 0;
  /// The host on which the place is, for ranks that know no address of theirs; "" = this one.
  virtual std::string host() const = 0;
};

/// In a folder, which must be new.
std::unique_ptr<Meeting> meeting_in_folder(const std::filesystem::path& folder);

/// Where the store of a run is.
struct StoreAddress {
  std::string host;
  std::uint16_t port = 0;
  bool there = false;   ///< a launcher keeps it; else rank 0 does, on `host`
  std::string attempt;  ///< tells restarts of ranks apart that share a store
  friend bool operator==(const StoreAddress&, const StoreAddress&) = default;
};

/// In a TCPStore, which rank 0 starts unless it is there. Waits for it at most `patience`.
/// RuntimeFault: the port is in use, or nobody answers.
std::unique_ptr<Meeting> meeting_at_store(const StoreAddress& address, RankId rank,
                                          std::chrono::milliseconds patience);

}  // namespace pfeife
