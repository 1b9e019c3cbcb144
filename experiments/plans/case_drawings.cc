#include "experiments/plans/case_drawings.h"

#include <algorithm>
#include <tuple>

#include "experiments/plans/case_record.h"
#include "experiments/plans/covering_bound.h"
#include "experiments/plans/plan_figures.h"
#include "planner/io/experiment/experiment_config.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layer_title.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/plan.h"
#include "planner/ir/result/result_engine.h"
#include "plots/report/packed.h"
#include "plots/timeline/pictures.h"
#include "plots/timeline/timeline.h"

namespace pfeife {
namespace {

/// Times on the device kind of each layer's rank, without overheads of stages. What several layers
/// use or save counts for the first of them.
Ribbon layer_ribbon(const Layers& layers, const Cluster& cluster, const Plan& plan) {
  Ribbon ribbon{.name = {}, .rank_of_stage = plan.placement.rank_of_stage, .layers = {}};
  for (std::size_t s = 0; s < plan.partition.stages(); ++s) {
    const std::size_t kind = cluster.kind_of_device[plan.placement.device(StageId{s}).index()];
    for (std::size_t l = plan.partition.begin(s); l < plan.partition.end(s, layers.size()); ++l) {
      const LayerTimes& times = layers.layers[l].times.at(kind);
      ribbon.layers.push_back({.name = layer_title(layers.layers[l]),
                               .stage = s,
                               .time = times.forward + times.backward_input + times.backward_weight,
                               .held = {},
                               .saved = layers.layers[l].saved});
    }
  }
  for (const LayerParameter& parameter : layers.parameters)
    if (!parameter.users.empty())
      ribbon.layers[parameter.users.front().index()].held +=
          parameter.bytes + parameter.gradient + parameter.state;
  for (const LayerStorage& storage : layers.storages)
    if (!storage.savers.empty())
      ribbon.layers[storage.savers.front().index()].saved += storage.bytes;
  return ribbon;
}

/// Both predictions look the same: no event is shifted by more than 0.5 % of the step, which two
/// pictures side by side do not show.
bool look_alike(const Trace& a, const Trace& b) {
  const Nanoseconds visible = step_time(b) / 200;
  const auto is_near = [&](Nanoseconds x, Nanoseconds y) {
    return x - y <= visible && y - x <= visible;
  };
  return std::ranges::equal(a.events, b.events, [&](const Event& x, const Event& y) {
    return is_near(x.start, y.start) && is_near(x.end, y.end);
  });
}

/// The traces of a plan that are worth a panel each.
std::vector<Trace> drawn_traces(const Evaluation& plan) {
  std::vector<Trace> traces = traces_of(plan);
  if (traces.size() > 1 && plan.simulated && look_alike(traces[0], traces[1]))
    traces.erase(traces.begin());
  return traces;
}

std::string timeline_of(const Evaluation& plan) {
  if (!plan.possible()) return "";
  return timeline_svg(drawn_traces(plan), {.title = schedule_name(row_of(plan)),
                                           .subtitle = plan.inputs.config->name,
                                           .memory_limits = plan.need.limit});
}

/// "vit_g14 on a100_sxm4_40gb_x8: devices=4,microbatches=8".
std::string title_of(const Request& config) {
  const auto stem = [&](const char* key, const std::filesystem::path& file) {
    return std::filesystem::path(file_name(config, key, file)).stem().string();
  };
  const std::string model = stem("model", config.model.file);
  const std::string cluster = stem("cluster", config.cluster);
  if (model.empty() || cluster.empty()) return config.name;
  return model + " on " + cluster + (config.name == model ? "" : ": " + config.name);
}

/// What speed-ups are over, as in tables: 1f1b, or the first baseline with a time of the engine.
const Evaluation* reference_of(const EvaluatedCase& evaluated, TraceSource engine) {
  const Evaluation* reference = nullptr;
  for (const Evaluation& baseline : evaluated.baselines)
    if (baseline.possible() && baseline.trace_of(engine) != nullptr &&
        (reference == nullptr || baseline.name == "1f1b"))
      reference = &baseline;
  return reference;
}

/// "1.36x of 1f1b"; nothing of the reference itself and of what another engine timed.
std::string speed_up_text(const Trace& trace, TraceSource engine, const Evaluation* reference) {
  if (reference == nullptr || trace.source != engine || step_time(trace).count() <= 0) return "";
  const Trace& beside = *reference->trace_of(engine);
  if (step_time(beside) == step_time(trace) && beside == trace) return "";
  return fixed(seconds(step_time(beside)) / seconds(step_time(trace)), 2) + "\u00d7 of " +
         reference->name;
}

}  // namespace

std::vector<Trace> traces_of(const Evaluation& plan) {
  std::vector<Trace> traces{plan.estimated};
  if (plan.simulated) traces.push_back(*plan.simulated);
  if (plan.measurement) traces.push_back(plan.measurement->trace);
  return traces;
}

std::string packed_traces(const EvaluatedCase& evaluated) {
  std::string json;
  for (const Evaluation* plan : kept_plans(evaluated)) {
    json += (json.empty() ? "" : ",") + plots::json_text(plan->name) + ":[" +
            plots::packed_trace(plan->predicted(), plan->costs);
    if (plan->measurement) json += "," + plots::packed_trace(plan->measurement->trace, plan->costs);
    json += "]";
  }
  return json.empty() ? "" : "{" + json + "}";
}

CaseDrawings drawings_of(const EvaluatedCase& evaluated) {
  CaseDrawings drawings{.timelines = {timeline_of(evaluated.planned[evaluated.chosen])}};
  for (const Evaluation& baseline : evaluated.baselines)
    drawings.timelines.push_back(timeline_of(baseline));
  if (evaluated.less_memory)
    drawings.timelines.push_back(timeline_of(evaluated.planned[*evaluated.less_memory]));
  std::vector<ComparedPlan> plans;
  std::vector<PlanMemory> memory;
  std::vector<const Evaluation*> kept = kept_plans(evaluated);
  if (kept.empty()) return drawings;
  // The order of the screen's table: the plan, then what fits, the fastest first.
  const TraceSource engine = compared_engine(evaluated);
  const Evaluation* const beside = reference_of(evaluated, engine);
  std::ranges::stable_sort(kept.begin() + 1, kept.end(), {}, [&](const Evaluation* plan) {
    const std::optional<Nanoseconds> time = time_of(row_of(*plan), engine);
    return std::tuple(!plan->fits(), !time, time);
  });
  for (const Evaluation* plan : kept) {
    const std::string schedule = schedule_name(row_of(*plan));
    const bool says_more = plan->name != plan->plan.spec.family;
    const std::string name = says_more ? plan->name + ": " + schedule : schedule;
    // One time axis: the engine that all of them have, and below it what was measured.
    std::vector<const Trace*> drawn{plan->trace_of(engine)};
    if (engine != TraceSource::Measured) drawn.push_back(plan->trace_of(TraceSource::Measured));
    for (const Trace* trace : drawn)
      if (trace != nullptr)
        plans.push_back({name, *trace, plan->fits(), speed_up_text(*trace, engine, beside),
                         trace->source == TraceSource::Measured  // bounds are on predictions
                             ? std::nullopt
                             : covering_bound(evaluated, *plan)});
    memory.push_back({name, memory_of(*plan, evaluated.work), plan->need.limit});
  }
  const PlansOptions options{.title = title_of(*evaluated.config)};
  drawings.plans = plans_svg(plans, options);
  drawings.rank_times = rank_times_svg(plans, options.width);
  drawings.memory = memory_bars_svg(memory, options.width);
  const Evaluation& first = *kept.front();
  Ribbon ribbon = layer_ribbon(*first.inputs.layers, *first.inputs.cluster, first.plan);
  ribbon.name = memory.front().name;
  drawings.partition = partition_svg(ribbon, options.width);
  if (evaluated.faster_links) drawings.links = link_loads_svg(*first.simulated, options.width);
  return drawings;
}

}  // namespace pfeife
