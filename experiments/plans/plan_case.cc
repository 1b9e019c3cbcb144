#include "experiments/plans/plan_case.h"

#include <chrono>

#include "experiments/plans/baselines.h"
#include "experiments/plans/case_limits.h"
#include "experiments/plans/case_problem.h"
#include "experiments/plans/covering_bound.h"
#include "experiments/plans/given_plans.h"
#include "experiments/plans/proven_bound.h"
#include "experiments/plans/searched_plans.h"
#include "planner/ir/request/check.h"
#include "planner/schedules/families.h"

namespace pfeife {

std::vector<std::string> family_list(const PlanSettings& plan, Mode mode) {
  const bool all = plan.families.front() == "all",
             grouped = all || plan.families.front() == "certified";
  std::vector<std::string> names;
  if (!grouped) {
    names = plan.families;
  } else if (plan.head != PlanSettings::Head::Shared) {
    for (const Family& family : families(mode))
      if (all ? !family.only_by_name : family.certified) names.push_back(family.name);
  }
  const auto shares = [](const std::string& name) { return family(name).head_barriers > 0; };
  if (plan.head != PlanSettings::Head::Last && std::ranges::none_of(names, shares))
    for (const Family& family : shared_head_families()) names.push_back(family.name);
  return names;
}

namespace {

/// The plan as it is, with the costs of `calibrated` in place of those that it was made for.
Evaluation priced_again(Evaluation evaluation, const CaseInputs& calibrated) {
  if (!evaluation.possible()) {
    evaluation.inputs = calibrated;
    return evaluation;
  }
  auto found = std::move(evaluation.plan.found);
  Evaluation priced = estimated_plan(calibrated, evaluation.origin, evaluation.name,
                                     std::move(evaluation.plan), true);
  priced.plan.found = std::move(found);
  return priced;
}

/// Keeps what was found with published figures, the choice among plans included, and prices it with
/// calibrated ones. The bound is of the published figures, so it says nothing of these.
void calibrate(const CaseInputs& given, EvaluatedCase& plans, const LayersOf& layers_of) {
  const Layers* sized = layers_of(*plans.settled);  // size and order as they were settled
  const CaseInputs calibrated{plans.settled.get(), sized ? sized : given.layers, given.cluster};
  const PlanSettings& wishes = plans.config->plan;
  std::swap(plans.planned.front(),
            plans.planned[select(plans.planned, SelectBy::Estimate, wishes.rule())]);
  plans.planned.resize(1);
  for (std::vector<Evaluation>* evaluations : {&plans.planned, &plans.baselines})
    for (Evaluation& evaluation : *evaluations)
      evaluation = priced_again(std::move(evaluation), calibrated);
  plans.planned.front().plan.bound.reset();
  plans.pool.forget_claims();
}

/// Times are 64-bit nanoseconds, 292 years: what a slip in a unit can exceed.
constexpr double kLongestStep = 1e9;  // seconds

/// Microbatches of the model's own size that a step has at most.
double most_microbatches(const Request& config, const Layers& layers) {
  if (layers.microbatches.empty()) return static_cast<double>(config.microbatches);
  double sum = 0;
  for (const MicrobatchScale& scale : layers.microbatches)
    sum += std::max(scale.linear, scale.attention);
  return sum;
}

/// Seconds of all that a step computes, on the slowest kind of device.
double seconds_of_work(const Request& config, const Layers& layers) {
  const double microbatches = most_microbatches(config, layers);
  double seconds = 0;
  for (const Layer& layer : layers.layers) {
    double slowest = 0;
    for (const LayerTimes& times : layer.times)
      slowest = std::max(slowest, pfeife::seconds(times.forward) * 2 +
                                      pfeife::seconds(times.backward_input) +
                                      pfeife::seconds(times.backward_weight) +
                                      5 * pfeife::seconds(config.simulation.launch_overhead));
    seconds += slowest * microbatches;
  }
  return seconds;
}

/// Seconds of all that a step may send, over the slowest link.
double seconds_of_transfers(const Request& config, const Layers& layers, const Cluster& cluster) {
  double slowest = 0, latency = 0;  // seconds a byte, seconds
  for (const Path& path : cluster.paths) {
    latency = std::max(latency, pfeife::seconds(path.latency));
    for (const BandwidthCurve::Point& point : path.bandwidth.points)
      slowest = std::max(slowest, 1 / point.rate.value);
  }
  double seconds = 0;
  for (const LayerValue& value : layers.values) {
    const auto bytes = static_cast<double>((value.bytes + value.gradient_bytes).value);
    seconds += most_microbatches(config, layers) * static_cast<double>(value.consumers.size()) *
               (bytes * slowest + 2 * latency);
  }
  for (const LayerParameter& parameter : layers.parameters)
    seconds += 2 * static_cast<double>(parameter.gradient.value) * slowest;
  return seconds;
}

void check_durations(const Request& config, const Layers& layers, const Cluster& cluster) {
  const double transfers = seconds_of_transfers(config, layers, cluster);
  if (seconds_of_work(config, layers) + transfers < kLongestStep) return;
  const bool links = transfers > kLongestStep / 2;
  throw RefusedWish("", std::string("a step could take more than 30 years; check the units of ") +
                            (links ? "the bandwidths and latencies in \"" +
                                         file_name(config, "cluster", config.cluster) +
                                         "\" and of the bytes in \""
                                   : "the times in \"") +
                            file_name(config, "model", config.model.file) + "\"");
}

}  // namespace

void check_case(const CaseInputs& inputs) {
  const Request* const config = inputs.config;
  const Cluster* const cluster = inputs.cluster;
  for (const DeviceId device : config->plan.devices)
    if (device.index() >= cluster->devices())
      throw RefusedWish("plan.devices", "plan.devices: device " + to_string(device) +
                                            " is not in the cluster, which has " +
                                            std::to_string(cluster->devices()) + " (0 to " +
                                            std::to_string(cluster->devices() - 1) + ")");
  for (const DeviceId device : devices_of(*config))
    if (config->plan.reserve && memory_limit(*config, *cluster, device) <= Bytes{0})
      throw RefusedWish("plan.reserve", "plan.reserve: it leaves nothing of the " +
                                            to_string(cluster->kind(device).memory) +
                                            " of device " + to_string(device) + "; reserve less");
  check_durations(*config, *inputs.layers, *cluster);
  if (config->plan.searched())
    searched_schedules(*config, *inputs.layers);
  else
    check_given(inputs);
}

EvaluatedCase plan_case(const CaseInputs& inputs, const LayersOf& layers_of, std::size_t keep,
                        std::size_t threads, const std::function<void(double)>& progress,
                        const std::function<void(const SearchStepDone&)>& after_step) {
  EvaluatedCase plans;
  plans.config = inputs.config;
  const bool published = inputs.published_cluster != nullptr;
  const LayersOf layers_of_plan = [&](const Request& config) {
    Request of_plan = config;
    if (published) of_plan.calibration.clear();
    return layers_of ? layers_of(of_plan) : nullptr;
  };
  const auto started = std::chrono::steady_clock::now();
  CaseInputs settled = inputs;
  if (published) settled = {inputs.config, inputs.published_layers, inputs.published_cluster};
  if (inputs.config->plan.searched()) {
    settled = search_plans(settled, layers_of_plan,
                           {.keep = keep,
                            .iterations = inputs.config->plan.iterations,
                            .threads = threads,
                            .certificate = true,
                            .progress = progress,
                            .after_step = after_step},
                           plans);
    raise_to_proven(plans, threads);
  } else {
    plans.settled = std::make_shared<const Request>(*inputs.config);
    settled.config = plans.settled.get();
    plans.planned.push_back(given_plan(settled));
  }
  plans.pool.spend(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  for (Evaluation& planned : plans.planned) {
    planned.plan.bound = bound_for(plans, planned);
    planned.plan.found["candidates"] = std::to_string(plans.answer().candidates);
  }
  for (const BaselineSettings& settings : inputs.config->baselines)
    plans.baselines.push_back(baseline(settings, settled));
  if (published) calibrate(inputs, plans, layers_of);
  return plans;
}

}  // namespace pfeife
