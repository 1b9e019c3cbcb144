// A plan of a case and all that is known of it: the one value that the record, the plan's folder,
// the drawings and the choice among plans are made from.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/io/results/measurement_file.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/request/request.h"
#include "planner/ir/result/contestant.h"
#include "planner/ir/result/priced.h"

namespace pfeife {

/// How a plan came about.
enum class Origin { Search, Reference, PlanFile, ScheduleFile, Baseline };

/// Percentiles of the step time of many runs whose durations vary.
struct Spread {
  Nanoseconds p5{0}, median{0}, p95{0};
};

/// What plans of a case are made for. Borrowed: must outlive the plans.
struct CaseInputs {
  const Request* config = nullptr;
  const Layers* layers = nullptr;
  const Cluster* cluster = nullptr;
  /// If they are others: those that the plan is made for (plan_with: published).
  const Layers* published_layers = nullptr;
  const Cluster* published_cluster = nullptr;
  /// plan.yaml of other cases whose plans are taken if they are faster, with the cases' names.
  std::vector<std::pair<std::string, std::filesystem::path>> handed = {};
};

/// Others keep pointers into it: let no vector of evaluations grow after that.
struct Evaluation : Contestant {  ///< its name is also that of its folder
  CaseInputs inputs;
  Origin origin = Origin::Search;
  std::optional<Priced> choice;  ///< what `plan` was made of; empty if it is given
  std::optional<Spread> estimated_spread, simulated_spread;  ///< with jitter
  std::optional<Measurement> measurement;
  double others = 0;                ///< as in MeasuredRun
  std::optional<Nanoseconds> anew;  ///< estimate with costs measured during the run
  std::string measure_failure;      ///< why there is none; "" if it was not asked for

  /// The engine's trace of the plan; nullptr = there is none.
  const Trace* trace_of(TraceSource engine) const;
};

/// The name of the case's own plan, beside its baselines.
inline constexpr const char* kPlanned = "planned";

/// Prices the choices in `plan` (priced_plan() of planner/cost), with percentiles if the config has
/// jitter. Errors: RuntimeFault if its schedule cannot run.
Evaluation estimated_plan(const CaseInputs& inputs, Origin origin, std::string name, Plan plan,
                          bool lowered);
/// What the search has chosen, with the costs and rows that it found.
Evaluation estimated_plan(const CaseInputs& inputs, Origin origin, std::string name,
                          const Priced& planned);

/// No plan of that name can be; `spec`: the schedule that was asked for.
Evaluation no_plan(const CaseInputs& inputs, Origin origin, std::string name, std::string reason,
                   const ScheduleSpec& spec = {});

/// The trace of a simulation as the plan's own, with memory and loads of links.
void store_simulated(Trace trace, Evaluation& plan);

/// Simulates every possible plan whose config asks for it and that is not simulated yet, with
/// `workers` processes. Errors: RuntimeFault.
void simulate_plans(std::span<Evaluation* const> plans, std::size_t workers);

/// The 95th percentile of the best engine that has one.
std::optional<Nanoseconds> p95(const Evaluation& plan);

/// What plans are chosen by that are to be chosen by `select_by`: the next best that all of them
/// have, p95 before the simulation before the estimate.
SelectBy compared_by(std::span<const Evaluation> planned, SelectBy select_by);
/// The plan's time of that kind, which it must have.
Nanoseconds time_by(const Evaluation& plan, SelectBy by);

/// What plans are chosen by, with that time.
PlanMerits merits_by(const Evaluation& plan, SelectBy by);

/// The one to choose among planned ones by `select_by`, as compared_by() has it: taken_plan().
std::size_t select(std::span<const Evaluation> planned, SelectBy select_by, const PlanRule& rule);
/// The plan that the rule takes where nearly as fast counts as fast, if it fills its fullest device
/// at least 10 % less than `chosen`.
std::optional<std::size_t> with_less_memory(std::span<const Evaluation> planned, SelectBy select_by,
                                            const PlanRule& rule, std::size_t chosen);
inline constexpr double kMuchLessMemory = 0.1;

}  // namespace pfeife
