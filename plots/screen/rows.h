// The rows of a table of plans: what tells the cases apart, and in which order their plans stand.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/result/case_record.h"

namespace pfeife {

/// What tells the cases apart, in front of their rows.
struct Key {
  std::string head;
  std::vector<std::string> values;  ///< [case]
  bool number = true;

  bool varies() const;
  /// Characters of the longest value, or of the head.
  std::size_t width() const;
};
/// The head of the column of training.microbatch_size.
inline constexpr const char* kMicrobatchSize = "b";

/// Devices and microbatches ("D", "N"), then whatever else is not alike in all cases: model,
/// cluster, the keys of the config that are swept, and the engine by which plans are compared.
std::vector<Key> keys_of(const std::vector<CaseRecord>& cases);

/// The chosen plan, the one with less memory, then the others: the fastest first by the engine by
/// which the case's plans are compared, those that do not fit and those that cannot be behind them.
std::vector<const PlanRecord*> plans_in_order(const CaseRecord& record, bool chosen_only = false);

/// "zb_greedy V=3"; of a plan that there is not what it is called in the config.
std::string plan_name(const PlanRecord& plan);
/// The same without knobs, "zb_greedy V=3 +rec" if it recomputes anything.
std::string short_plan_name(const PlanRecord& plan);

}  // namespace pfeife
