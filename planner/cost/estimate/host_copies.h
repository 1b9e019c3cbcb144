// What stages have offloaded, on the device and on the host, over the times of the estimate. For
// the memory rule (memory.h).
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "planner/ir/schedule/schedule.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// Bytes that come and go.
class Level {
 public:
  /// In [start, end).
  void hold(Nanoseconds start, Nanoseconds end, Bytes bytes);
  void sort();  ///< after the last hold(), before what follows
  /// The most in [start, end); where that is empty, what is there before and after the moment.
  Bytes most(Nanoseconds start, Nanoseconds end) const;
  Bytes most() const;

 private:
  struct Change {
    Nanoseconds time{0};
    Bytes by{0}, level{0};  ///< level: from then on, with all changes before it in the order
  };
  std::vector<Change> changes_;  // by time, what goes before what comes
};

/// What a rank has offloaded.
struct HostCopies {
  std::map<std::pair<StageId, MicrobatchId>, Bytes> bytes;
  Level device;  ///< of these bytes
  Level host;
  /// [cell of the row] while it runs, then until the next one that holds the rank.
  struct Window {
    Nanoseconds start{0}, end{0}, next{0};
  };
  std::vector<Window> windows;

  Bytes offloaded(const Action& action) const;
};

/// [rank] Empty if no row has copies. The rows must be valid.
std::vector<HostCopies> host_copies(const Schedule& lowered, const StageCosts& costs,
                                    const Placement& placement);

}  // namespace pfeife
