// The clocks of several hosts, brought together: what the records of a step say of times is then of
// one clock, rank 0's.
//
// A rank on another host than rank 0 asks it for the time before and after a run; between the two a
// clock is taken to run evenly. Half the shortest of many round trips is what an answer can be off.
#pragma once

#include <functional>
#include <vector>

#include "runtime/execute/executor.h"

namespace pfeife {

class HostClocks {
 public:
  using Clock = std::function<Nanoseconds()>;
  /// `host`: equal for ranks that have one clock; `clock`: this rank's.
  explicit HostClocks(std::string host, Clock clock = now);
  /// The clock of this host (host_identity()).
  HostClocks();

  /// Every rank must call it at the same time, before and after what is to be corrected.
  void measure(Transport& transport);

  /// On rank 0, of the records of the ranks of `graph`, whose numbers in the transport are
  /// `numbers`. At least one measure() must have been.
  void correct(const DependencyGraph& graph, std::vector<std::vector<TaskRecord>>& records,
               const std::vector<RankId>& numbers) const;
  /// On rank 0: the most by which a corrected time may be off as far as round trips show. 0 if all
  /// ranks are on one host.
  Nanoseconds error() const;
  /// On rank 0: a line for people for each rank whose clock differs from rank 0's; "" on one host.
  std::string text() const;

  /// What is added to a rank's time to make it rank 0's.
  struct Offset {
    Nanoseconds at{0};  ///< by the rank's clock
    Nanoseconds offset{0};
    Nanoseconds error{0};
    bool other_host = false;
  };
  /// On rank 0: [rank][measure()].
  const std::vector<std::vector<Offset>>& offsets() const { return offsets_; }

 private:
  Offset ask(Transport& transport) const;
  void answer(Transport& transport, RankId rank) const;

  std::string host_;
  Clock clock_;
  std::uint64_t times_ = 0;
  std::vector<std::vector<Offset>> offsets_;
};

}  // namespace pfeife
