#include "experiments/measure/calibrated.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>

#include "experiments/measure/calibrated_parts.h"
#include "planner/cost/estimate/priced_plan.h"
#include "planner/inputs/plan_inputs.h"
#include "planner/inputs/profiled_stage.h"
#include "planner/inputs/read_layers.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/files/yaml.h"
#include "planner/io/model/profile_file.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// The key of the latency of the ways over a link, if they have one of their own: their route's,
/// which holds for the whole way.
std::optional<std::string> latency_key(const std::filesystem::path& file, const std::string& link) {
  const YamlDocument document = YamlDocument::read(file);
  const auto routes = document.root().find("routes");
  std::optional<std::string> key;
  for (std::size_t r = 0; routes && r < routes->items().size(); ++r) {
    const YamlNode route = routes->items()[r];
    const std::vector<YamlNode> over = route.at("over").items_or_self();
    const auto is_link = [&](const YamlNode& node) { return node.as_string() == link; };
    if (std::ranges::none_of(over, is_link)) continue;
    if (key || (over.size() > 1 && !route.find("latency"))) return std::nullopt;  // which one?
    key = fmt::format("routes[{}].latency", r);
  }
  return key;
}

/// Whether a cluster file says the latency of the ways over a link by one figure: the link is in
/// one route, which has a latency, or has none and leads over nothing else.
bool has_own_latency(const std::filesystem::path& file, const std::string& link) {
  return latency_key(file, link).has_value();
}

/// `file` with these gemm_efficiency curves of `kind` ([precision]) and with bandwidths and
/// latencies ([link]) in the place of its own, and a note on each. Errors: ConfigError.
std::string calibrated_cluster(const std::filesystem::path& file, const std::string& kind,
                               const std::map<std::string, CalibratedCurve>& curves,
                               const std::map<std::string, CalibratedLink>& links) {
  Replaced replaced;
  std::vector<YamlValue> notes;
  for (const std::string& line : read_cluster(file).notes) notes.push_back(yaml_string(line));
  const auto replace = [&](std::string key, YamlValue value, std::string note) {
    replaced.emplace_back(std::move(key), std::move(value));
    notes.push_back(yaml_string(std::move(note)));
  };
  for (const auto& [precision, found] : curves) {
    std::vector<YamlValue> points;
    for (const EfficiencyCurve::Point& point : found.curve.points)
      points.push_back(
          yaml_sequence({yaml_amount(point.work), yaml_scalar(shortest(point.fraction))}));
    replace("device_kinds." + kind + ".gemm_efficiency." + precision,
            yaml_sequence(std::move(points)),
            fmt::format("gemm_efficiency of {}: from {} products of {} steps of a traced run, "
                        "{:+.1f} % on {} steps held out",
                        precision, found.products, found.steps, 100 * found.after, found.held_out));
  }
  for (const auto& [link, found] : links) {
    std::vector<YamlValue> points;
    for (const BandwidthCurve::Point& point : found.curve.points)
      points.push_back(yaml_sequence({yaml_amount(point.size), yaml_amount(point.rate)}));
    replace("links." + link + ".bandwidth", yaml_sequence(std::move(points)),
            fmt::format("bandwidth of {}: from {} messages of a traced run, {} held out", link,
                        found.messages, found.held_out));
    if (!found.latency) continue;
    const auto key = latency_key(file, link);
    PFEIFE_CHECK(key, link, " has no latency of its own");
    replace(*key, yaml_amount(*found.latency),
            fmt::format("latency of {}: of the same messages, {} sizes", link,
                        found.curve.points.size()));
  }
  replaced.emplace_back("notes", yaml_sequence(std::move(notes)));
  const std::string text = cluster_text(file, replaced);
  parse_cluster(text, file.string());
  return text;
}

/// The TimeParts that profilers see.
constexpr auto number(TimePart part) { return static_cast<std::size_t>(part); }
constexpr std::size_t kForward = number(TimePart::Forward),
                      kInput = number(TimePart::BackwardInput),
                      kWeight = number(TimePart::BackwardWeight),
                      kOptimizer = number(TimePart::Optimizer), kParts = kOptimizer + 1;

/// What a stage's actions take, [stage][part].
using Times = std::vector<std::array<double, kParts>>;

/// The parts of an action.
std::vector<std::size_t> parts_of(Op op) {
  std::vector<std::size_t> parts;
  for (std::size_t part = 0; part < kParts; ++part)
    if (operation(op).times & bit(static_cast<TimePart>(part))) parts.push_back(part);
  return parts;
}

/// The predicted times without the overhead that the device adds to each action.
Times predicted_times(const StageCosts& costs, const Placement& placement, const DeviceKind& kind) {
  Times times;
  std::vector<bool> seen(placement.ranks());
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    const StageCost& cost = costs.stages[s];
    const std::size_t rank = placement.rank_of_stage[s].index();
    const Nanoseconds once = seen[rank] ? Nanoseconds{0} : kind.iteration_overhead;
    seen[rank] = true;
    const auto ns = [](Nanoseconds time) { return static_cast<double>(time.count()); };
    times.push_back({ns(cost.forward - kind.stage_overhead),
                     ns(cost.backward_input - kind.stage_overhead), ns(cost.backward_weight),
                     ns(cost.optimizer - once)});
  }
  return times;
}

