// Study: how far simulated pipelines are from real ones on this machine's processors. Usage:
// study_accuracy_cpu CONFIG FOLDER [ROUNDS]. What is compared and what came out: README.md beside
// this file.
//
// Every point is measured once a round, so a slow minute of the machine hits all of them; a point's
// figure is the median over the steps of all rounds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "experiments/evaluate.h"
#include "experiments/measure.h"
#include "experiments/measured_inputs.h"
#include "experiments/record.h"
#include "experiments/run_main.h"
#include "experiments/table.h"
#include "planner/io/atomic_file.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

constexpr double kMiBytes = 1024.0 * 1024;

struct Point {
  EvaluatedCase evaluated;         ///< one plan
  std::vector<Nanoseconds> steps;  ///< that count, of all rounds
  std::vector<Bytes> peak;         ///< [rank] highest of all rounds

  Evaluation& plan() { return evaluated.planned.front(); }
  Nanoseconds quantile(double p) const {
    std::vector<Nanoseconds> sorted = steps;
    std::ranges::sort(sorted);
    const auto rank = static_cast<std::size_t>(std::ceil(p * static_cast<double>(sorted.size())));
    return sorted.at(rank > 0 ? rank - 1 : 0);
  }
};

ExperimentRules rules() {
  ExperimentRules rules;
  for (const Family& family : families()) rules.families.push_back(family.name);
  rules.devices = [](const InputFile&) { return std::size_t{2}; };
  rules.ranks_and_microbatches = [](const PlanSettings&) -> std::pair<std::size_t, std::size_t> {
    throw ConfigError({}, "this study searches its plans");
  };
  return rules;
}

Point planned(CaseConfig& config, Inputs& inputs) {
  const Layers& layers = inputs.layers(config);
  const Cluster& cluster = inputs.cluster(config.cluster);
  check_case(config, layers, cluster);
  const auto layers_of = [&](const CaseConfig& other) { return inputs.other_layers(other); };
  CasePlans plans = plan_case(config, layers, cluster, layers_of, 1, 1);
  Point point;
  point.evaluated.config = &config;
  point.evaluated.planned.push_back(
      estimate_candidate(config, layers, cluster, std::move(plans.planned.front())));
  if (!config.simulation.jitter)
    throw ConfigError(config.where, "the profile is of an older program: remove it");
  if (!point.plan().possible())
    throw ConfigError(config.where, config.name + ": " + point.plan().candidate.reason);
  return point;
}

void run_round(std::vector<Point>& points, const std::filesystem::path& folder) {
  for (Point& point : points) {
    Evaluation& plan = point.plan();
    const std::filesystem::path place = folder / plan.config->name;
    measure_plan(plan, place / "planned");
    if (!plan.measurement) throw RuntimeFault(plan.config->name + ": " + plan.measure_failure);
    for (const MeasuredStep& step : plan.measurement->steps)
      if (step.counts) point.steps.push_back(step.time);
    point.peak.resize(plan.peak_memory.size());
    for (std::size_t r = 0; r < plan.measurement->peak_memory.size(); ++r)
      point.peak[r] = std::max(point.peak[r], plan.measurement->peak_memory[r]);
    std::cerr << "." << std::flush;
  }
}

struct Totals {
  double sum = 0, largest = 0, memory_sum = 0, memory_largest = 0;
  std::size_t inside = 0, steps = 0, memories = 0;
};

void print_point(Point& point, Totals& totals) {
  const Evaluation& plan = point.plan();
  const Nanoseconds simulated = step_time(*plan.simulated), measured = point.quantile(0.5);
  const double error = relative_error(milliseconds(simulated), milliseconds(measured));
  totals.sum += std::abs(error);
  totals.largest = std::max(totals.largest, std::abs(error));
  std::size_t inside = 0;
  for (const Nanoseconds step : point.steps)
    inside += plan.simulated_spread->p5 <= step && step <= plan.simulated_spread->p95 ? 1 : 0;
  totals.inside += inside;
  totals.steps += point.steps.size();
  std::string memory;
  for (std::size_t r = 0; r < point.peak.size(); ++r) {
    const double off = relative_error(static_cast<double>(plan.peak_memory[r].value),
                                      static_cast<double>(point.peak[r].value));
    totals.memory_sum += std::abs(off);
    totals.memory_largest = std::max(totals.memory_largest, std::abs(off));
    ++totals.memories;
    memory += fmt::format("  {:7.2f}/{:7.2f} {:+6.2f}",
                          static_cast<double>(plan.peak_memory[r].value) / kMiBytes,
                          static_cast<double>(point.peak[r].value) / kMiBytes, 100 * off);
  }
  std::string cuts;
  for (const std::int32_t cut : plan.candidate.partition.cuts) cuts += " " + std::to_string(cut);
  const ScheduleSpec& spec = plan.candidate.spec;
  fmt::print(
      "{:<16} {:>2} {:>3} {:>2}  {:<12} {:>9} {:>9} {:>9}-{:<9} {:>9} {:>+7.2f} {:>3}/{:<3}{}\n",
      spec.family, spec.loops, plan.layers->microbatch_size, spec.microbatches, cuts,
      milliseconds_text(step_time(plan.estimated)), milliseconds_text(simulated),
      milliseconds_text(plan.simulated_spread->p5), milliseconds_text(plan.simulated_spread->p95),
      milliseconds_text(measured), 100 * error, inside, point.steps.size(), memory);
}

