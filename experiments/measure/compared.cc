#include "experiments/measure/compared.h"

#include <map>

#include "planner/cost/estimate/priced_plan.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/files/open_file.h"
#include "planner/io/plan/plan_file.h"
#include "planner/io/results/chrome_trace.h"
#include "planner/io/traces/profile_reader.h"
#include "planner/ir/trace/trace_waits.h"
#include "planner/schedule_tool/certify.h"

namespace pfeife {
namespace {

using std::filesystem::path;

path existing_plan(const path& named) {
  const path file = plan_file(named);
  if (!is_there(file)) throw ConfigError({file.string()}, "there is no such plan");
  return file;
}

bool is_trace(const path& file) {
  const std::string name = file.filename().string();
  return name.ends_with(".json") || name.ends_with(".json.gz");
}

std::vector<path> trace_files(std::span<const path> named) {
  std::vector<path> files;
  for (const path& named_path : named) {
    if (!is_folder(named_path)) {
      files.push_back(named_path);
      continue;
    }
    const std::size_t before = files.size();
    for (const path& entry : entries_of(named_path))
      if (is_trace(entry)) files.push_back(entry);
    if (files.size() == before)
      throw ConfigError({named_path.string()}, "has no files that end in .json or .json.gz");
  }
  return files;
}

/// The plan with its costs, as the files make it that it names.
PricedPlan priced_as_files(const Plan& plan, const PlanInputs& inputs, const path& file) {
  if (const std::string other = tool::other_plan(plan, inputs); !other.empty())
    throw ConfigError({file.string()},
                      "the plan is not of the files that it names: " + other + "; plan again");
  return std::get<PricedPlan>(priced_plan(plan, true, inputs.layers, inputs.cluster));
}

/// The simulated trace beside the plan, in the order of tasks; none if it is not whole.
std::optional<Trace> simulated_beside(const path& plan, const DependencyGraph& graph) {
  const path file = plan.parent_path() / "trace.json";
  if (!is_there(file)) return std::nullopt;
  Trace read;
  try {
    read = read_trace(file, TraceSource::Simulated);
  } catch (const ConfigError&) {
    return std::nullopt;  // not simulated, or events were left out
  }
  std::map<std::pair<RankId, std::string>, const Event*> events;
  for (const Event& event : read.events) events[{event.rank, to_string(event.cell)}] = &event;
  Trace trace{.source = read.source, .ranks = graph.ranks};
  for (const Task& task : graph.tasks) {
    const auto event = events.find({task.rank, to_string(task.cell)});
    if (event == events.end()) return std::nullopt;
    trace.events.push_back(*event->second);
    trace.events.back().cell = task.cell;
    trace.events.back().waited_for.reset();
  }
  return trace;
}

Measurement measurement_of(const ObservedRun& run) {
  Measurement measurement;
  for (const Trace& step : run.steps) measurement.steps.push_back({true, step_time(step), 0});
  measurement.trace = run.steps[median_step(measurement.steps)];
  measurement.durations = median_durations(run.steps, measurement.steps);
  return measurement;
}

}  // namespace

RunOfPlan run_of_plan(const path& named, std::span<const path> traces,
                      const std::optional<Trace>& simulated) {
  RunOfPlan observed{.file = existing_plan(named)};
  const Plan plan = read_plan(observed.file);
  observed.inputs = read_plan_inputs(plan, observed.file.parent_path());
  static_cast<PricedPlan&>(observed) = priced_as_files(plan, observed.inputs, observed.file);
  observed.plan.files = plan.files;
  observed.graph = executed_graph(observed.plan, observed.costs);
  observed.simulated = simulated ? simulated : simulated_beside(observed.file, observed.graph);
  std::vector<ObservedRank> ranks;
  for (const path& trace : trace_files(traces)) {
    for (ObservedRank& rank : read_profile(trace, observed.files.size()))
      ranks.push_back(std::move(rank));
    observed.files.push_back(trace.string());
  }
  observed.run = observed_run(observed.graph, observed.predicted(), ranks);
  return observed;
}

Comparison compare_with_traces(const path& named, std::span<const path> traces,
                               const std::optional<Trace>& simulated) {
  RunOfPlan observed = run_of_plan(named, traces, simulated);
  Comparison comparison{std::move(static_cast<Contestant&>(observed)),
                        {},
                        std::move(observed.files),
                        std::move(observed.run),
                        {}};
  const DependencyGraph& graph = observed.graph;
  comparison.measurement = measurement_of(comparison.run);
  comparison.run.steps.clear();
  if (!comparison.run.optimizer) {
    comparison.estimated = without_optimizer(graph, comparison.estimated);
    if (comparison.simulated)
      *comparison.simulated = without_optimizer(graph, *comparison.simulated);
  }
  explain_waits(graph, comparison.estimated);
  if (comparison.simulated) explain_waits(graph, *comparison.simulated);
  comparison.lost = lost_time(graph, comparison.predicted(), comparison.measurement.trace);
  return comparison;
}

}  // namespace pfeife
