// Why a schedule, or a way to settle what a case leaves open, is not the plan: what kind of reason
// and its figures. Words are made where a reason is shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/units.h"
#include "planner/ir/request/select_by.h"

namespace pfeife {

enum class Why : std::uint8_t {
  Chosen,        ///< it is the plan
  Slower,        ///< its time is above the plan's
  Fuller,        ///< it counts as fast (plan.as_fast), and leaves less room
  RuledOut,      ///< its bound is not below the plan's time
  LacksMemory,   ///< the cuts found need more memory than there is
  NothingFound,  ///< no cuts were found that fit
  NotTried,      ///< the search stopped before; `words` say why
  Impossible,    ///< it cannot be; `words` name the rule
};

struct Reason {
  Why why = Why::Chosen;
  /// Slower, RuledOut: compared with the least estimate, which is not that of the plan.
  bool beside_least = false;
  std::optional<Nanoseconds> slower;  ///< Slower, Fuller (not above 0): by how much, if known
  SelectBy by = SelectBy::Estimate;   ///< Slower, Fuller: what was compared
  RankId rank;                        ///< LacksMemory: the rank that lacks most
  /// LacksMemory: by how much, in the best case found. Fuller: how much larger its peak is.
  Bytes lacking{0};
  bool may_yet_fit = false;  ///< LacksMemory: other cuts were not ruled out
  std::string words;
  friend bool operator==(const Reason&, const Reason&) = default;
};

/// "its bound is not below the plan's time", "3.2 ms slower", "rank 0 lacks 1 GiB". `bound`: named
/// where it rules out. `several`: of more than one schedule.
std::string to_string(const Reason& reason, const std::optional<Nanoseconds>& bound = {},
                      bool several = false);

}  // namespace pfeife