/// Overheads that are in the measured time of these parts.
double overhead_of(const std::vector<std::size_t>& parts, const DeviceKind& kind) {
  const bool only_weight = std::ranges::find(parts, kWeight) == parts.begin() && parts.size() == 1;
  const bool optimizer = parts.front() == kOptimizer;
  return only_weight || optimizer ? 0 : static_cast<double>(kind.stage_overhead.count());
}

/// [stage][part] measured over predicted, from the even steps.
Times measured_ratios(const DependencyGraph& graph, const ObservedRun& run, const Times& predicted,
                      const DeviceKind& kind) {
  // [stage][part][step]: the sum of ratios, and how many.
  struct Sum {
    double ratios = 0, count = 0;
  };
  std::vector<std::array<std::map<std::size_t, Sum>, kParts>> sums(predicted.size());
  for (std::size_t k = 0; k < run.steps.size(); k += 2)
    for (std::size_t t = 0; t < graph.size(); ++t) {
      const Task& task = graph.tasks[t];
      if (task.kind == TaskKind::Optimizer ? !run.optimizer : task.kind != TaskKind::Compute)
        continue;
      const Event& event = run.steps[k].events[t];
      double time = static_cast<double>((event.end - event.start).count()), all = 0;
      std::vector<std::pair<std::size_t, std::size_t>> parts;
      for_each_action(task.cell, [&](const Action& action) {
        const std::vector<std::size_t> action_parts = parts_of(action.op);
        if (!action_parts.empty()) time -= overhead_of(action_parts, kind);
        for (const std::size_t part : action_parts) {
          parts.emplace_back(action.stage.index(), part);
          all += predicted[action.stage.index()][part];
        }
      });
      if (all <= 0) continue;
      for (const auto& [stage, part] : parts) {
        Sum& sum = sums[stage][part][k];
        sum.ratios += std::max(time, 0.0) / all, ++sum.count;
      }
    }
  Times ratios;
  for (const auto& of_stage : sums) {
    auto& stage = ratios.emplace_back();
    for (std::size_t part = 0; part < kParts; ++part) {
      std::vector<double> means;
      for (const auto& [step, sum] : of_stage[part]) means.push_back(sum.ratios / sum.count);
      stage[part] = means.empty() ? 1 : middle(std::move(means));
    }
  }
  return ratios;
}

Nanoseconds scaled(Nanoseconds time, double ratio) {
  return Nanoseconds{std::llround(static_cast<double>(time.count()) * ratio)};
}

void scale(Profile& profile, const Layers& layers, const Partition& partition,
           const Times& ratios) {
  for (std::size_t s = 0; s < ratios.size(); ++s)
    for (std::size_t l = partition.begin(s); l < partition.end(s, layers.size()); ++l)
      for (const NodeId n : layers.layers[l].nodes) {
        NodeProfile& node = profile.nodes[n.index()];
        node.forward = scaled(node.forward, ratios[s][kForward]);
        node.backward_input = scaled(node.backward_input, ratios[s][kInput]);
        node.backward_weight = scaled(node.backward_weight, ratios[s][kWeight]);
        node.forward_spread = node.backward_input_spread = node.backward_weight_spread = {};
      }
  for (std::size_t p = 0; p < layers.parameters.size(); ++p) {
    std::size_t stage = 0;
    if (!layers.parameters[p].users.empty())
      while (layers.parameters[p].users.front().index() >= partition.end(stage, layers.size()))
        ++stage;
    ParameterProfile& parameter = profile.parameters[p];
    parameter.optimizer = scaled(parameter.optimizer, ratios[stage][kOptimizer]);
  }
}

Nanoseconds compute_of(const Trace& trace) {
  Nanoseconds sum{0};
  for (const Event& event : trace.events)
    if (event.kind == TaskKind::Compute || event.kind == TaskKind::Optimizer)
      sum += event.end - event.start;
  return sum;
}

Nanoseconds median_of_odd(const std::vector<Trace>& steps, Nanoseconds (*figure)(const Trace&)) {
  std::vector<double> values;
  for (std::size_t k = 1; k < steps.size(); k += 2)
    values.push_back(static_cast<double>(figure(steps[k]).count()));
  return Nanoseconds{std::llround(middle(std::move(values)))};
}

const DeviceKind& only_kind(const RunOfPlan& observed, const std::filesystem::path& file) {
  const Cluster& cluster = observed.inputs.cluster;
  if (cluster.kinds.size() != 1)
    throw ConfigError({file.string()},
                      "the plan's cluster has several kinds of devices; a profile is of one");
  return cluster.kinds.front();
}

