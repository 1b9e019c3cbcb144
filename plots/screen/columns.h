// The closing table's columns and rows.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/ir/result/case_record.h"

namespace pfeife {

// The figures of a plan that tables show, on the screen and in files: columns and units.

struct MemoryUnit {
  double bytes = 1;
  const char* name = "B";
  /// The amount without the unit, one decimal.
  std::string text(Bytes amount) const;
  /// What is missing, one decimal, never 0: "<0.1" of less than that.
  std::string lack_text(Bytes amount) const;
};
/// The largest of GiB, MiB and KiB that is not more than the amount; KiB of less.
MemoryUnit memory_unit(Bytes amount);
/// One unit for the peaks of all cases: that of the smallest, which would be lost in a larger one.
MemoryUnit memory_unit(std::span<const CaseRecord> cases);

/// What all rows of a table have in common.
struct TableFacts {
  MemoryUnit memory;
  std::string beside;     ///< the plan that speed-ups are over: "1f1b"; "" = there are none
  int time_decimals = 1;  ///< of ms
  int rate_decimals = 1;  ///< of samples/s
};
/// `digits`: of the shortest step and of the lowest rate.
TableFacts table_facts(std::span<const CaseRecord> cases, int digits = 4);

struct Column {
  std::string name;  ///< what --columns calls it
  std::string head;  ///< "step ms"
  /// "" if the plan has no such figure.
  std::string (*text)(const TableFacts&, const CaseRecord&, const PlanRecord&);
};

/// Names of all columns there are.
std::vector<std::string> column_names();
/// The columns of those names, in that order; of an empty list the usual ones that any plan fills:
/// step, measure and error (where plans are compared by another engine), p95 (with jitter),
/// samples, latency (forward only), vs, bubble, peak, gap. Every name is of column_names().
std::vector<Column> columns_of(std::span<const CaseRecord> cases, const TableFacts& facts,
                               std::span<const std::string> names = {});

/// The text of the column "devices" where there is less room: of more than four ranks the least and
/// the most.
std::string each_device_briefly(const TableFacts& facts, const CaseRecord& record,
                                const PlanRecord& plan);

/// How far the predicted step is above the bound, as a fraction: of the simulation, unless the
/// case's plans are compared by estimates.
std::optional<double> gap_of(const CaseRecord& record, const PlanRecord& plan);
/// "gap: % over the bound on estimates of 1f1b": with the class of the cases' bounds, where all
/// have the same.
std::string gap_words(std::span<const CaseRecord> cases);
/// Five digits at least, so that plans which differ little can be told apart; "-" for nothing.
std::string milliseconds_text(const std::optional<Nanoseconds>& time);
/// "devices=4,microbatches=8" to "devices 4, microbatches 8".
std::string heading(const CaseRecord& record);
/// ", measured 899.30 ms (error -72.2 %)" behind a time of another engine; "" of what was not
/// measured.
std::string measured_text(const ResultRow& row, TraceSource engine);
/// "times simulated", "times measured or simulated".
std::string engines_text(std::span<const CaseRecord> cases);

// The rows of a table of plans: what tells the cases apart, and in which order their plans stand.

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
