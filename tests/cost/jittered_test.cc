// Estimates whose durations vary, against closed forms.
#include "planner/cost/estimate/jittered.h"

#include <gtest/gtest.h>

#include <cmath>

#include "planner/cost/estimate/estimator.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

struct Pipeline {
  StageCosts costs;
  Placement placement;
  Cluster cluster;
  DependencyGraph graph;

  std::vector<Nanoseconds> steps(const Jitter& jitter, std::size_t repetitions) const {
    return jittered_estimates(graph, costs, placement, cluster, jitter, repetitions);
  }
};

Pipeline pipeline(const ScheduleSpec& spec, Nanoseconds transfer = Nanoseconds{50'000}) {
  Pipeline made;
  made.costs = uniform_costs(spec.stages(), Nanoseconds{1'000'000}, Nanoseconds{900'000},
                             Nanoseconds{1'100'000}, transfer);
  made.placement = placement_for(spec);
  made.cluster = uniform_cluster(spec.ranks, DeviceKind{}, {1e9}, Nanoseconds{1000});
  made.graph =
      dependencies(lower(generate(spec), made.costs, made.placement), stage_graph(made.costs),
                   made.placement, {Queues::None, Links::Delay, false});
  return made;
}

// One rank computes one thing after the other: the step is the sum of its tasks, each with its
// factor.
TEST(JitteredEstimates, OfOneRankAreSums) {
  const Pipeline alone = pipeline({.family = "gpipe", .ranks = 1, .microbatches = 6});
  const Jitter jitter{.cv = 0.3, .seed = 4};
  const std::vector<Nanoseconds> steps = alone.steps(jitter, 40);
  const std::vector<Nanoseconds> times = slot_durations(alone.graph.slots, alone.costs);
  for (std::size_t run = 0; run < steps.size(); ++run) {
    Nanoseconds sum{0};
    for (std::size_t t = 0; t < alone.graph.size(); ++t)
      sum += JitterSource(jitter, run)
                 .vary(times[alone.graph.tasks[t].slot], t, alone.graph.tasks[t].kind);
    EXPECT_EQ(steps[run], sum) << run;
  }
}

// N forwards of a and N backwards of b: variance N cv^2 (a^2 + b^2). The sum of 128 is close to
// normal, so the 5th and 95th percentile lie 1.645 standard deviations from the mean; 2,000 draws
// are off by 0.047 of one (a standard deviation of the percentile).
TEST(JitteredEstimates, SpreadAsTheSumOfTheirTasks) {
  const Pipeline alone = pipeline({.family = "gpipe", .ranks = 1, .microbatches = 64});
  const double cv = 0.1, n = 64, a = 1e6, b = 2e6;
  const double deviation = cv * std::sqrt(n * (a * a + b * b));
  const std::vector<Nanoseconds> steps = alone.steps({.cv = cv, .seed = 1}, 2000);
  const auto off = [&](double p) {
    return (static_cast<double>(quantile(steps, p).count()) - n * (a + b)) / deviation;
  };
  EXPECT_NEAR(off(0.05), -1.645, 0.2);
  EXPECT_NEAR(off(0.5), 0, 0.15);
  EXPECT_NEAR(off(0.95), 1.645, 0.2);
}

// One chain of work, all of it slower or faster together: the step is the estimate times a
// log-normal factor of mean 1, whose logarithm has variance s^2 = ln(1 + drift^2) and mean -s^2 /
// 2; so its quantiles are exp(z s - s^2 / 2), z that of the normal distribution. It does not narrow
// as the step has more actions. 4,000 draws: a percentile is off by 0.034 s (a standard deviation).
TEST(JitteredEstimates, CommonFactorScalesAWholeChain) {
  const double drift = 0.05, s = std::sqrt(std::log(1 + drift * drift));
  for (const std::size_t microbatches : {2, 64}) {
    const Pipeline alone = pipeline({.family = "gpipe", .ranks = 1, .microbatches = microbatches});
    const double whole =
        static_cast<double>(step_time(std::get<Trace>(estimate(alone.graph, alone.costs))).count());
    const std::vector<Nanoseconds> steps = alone.steps({.cv = 0, .seed = 2, .drift = drift}, 4000);
    for (const auto& [p, z] : {std::pair{0.05, -1.6449}, {0.5, 0.0}, {0.95, 1.6449}})
      EXPECT_NEAR(std::log(static_cast<double>(quantile(steps, p).count()) / whole),
                  z * s - s * s / 2, 0.15 * s)
          << p;
  }
}

// Through a pipeline without transfers that take time, every path scales with the common factor, so
// the longest does, whatever the schedule, but for rounding each task.
TEST(JitteredEstimates, CommonFactorScalesEveryScheduleAlike) {
  const Jitter jitter{.cv = 0, .seed = 5, .drift = 0.1};
  for (const ScheduleSpec& spec : search_set(4, 8, std::vector<std::size_t>{1, 2})) {
    const Pipeline made = pipeline(spec, Nanoseconds{0});
    const double whole =
        static_cast<double>(step_time(std::get<Trace>(estimate(made.graph, made.costs))).count());
    const std::vector<Nanoseconds> steps = made.steps(jitter, 5);
    for (std::size_t run = 0; run < steps.size();
         ++run) {  // an optimizer's step varies by it alone
      const Nanoseconds scaled =
          JitterSource(jitter, run).vary(Nanoseconds{std::llround(whole)}, 0, TaskKind::Optimizer);
      EXPECT_NEAR(static_cast<double>(steps[run].count()), static_cast<double>(scaled.count()),
                  static_cast<double>(made.graph.size()))
          << spec.family;
    }
  }
}

TEST(JitteredEstimates, WithoutVariationAreTheEstimate) {
  for (const ScheduleSpec& spec : search_set(4, 8, std::vector<std::size_t>{1, 2})) {
    const Pipeline made = pipeline(spec);
    const Nanoseconds estimated = step_time(std::get<Trace>(estimate(made.graph, made.costs)));
    EXPECT_EQ(made.steps({.cv = 0, .seed = 3}, 17), std::vector<Nanoseconds>(17, estimated))
        << spec.family;
  }
}

TEST(Quantile, IsTheNearestRank) {
  const std::vector<Nanoseconds> times{Nanoseconds{40}, Nanoseconds{10}, Nanoseconds{30},
                                       Nanoseconds{20}};
  EXPECT_EQ(quantile(times, 0), Nanoseconds{10});
  EXPECT_EQ(quantile(times, 0.25), Nanoseconds{10});
  EXPECT_EQ(quantile(times, 0.5), Nanoseconds{20});
  EXPECT_EQ(quantile(times, 0.51), Nanoseconds{30});
  EXPECT_EQ(quantile(times, 1), Nanoseconds{40});
}

}  // namespace
}  // namespace pfeife
