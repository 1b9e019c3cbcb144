//   for (const LostSchedule& one : planned.lost) std::puts(one.schedule.c_str());  // all of a case
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/ir/result/figures.h"
#include "planner/ir/result/reason.h"
#include "planner/ir/result/result.h"
#include "planner/ir/trace/accuracy.h"
#include "planner/ir/trace/link_load.h"
#include "planner/ir/trace/trace.h"

namespace pfeife {

/// One plan in one case, with what the table and the report show besides the line of results.csv.
struct PlanRecord {
  ResultRow row;
  PlanFigures figures;
  std::string reason;                            ///< why there is no such plan; "" if there is
  std::vector<Bytes> peak_memory, memory_limit;  ///< [rank]
  std::optional<Nanoseconds> simulate_p5, simulate_median;  ///< with jitter
  /// [rank] Of the engine by which the case's plans are compared (result_engine.h); empty if the
  /// plan has no time of it.
  std::vector<Attribution> attribution;
  RankId critical_rank;                ///< of that engine's trace
  std::vector<std::string> cut_names;  ///< [cut] module or layer that it lies after
  std::vector<StageCompute> stages;    ///< [stage], as estimated
  bool recomputes = false;             ///< some stage computes its forward again in backward
  std::optional<MeasuredRun> measured;
  friend bool operator==(const PlanRecord&, const PlanRecord&) = default;
};

/// A schedule that was considered, and why it is not the plan.
struct LostSchedule {
  std::string schedule;  ///< "looped, V=2, prefetch=3"
  std::string family;
  Reason reason;
  std::optional<Nanoseconds> bound;  ///< no cuts of it have a smaller estimate
  friend bool operator==(const LostSchedule&, const LostSchedule&) = default;
};

/// A key of the config of which the experiment has a case for each of several values.
struct SweptKey {
  std::string key;    ///< "training.precision"
  std::string value;  ///< of this case, as YAML in one line
  friend bool operator==(const SweptKey&, const SweptKey&) = default;
};

struct CaseRecord {
  std::string name;
  std::string model, cluster;         ///< files, as the config names them
  std::string calibration;            ///< what is not as published, in words; "" = nothing
  std::vector<SweptKey> swept;        ///< besides model, cluster, devices and microbatches
  std::string digest;                 ///< of everything that decides the case
  std::string resolved;               ///< the case as YAML, defaults written out
  std::vector<std::string> notes;     ///< where figures come from, warnings
  std::vector<std::string> uncosted;  ///< a sentence for each operator without a cost
  std::vector<PlanRecord> plans;      ///< the planned one first
  std::vector<LostSchedule> lost;
  std::vector<SearchStep> history;        ///< of the search
  std::vector<PlanChoice> choices;        ///< what each way of choosing among its best plans picks
  std::vector<FrontPoint> front;          ///< of the best plans of all schedules, the fastest first
  std::vector<Alternative> alternatives;  ///< of what the case leaves open; the chosen one first
  std::vector<TriedChange> tried;         ///< if nothing fits: what would help, and what would not
  std::optional<LinksRecord> links;       ///< of the chosen plan, simulated with shared links
  /// No plan that the lower bound covers is simulated faster, transfers sharing links.
  std::optional<Nanoseconds> links_bound;
  std::string bound_covers;      ///< what the lower bound holds for; "" = none
  bool orders_left_out = false;  ///< orders built for the costs may be below the bound
  friend bool operator==(const CaseRecord&, const CaseRecord&) = default;
};

}  // namespace pfeife