/// `messages`: links have the whole times of messages, and stages what follows a wait.
CalibratedProfile calibrated_profile(const RunOfPlan& observed, const ModelFiles& files,
                                     const DeviceKind& kind, const Cluster& cluster,
                                     bool messages) {
  const Plan& plan = observed.plan;
  GraphProfile found = graph_profile(files, model_use(plan), kind);
  const Times predicted = predicted_times(observed.costs, plan.placement, kind);
  const Times ratios = measured_ratios(observed.graph, observed.run, predicted, kind);
  scale(found.profile, observed.inputs.layers, plan.partition, ratios);
  CalibratedProfile calibrated{.steps = (observed.run.steps.size() + 1) / 2,
                               .held_out = observed.run.steps.size() / 2};
  found.profile.origin =
      fmt::format("{}; then by {} measured steps of {} stages, from traces: {}",
                  found.profile.origin, calibrated.steps, ratios.size(), observed.files.front());
  found.profile.source = FigureSource::Measured;
  found.profile.variation.reset();
  if (messages) found.profile.message_overhead.reset();
  calibrated.text = profile_text(with_stage(found.profile), found.graph);
  const auto whole = [&](const Trace& trace) {
    return observed.run.optimizer ? trace : without_optimizer(observed.graph, trace);
  };
  const Trace before = whole(observed.estimated);
  const Layers layers = layers_of(found, plan.linear_order);
  const Trace after =
      whole(std::get<PricedPlan>(priced_plan(plan, true, layers, cluster)).estimated);
  calibrated.step_before = step_time(before), calibrated.compute_before = compute_of(before);
  calibrated.step_after = step_time(after), calibrated.compute_after = compute_of(after);
  calibrated.step = median_of_odd(observed.run.steps, [](const Trace& t) { return step_time(t); });
  calibrated.compute = median_of_odd(observed.run.steps, compute_of);
  return calibrated;
}

std::map<std::string, CalibratedCurve> curves_of(const RunOfPlan& run, const DeviceKind& kind) {
  std::map<std::string, std::vector<ObservedProduct>> products;
  for (const std::string& file : run.files)
    for (ObservedProduct& product : read_products(file))
      products[product.precision].push_back(std::move(product));
  std::map<std::string, CalibratedCurve> curves;
  for (const auto& [precision, observed] : products) {
    // Products of floats run in TF32 if the plan does.
    const bool tf32 = precision == "fp32" && run.plan.training.precision == Precision::Tf32;
    const std::string key = tf32 ? "tf32" : precision;
    if (!kind.peak.contains(key)) continue;
    if (const auto found = calibrated_curve(observed, key, kind)) curves.emplace(key, *found);
  }
  return curves;
}

}  // namespace

Calibrated calibrate_by_traces(const std::filesystem::path& named,
                               std::span<const std::filesystem::path> traces) {
  const RunOfPlan observed = run_of_plan(named, traces);
  const Plan& plan = observed.plan;
  const DeviceKind& kind = only_kind(observed, observed.file);
  if (plan.activations.recomputes())
    throw ConfigError({observed.file.string()},
                      "the plan recomputes, so that a backward contains a forward; calibrate by a "
                      "run without recomputation");
  if (plan.files->replicas.count > 1)
    throw ConfigError({observed.file.string()},
                      "the plan is of several replicas; calibrate by a run of one pipeline");
  if (observed.run.steps.size() < 2)
    throw ConfigError({observed.files.front()},
                      "has one step; calibration holds out every other one: record at least two");
  const Cluster& known = observed.inputs.cluster;
  const std::vector<ObservedMessage> messages =
      observed_messages(observed.graph, observed.run, observed.costs, plan.placement, known);
  const std::filesystem::path file =
      (observed.file.parent_path() / plan.files->cluster).lexically_normal();
  const ModelFiles files = model_files(plan, observed.file.parent_path());
  Calibrated calibrated{.kind = kind.name,
                        .curves = curves_of(observed, kind),
                        .links = calibrated_links(
                            messages, known, message_overhead(files),
                            [&](const std::string& link) { return has_own_latency(file, link); })};
  Cluster cluster = known;
  if (!calibrated.curves.empty() || !calibrated.links.empty())
    calibrated.cluster = calibrated_cluster(file, kind.name, calibrated.curves, calibrated.links);
  if (!calibrated.links.empty()) {
    const Cluster found = parse_cluster(calibrated.cluster, file.string());
    cluster.links = found.links, cluster.paths = found.paths;
    for (auto& [name, link] : calibrated.links)
      link.after = error_held_out(messages, name, cluster);
  }
  if (files.format == ModelFormat::Pt2)
    calibrated.profile =
        calibrated_profile(observed, files, kind, cluster, /*messages=*/!calibrated.links.empty());
  if (!calibrated.profile && calibrated.cluster.empty())
    throw ConfigError(
        {observed.files.front()},
        fmt::format(
            "the plan's model is no graph, so that the operators' own sizes are needed, and "
            "the traces have no matrix products with shapes in a precision that {} lists, nor "
            "messages that were alone on their way and waited for; record with profile(..., "
            "record_shapes=True) and call its step()",
            kind.name));
  return calibrated;
}

}  // namespace pfeife
