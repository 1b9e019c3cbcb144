// A line of results.csv (columns: configs/REFERENCE.md), and what is found beside a plan.
//   for (const SearchStep& step : planned.history) std::printf("%zu\n", step.candidates);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/units.h"
#include "planner/ir/result/reason.h"

namespace pfeife {

/// Times in integer nanoseconds (files show ms); absent = not computed or not proven.
struct ResultRow {
  std::string case_name;  ///< "devices=4,microbatches=8"
  std::string plan;       ///< "planned", or the baseline's name
  std::string family;
  std::size_t devices = 0;
  std::size_t microbatches = 0;
  std::int64_t microbatch_size = 0;
  std::size_t stages_per_rank = 0;
  std::vector<std::int32_t> cuts;  ///< indices of cut candidates
  std::string knobs;               ///< "loop_batch=8, prefetch=3, recompute=0-2"
  std::optional<Nanoseconds> estimate, simulate, simulate_p95, measure;
  std::optional<Nanoseconds> estimate_p5, estimate_median, estimate_p95;  ///< with jitter
  /// By the engine by which the case's plans are compared (result_engine.h).
  std::optional<double> samples_per_s, bubble;
  std::optional<Nanoseconds> lower_bound;  ///< of a class with this plan; absent: of none
  std::optional<double> gap, simulate_gap;
  std::optional<Bytes> peak_memory;  ///< allocated, largest over ranks
  std::optional<Bytes> reserved;     ///< by the allocator, modelled; largest over ranks
  Bytes memory_limit{0};             ///< smallest over ranks
  bool feasible = false;
  double search_s = 0;
  std::size_t candidates = 0;
  std::string bound_class;  ///< what `lower_bound` is of: "1f1b", "12 families"

  friend bool operator==(const ResultRow&, const ResultRow&) = default;
};

/// What the row's schedule is called: "looped, V=2, loop_batch=8".
std::string schedule_name(const ResultRow& row);

/// A change of a case in which nothing fits, tried: what then fits, or why still nothing does.
struct TriedChange {
  std::string change;    ///< "6 devices instead of 4"
  std::string schedule;  ///< of the plan found; "" = none
  std::size_t devices = 0, microbatches = 0;
  std::int64_t microbatch_size = 0;
  std::optional<Nanoseconds> estimate;
  std::optional<Bytes> peak_memory;  ///< largest over ranks
  std::string reason;                ///< why nothing fits even so; "" if something does

  friend bool operator==(const TriedChange&, const TriedChange&) = default;
};

/// One way to settle what a case leaves open (microbatch size, order of devices or layers), and
/// what came of it.
struct Alternative {
  std::string choice;    ///< "12 microbatches of 16"
  std::string schedule;  ///< of its best plan; "" = none is known
  std::optional<Nanoseconds> estimate;
  std::optional<Nanoseconds> bound;  ///< none of its plans is faster
  std::optional<Bytes> peak_memory;  ///< largest over ranks
  Reason reason;                     ///< why it is not the plan, if it is not

  friend bool operator==(const Alternative&, const Alternative&) = default;
};

/// One of the plans between which time and memory can be traded.
struct FrontPoint {
  std::string schedule;
  Nanoseconds estimate{0};
  Bytes peak_memory{0};  ///< largest over ranks
  friend bool operator==(const FrontPoint&, const FrontPoint&) = default;
};

/// Where a search stood when it had done some of its work.
struct SearchStep {
  std::size_t candidates = 0;              ///< evaluated by then
  std::optional<Nanoseconds> best, bound;  ///< of the class that the plan is in; empty = none yet
  friend bool operator==(const SearchStep&, const SearchStep&) = default;
};

/// Which of the search's best plans one way of choosing picks.
struct PlanChoice {
  SelectBy by = SelectBy::Estimate;
  std::size_t number = 0;  ///< of the plan among the search's best, by estimate, from 0
  std::string schedule;    ///< of the plan
  std::optional<Nanoseconds> estimate, simulate, p95;  ///< p95 of the best engine that has one
  bool used = false;                                   ///< the config's way
  friend bool operator==(const PlanChoice&, const PlanChoice&) = default;
};

/// What a stage computes for one microbatch.
struct StageCompute {
  RankId rank;
  Nanoseconds forward{0}, backward{0};  ///< backward: I and W together
  friend bool operator==(const StageCompute&, const StageCompute&) = default;
};

/// What came of a change, for people: schedule, time and memory, or why it does not help.
std::string outcome_text(const TriedChange& tried);

}  // namespace pfeife
