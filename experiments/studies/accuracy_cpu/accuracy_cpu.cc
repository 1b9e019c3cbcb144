// Study: how far simulated pipelines are from real ones on this machine's processors. Usage:
// study_accuracy_cpu CONFIG FOLDER [ROUNDS [SEED]]. What is compared and what came out: README.md
// beside this file.
//
// The machine drifts, so the study is made of rounds: in each, every model is profiled for a share
// and every plan runs for a share of its steps, in an order of its own.
#include <fmt/format.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>
#include <set>

#include "experiments/measure/measure.h"
#include "experiments/measure/measured_inputs.h"
#include "experiments/studies/accuracy_cpu/tables.h"
#include "planner/ir/basics/run_main.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

/// Steps of each kind that a model is profiled for in a round.
constexpr int kShare = 3;

ExperimentRules rules() {
  ExperimentRules rules;
  for (const Family& family : families()) rules.families.push_back(family.name);
  rules.devices = [](const CaseConfig&) { return std::size_t{2}; };
  rules.ranks_and_microbatches = [](const PlanSettings&) -> std::pair<std::size_t, std::size_t> {
    throw ConfigError({}, "this study searches its plans");
  };
  return rules;
}

/// One case of each profile.
std::vector<const CaseConfig*> profiled(const Experiment& experiment) {
  std::set<std::filesystem::path> seen;
  std::vector<const CaseConfig*> cases;
  for (const CaseConfig& config : experiment.cases)
    if (config.profile_measured && seen.insert(*config.model.profile).second)
      cases.push_back(&config);
  return cases;
}

/// The same cases with the profiles as they are now, whatever shares follow.
Experiment with_profiles_of_now(const Experiment& experiment) {
  Experiment copy = experiment;
  std::set<std::filesystem::path> copied;
  for (CaseConfig& config : copy.cases) {
    if (!config.profile_measured) continue;
    const std::filesystem::path from = *config.model.profile;
    config.model.profile->replace_filename("first-" + from.filename().string());
    if (copied.insert(from).second)
      std::filesystem::copy_file(from, *config.model.profile,
                                 std::filesystem::copy_options::overwrite_existing);
  }
  return copy;
}

void run_in_any_order(std::vector<std::function<void()>> items, std::mt19937_64& random) {
  std::ranges::shuffle(items, random);
  for (const auto& item : items) {
    item();
    std::cerr << "." << std::flush;
  }
}

/// The plans have to be known before they run, so the first round begins with its shares of the
/// profiles.
void run_rounds(std::vector<Point>& points, const std::vector<const CaseConfig*>& profiles,
                const std::filesystem::path& folder, int rounds, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::function<void()>> items;
    for (Point& point : points) items.emplace_back([&] { measure(point, folder); });
    if (round > 0)
      for (const CaseConfig* config : profiles)
        items.emplace_back([config] { profile_share(*config, kShare); });
    run_in_any_order(std::move(items), random);
  }
  std::cerr << "\n";
}

void simulate(std::vector<Point>& points, Evaluation& (*prediction)(Point&)) {
  std::vector<Evaluation*> plans;
  for (Point& point : points) plans.push_back(&prediction(point));
  simulate_plans(plans, 2);
}

int run(int argc, char** argv) {
  if (argc < 3) throw ConfigError({}, "usage: study_accuracy_cpu CONFIG FOLDER [ROUNDS [SEED]]");
  const std::filesystem::path folder = argv[2];
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 6;
  const auto seed = static_cast<std::uint64_t>(argc > 4 ? std::atoll(argv[4]) : 1);
  if (rounds < 1) throw ConfigError({}, "a study needs at least one round");
  Inputs inputs;
  Experiment experiment = read_experiment(argv[1], {}, rules());
  place_measured_inputs(experiment, folder);
  check_measurable(experiment, inputs);
  const std::vector<const CaseConfig*> profiles = profiled(experiment);
  for (const CaseConfig* config : profiles) {
    forget_shares(*config);
    profile_share(*config, kShare);
  }
  make_measured_inputs(experiment, inputs, false, false);  // the links

  Experiment first = with_profiles_of_now(experiment);
  use_profiled_settings(first);
  std::vector<Point> points;
  for (CaseConfig& config : first.cases) points.push_back(planned(config, inputs));
  simulate(points, [](Point& point) -> Evaluation& { return point.first(); });
  for (std::size_t p = 0; p < points.size(); ++p)
    write_plans(folder / first.cases[p].name, points[p].evaluated, inputs.replaced(first.cases[p]));
  run_rounds(points, profiles, folder, rounds, seed);

  use_profiled_settings(experiment);
  for (std::size_t p = 0; p < points.size(); ++p)
    predict_pooled(points[p], experiment.cases[p], inputs);
  simulate(points, [](Point& point) -> Evaluation& { return point.pooled; });
  print_tables(points);
  return 0;
}

}  // namespace
}  // namespace pfeife

int main(int argc, char** argv) {
  return pfeife::run_main("study_accuracy_cpu", [&] { return pfeife::run(argc, argv); });
}