/// Pairs of points in the same order in both columns, and those that cannot be told apart: whose
/// measured ranges (p5 to p95) overlap.
void print_order(const std::vector<Point>& points) {
  std::size_t kept = 0, pairs = 0, clear = 0, clear_kept = 0;
  for (std::size_t i = 0; i < points.size(); ++i)
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      const Point &a = points[i], &b = points[j];
      // Only plans for the same samples a step compete.
      const auto samples = [](const Point& p) {
        const Evaluation& plan = p.evaluated.planned.front();
        return plan.layers->microbatch_size *
               static_cast<std::int64_t>(plan.candidate.spec.microbatches);
      };
      if (samples(a) != samples(b) ||
          a.evaluated.config->model.file.path != b.evaluated.config->model.file.path)
        continue;
      const bool same =
          (step_time(*a.evaluated.planned[0].simulated) <
           step_time(*b.evaluated.planned[0].simulated)) == (a.quantile(0.5) < b.quantile(0.5));
      const bool apart = a.quantile(0.95) < b.quantile(0.05) || b.quantile(0.95) < a.quantile(0.05);
      ++pairs;
      kept += same ? 1 : 0;
      clear += apart ? 1 : 0;
      clear_kept += apart && same ? 1 : 0;
    }
  const double tau =
      pairs > 0 ? 2.0 * static_cast<double>(kept) / static_cast<double>(pairs) - 1 : 0;
  fmt::print(
      "order: {} of {} pairs of plans for the same samples as predicted (Kendall's tau {:.2f}); of "
      "the {} whose measured p5-p95 do not overlap {}\n",
      kept, pairs, tau, clear, clear_kept);
}

void print_header() {
  constexpr const char* kLine =
      "{:<16} {:>2} {:>3} {:>2}  {:<12} {:>9} {:>9} {:>19} {:>9} {:>7} {:>7}  {}\n";
  fmt::print("\n");
  fmt::print(kLine, "", "", "", "", "", "step, ms", "step, ms", "step, ms", "step, ms", "error",
             "steps", "peak of each rank, MiB");
  fmt::print(kLine, "family", "V", "b", "N", "cuts", "estimated", "simulated", "p5-p95", "measured",
             "%", "inside", "predicted/measured, error %");
}

/// Of each profile.
void print_variation(const std::vector<Point>& points) {
  std::set<std::filesystem::path> shown;
  for (const Point& point : points) {
    const CaseConfig& config = *point.evaluated.config;
    if (!shown.insert(config.profile->path).second) continue;
    fmt::print("profile of {} samples: passes vary by {:.2f} %, steps as a whole by {:.2f} %\n",
               config.microbatch_size.value_or(1), 100 * config.simulation.jitter->cv,
               100 * config.simulation.jitter->drift);
  }
}

void print_totals(const std::vector<Point>& points, const Totals& totals) {
  fmt::print("\n{} points, {} steps measured on {}\n", points.size(), totals.steps, machine_line());
  fmt::print("step time, simulated against measured: mean error {:.2f} %, largest {:.2f} %\n",
             100 * totals.sum / static_cast<double>(points.size()), 100 * totals.largest);
  print_order(points);
  print_variation(points);
  fmt::print("steps within the simulated p5-p95: {:.1f} %\n",
             100.0 * static_cast<double>(totals.inside) / static_cast<double>(totals.steps));
  if (totals.memories > 0)
    fmt::print("peak memory: mean error {:.2f} %, largest {:.2f} %\n",
               100 * totals.memory_sum / static_cast<double>(totals.memories),
               100 * totals.memory_largest);
}

int run(int argc, char** argv) {
  if (argc < 3) throw ConfigError({}, "usage: study_accuracy_cpu CONFIG FOLDER [ROUNDS]");
  const std::filesystem::path folder = argv[2];
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 2;
  Inputs inputs;
  Experiment experiment = read_experiment(argv[1], {}, rules());
  place_measured_inputs(experiment, folder);
  check_measurable(experiment, inputs);
  make_measured_inputs(experiment, inputs, false, false);
  use_measured_variation(experiment);
  std::vector<Point> points;
  for (CaseConfig& config : experiment.cases) points.push_back(planned(config, inputs));
  std::vector<Evaluation*> plans;
  for (Point& point : points) plans.push_back(&point.plan());
  simulate_plans(plans, 2);
  for (Point& point : points) write_plans(folder / point.evaluated.config->name, point.evaluated);
  for (int round = 0; round < rounds; ++round) run_round(points, folder);
  print_header();
  Totals totals;
  for (Point& point : points) print_point(point, totals);
  print_totals(points, totals);
  return 0;
}

}  // namespace
}  // namespace pfeife

int main(int argc, char** argv) {
  return pfeife::run_main("study_accuracy_cpu", [&] { return pfeife::run(argc, argv); });
}
