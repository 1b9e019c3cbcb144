// A case as it is kept: what case.json and the report are made of.
//   const CaseRecord record = record_of(planned);
//   for (const PlanRecord& plan : record.plans) std::puts(plan.row.plan.c_str());
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/result/answer.h"
#include "planner/ir/result/figures.h"
#include "planner/ir/result/need.h"
#include "planner/ir/result/slow_ranks.h"
#include "planner/ir/trace/accuracy.h"
#include "planner/ir/trace/link_load.h"
#include "planner/ir/trace/trace.h"

namespace pfeife {

/// One plan in one case, with what the table and the report show besides the line of results.csv.
struct PlanRecord {
  ResultRow row;
  PlanFigures figures;
  std::string reason;  ///< why there is no such plan; "" if there is
  Need need;
  std::vector<Bytes> reserved_expandable;  ///< [rank] with expandable segments, if they are not set
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

/// A key of the config with its value in a case.
struct SweptKey {
  std::string key;    ///< "training.precision"
  std::string value;  ///< as YAML in one line
  friend auto operator<=>(const SweptKey&, const SweptKey&) = default;
};

struct CaseRecord : RecordedAnswer {
  std::string name;
  std::string model, cluster;         ///< files, as the config names them
  std::string calibration;            ///< what is not as published, in words; "" = nothing
  std::vector<SweptKey> named;        ///< what tells it from other cases, as in its name
  std::vector<SweptKey> swept;        ///< besides model, cluster, devices and microbatches
  std::string digest;                 ///< of everything that decides the case
  std::string resolved;               ///< the case as YAML, defaults written out
  std::vector<std::string> notes;     ///< where figures come from, warnings
  std::vector<std::string> uncosted;  ///< a sentence for each operator without a cost
  std::vector<PlanRecord> plans;      ///< the planned one first
  std::vector<PlanChoice> choices;    ///< what each way of choosing among its best plans picks
  std::vector<FrontPoint> front;      ///< Answer::front
  std::optional<LinksRecord> links;   ///< of the chosen plan, simulated with shared links
  std::optional<SlowRanks> slow;      ///< of the chosen plan, if what_if.slow was asked
  std::string bound_covers;           ///< what the lower bound holds for; "" = none
  friend bool operator==(const CaseRecord&, const CaseRecord&) = default;
};

}  // namespace pfeife
