// Study: the planner against reference mode and simple cuts on a hundred problems. Usage:
// study_planner_comparison CONFIGS FOLDER [EFFORT [MODEL...]]; prints a table, writes
// planner_comparison.csv; with MODELs only their problems.
// What is compared and what came out: README.md beside this file.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>

#include "planner/io/files/atomic_file.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/parallel.h"
#include "planner/ir/basics/run_main.h"
#include "tests/benchmarks/planner_comparison/comparison.h"

namespace pfeife {
namespace {

std::string cell(const JudgedPlan& planned) {
  return planned.fits ? fixed(milliseconds(planned.estimate), 3) : "";
}

/// The problems that are done, a line each.
std::string csv(const std::vector<InstanceSpec>& specs,
                const std::vector<std::optional<PlannerComparison>>& results) {
  std::string text =
      "model,cluster,devices,microbatches,memory_share,plan,search_s,reference_s,ours_ms,bound_ms";
  for (const char* other : kOthers) {
    std::string name = other;
    std::ranges::replace(name, ' ', '_');
    text += "," + name + "_ms";
  }
  text += "\n";
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (!results[i]) continue;
    const PlannerComparison& result = *results[i];
    std::string plan = result.ours.plan;
    std::ranges::replace(plan, ',', ';');
    text += specs[i].model + "," + specs[i].cluster + "," + std::to_string(specs[i].ranks) + "," +
            std::to_string(specs[i].microbatches) + "," + fixed(specs[i].memory, 1) + "," + plan +
            "," + fixed(result.search_s, 3) + "," + fixed(result.reference_s, 3) + "," +
            cell(result.ours) + "," +
            (result.bound ? fixed(milliseconds(result.bound->time), 3) : "");
    for (const JudgedPlan& other : result.others) text += "," + cell(other);
    text += "\n";
  }
  return text;
}

/// How much longer the other's step takes, %, over the problems where both have a plan.
std::vector<double> losses(const std::vector<PlannerComparison>& results, std::size_t other) {
  std::vector<double> found;
  for (const PlannerComparison& result : results)
    if (result.ours.fits && result.others[other].fits)
      found.push_back(
          100 *
          (milliseconds(result.others[other].estimate) / milliseconds(result.ours.estimate) - 1));
  std::ranges::sort(found);
  return found;
}

void print_table(const std::vector<PlannerComparison>& results) {
  double ours = 0, reference = 0;
  for (const PlannerComparison& result : results)
    ours += result.search_s, reference += result.reference_s;
  const auto count = [&](const auto& is) { return std::ranges::count_if(results, is); };
  std::printf(
      "%zu problems; ours has a plan for %td, proves of %td that none exists\n"
      "all searches took %.1f s, those of reference mode %.1f s (measured, one core each)\n\n",
      results.size(), count([](const PlannerComparison& c) { return c.ours.fits; }),
      count([](const PlannerComparison& c) { return c.proven_infeasible; }), ours, reference);
  std::printf("%-18s %8s %8s %22s %10s %8s\n", "", "has a", "we have", "its step is longer, %", "",
              "shorter");
  std::printf("%-18s %8s %8s %8s %6s %6s %10s %8s\n", "planner", "plan", "one, not", "median",
              "mean", "max", "equal", "");
  for (std::size_t k = 0; k < kOthers.size(); ++k) {
    const std::vector<double> loss = losses(results, k);
    double sum = 0;
    for (const double value : loss) sum += value;
    const auto equal = std::ranges::count_if(loss, [](double l) { return l == 0; });
    const auto shorter = std::ranges::count_if(loss, [](double l) { return l < 0; });
    std::printf("%-18s %8td %8td %8.1f %6.1f %6.1f %10td %8td\n", kOthers[k],
                count([&](const PlannerComparison& c) { return c.others[k].fits; }),
                count([&](const PlannerComparison& c) { return c.ours.fits && !c.others[k].fits; }),
                loss.empty() ? 0 : loss[loss.size() / 2],
                loss.empty() ? 0 : sum / static_cast<double>(loss.size()),
                loss.empty() ? 0 : loss.back(), equal, shorter);
  }
}

int run(const std::filesystem::path& configs, const std::filesystem::path& folder,
        std::size_t effort, const std::vector<std::string>& models) {
  std::vector<InstanceSpec> specs = all_instances();
  if (!models.empty())
    std::erase_if(specs, [&](const InstanceSpec& spec) {
      return std::ranges::find(models, spec.model) == models.end();
    });
  InstanceReader reader(configs);
  std::vector<InstanceReader::Instance> instances;
  for (const InstanceSpec& spec : specs) instances.push_back(reader.read(spec));
  std::vector<std::optional<PlannerComparison>> done(specs.size());
  std::size_t count = 0;
  std::mutex mutex;
  parallel_for(specs.size(), std::max(1U, std::thread::hardware_concurrency()), [&](std::size_t i) {
    PlannerComparison result = compare(instances[i], specs[i].microbatches, {1, 2, 3}, effort);
    const std::lock_guard lock(mutex);
    done[i] = std::move(result);
    std::cerr << ++count << " of " << specs.size() << ": " << specs[i].model << " on "
              << specs[i].ranks << " of " << specs[i].cluster << "\n";
    write_file(folder / "planner_comparison.csv", csv(specs, done));
  });
  std::vector<PlannerComparison> results;
  for (std::optional<PlannerComparison>& result : done) results.push_back(std::move(*result));
  print_table(results);
  return 0;
}

}  // namespace
}  // namespace pfeife

int main(int argc, char** argv) {
  return pfeife::run_main("study_planner_comparison", [&] {
    if (argc < 3)
      throw pfeife::ConfigError(
          {}, "usage: study_planner_comparison CONFIGS FOLDER [EFFORT [MODEL...]]");
    return pfeife::run(argv[1], argv[2], argc > 3 ? std::stoul(argv[3]) : 20,
                       {argv + std::min(argc, 4), argv + argc});
  });
}
