#include "experiments/studies/accuracy_cpu/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/machine/machine.h"
#include "planner/ir/schedule/jitter.h"
#include "planner/ir/trace/median_interval.h"
#include "plots/screen/columns.h"

namespace pfeife {
namespace {

constexpr double kMiBytes = 1024.0 * 1024;

/// "1.3": half the width of the interval that has the median of the rounds with 95 %, per cent of
/// it.
std::string known_to(const Point& point) {
  std::vector<double> medians;
  for (const Nanoseconds round : point.rounds)
    medians.push_back(static_cast<double>(round.count()));
  const auto found = median_interval(std::move(medians));
  return found ? fmt::format("{:.1f}", 100 * found->half_width()) : "";
}

/// One of the two predictions of a point.
using Prediction = const Evaluation& (*)(const Point&);
const Evaluation& from_first(const Point& point) { return point.first(); }
const Evaluation& from_all(const Point& point) { return point.pooled; }

Nanoseconds measured(const Point& point) { return quantile(point.steps, 0.5); }

double error(const Evaluation& plan, const Point& point) {
  return relative_error(milliseconds(step_time(*plan.simulated)), milliseconds(measured(point)));
}
/// The error of the time in which ranks compute: what remains of the step's error are waits and
/// transfers.
double busy_error(const Evaluation& plan, const Point& point) {
  return relative_error(milliseconds(busy_time(*plan.simulated)),
                        milliseconds(quantile(point.busy, 0.5)));
}
double memory_error(const Point& point, std::size_t rank) {
  return relative_error(static_cast<double>(point.first().plan.peak_memory[rank].value),
                        static_cast<double>(point.peak[rank].value));
}
std::size_t inside(const Evaluation& plan, const Point& point) {
  const Spread& spread = *plan.simulated_spread;
  return static_cast<std::size_t>(std::ranges::count_if(
      point.steps, [&](Nanoseconds step) { return spread.p5 <= step && step <= spread.p95; }));
}

std::string memory_text(const Point& point) {
  std::string text;
  for (std::size_t r = 0; r < point.peak.size(); ++r)
    text += fmt::format("  {:7.2f}/{:7.2f} {:+6.2f}",
                        static_cast<double>(point.first().plan.peak_memory[r].value) / kMiBytes,
                        static_cast<double>(point.peak[r].value) / kMiBytes,
                        100 * memory_error(point, r));
  return text;
}

void print_header() {
  constexpr const char* kLine =
      "{:<16} {:>2} {:>2} {:>2}  {:<10} {:>8} {:>17} {:>8} {:>5} {:>17} {:>6} "
      "{:>6} {:>7} {:>7}  {}\n";
  fmt::print("\n");
  fmt::print(kLine, "", "", "", "", "", "step, ms", "", "", "+-", "", "error", "busy", "steps",
             "first", "peak of each rank, MiB");
  fmt::print(kLine, "family", "V", "b", "N", "cuts", "simul.", "p5-p95", "measured", "%", "p5-p95",
             "%", "error", "inside", "error", "predicted/measured, error %");
}

void print_point(const Point& point) {
  const Evaluation& plan = point.pooled;
  std::string cuts;
  for (const std::int32_t cut : plan.plan.partition.cuts)
    cuts += (cuts.empty() ? "" : " ") + std::to_string(cut);
  const auto range = [](Nanoseconds low, Nanoseconds high) {
    return milliseconds_text(low) + "-" + milliseconds_text(high);
  };
  const ScheduleSpec& spec = plan.plan.spec;
  fmt::print(
      "{:<16} {:>2} {:>2} {:>2}  {:<10} {:>8} {:>17} {:>8} {:>5} {:>17} {:>+6.1f} {:>+6.1f} "
      "{:>3}/{:<3} "
      "{:>+7.1f}{}\n",
      spec.family, spec.stages_per_rank, plan.inputs.layers->microbatch_size, spec.microbatches,
      cuts, milliseconds_text(step_time(*plan.simulated)),
      range(plan.simulated_spread->p5, plan.simulated_spread->p95),
      milliseconds_text(measured(point)), known_to(point),
      range(quantile(point.steps, 0.05), quantile(point.steps, 0.95)), 100 * error(plan, point),
      100 * busy_error(plan, point), inside(plan, point), point.steps.size(),
      100 * error(point.first(), point), memory_text(point));
}

/// Only plans of one model for the same samples a step compete.
bool compete(const Point& a, const Point& b) {
  const auto samples = [](const Point& p) {
    return p.first().inputs.layers->microbatch_size *
           static_cast<std::int64_t>(p.first().plan.spec.microbatches);
  };
  return samples(a) == samples(b) &&
         a.first().inputs.config->model.file == b.first().inputs.config->model.file;
}

/// After six rounds or more the interval of the ratios of their rounds says which is faster. After
/// fewer: their measured ranges (p5 to p95) do not overlap.
bool told_apart(const Point& a, const Point& b) {
  if (const auto longer = paired_difference(a.rounds, b.rounds))
    return longer->low > 0 || longer->high < 0;
  return quantile(a.steps, 0.95) < quantile(b.steps, 0.05) ||
         quantile(b.steps, 0.95) < quantile(a.steps, 0.05);
}

/// Pairs in the same order in both columns, and of those that can be told apart.
std::string order_text(const std::vector<Point>& points, Prediction prediction) {
  std::size_t kept = 0, pairs = 0, clear = 0, clear_kept = 0;
  for (std::size_t i = 0; i < points.size(); ++i)
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      const Point &a = points[i], &b = points[j];
      if (!compete(a, b)) continue;
      const bool same = (step_time(*prediction(a).simulated) <
                         step_time(*prediction(b).simulated)) == (measured(a) < measured(b));
      const bool apart = told_apart(a, b);
      ++pairs;
      kept += same ? 1 : 0;
      clear += apart ? 1 : 0;
      clear_kept += apart && same ? 1 : 0;
    }
  return fmt::format("{} of {}, of those apart {} of {}", kept, pairs, clear_kept, clear);
}

void print_totals(const char* name, const std::vector<Point>& points, Prediction prediction) {
  double sum = 0, bias = 0, largest = 0;
  std::size_t steps_inside = 0, steps = 0;
  for (const Point& point : points) {
    const double off = error(prediction(point), point);
    sum += std::abs(off);
    bias += off;
    largest = std::max(largest, std::abs(off));
    steps_inside += inside(prediction(point), point);
    steps += point.steps.size();
  }
  const auto count = static_cast<double>(points.size());
  fmt::print("{:<14} {:>10.2f} {:>+10.2f} {:>10.2f} {:>12.1f}  {}\n", name, 100 * sum / count,
             100 * bias / count, 100 * largest,
             100 * static_cast<double>(steps_inside) / static_cast<double>(steps),
             order_text(points, prediction));
}

/// A line for each profile.
void print_variation(const char* name, const std::vector<Point>& points, Prediction prediction) {
  std::set<std::filesystem::path> shown;
  for (const Point& point : points) {
    const Request& config = *prediction(point).inputs.config;
    if (!shown.insert(*config.model.profile).second) continue;
    fmt::print(
        "{}, {} samples a microbatch: passes vary by {:.2f} %, steps as a whole by {:.2f} %\n",
        name, config.training.microbatch_size.value_or(1), 100 * config.simulation.jitter->cv,
        100 * config.simulation.jitter->drift);
  }
}

void print_memory(const std::vector<Point>& points) {
  double sum = 0, largest = 0;
  std::size_t count = 0;
  for (const Point& point : points)
    for (std::size_t r = 0; r < point.peak.size(); ++r, ++count) {
      sum += std::abs(memory_error(point, r));
      largest = std::max(largest, std::abs(memory_error(point, r)));
    }
  if (count > 0)
    fmt::print("peak memory: mean error {:.2f} %, largest {:.2f} %\n",
               100 * sum / static_cast<double>(count), 100 * largest);
}

}  // namespace

void print_tables(const std::vector<Point>& points) {
  print_header();
  std::size_t steps = 0;
  for (const Point& point : points) {
    print_point(point);
    steps += point.steps.size();
  }
  fmt::print("\n{} points, {} steps measured on {}\n\n", points.size(), steps, machine_line());
  fmt::print("{:<14} {:>10} {:>10} {:>10} {:>12}  {}\n", "profile", "error, %", "bias, %",
             "largest, %", "inside, %", "pairs of plans in the predicted order");
  print_totals("all shares", points, from_all);
  print_totals("first share", points, from_first);
  print_variation("all shares", points, from_all);
  print_variation("first share", points, from_first);
  print_memory(points);
}

}  // namespace pfeife
