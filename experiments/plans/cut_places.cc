#include "experiments/plans/cut_places.h"

#include <algorithm>

#include "experiments/plans/case_limits.h"
#include "experiments/plans/case_problem.h"
#include "experiments/plans/search_share.h"
#include "experiments/plans/simulated_times.h"
#include "planner/ir/request/check.h"
#include "planner/search/reference/reference.h"
#include "planner/search/search.h"

namespace pfeife {
namespace {

/// Searches with the recomputation that the config allows.
Answer search_as_set(const Request& config, const Problem& given, const SearchOptions& options) {
  if (config.plan.reference) return reference_search(reference_problem(given));
  return search(recomputing(given, config.plan.recompute, config.plan.recompute_except_last),
                options);
}

constexpr double kWorthLeavingBlocks = 0.99;  ///< of the step between blocks
constexpr std::size_t kTriedElsewhere = 4;    ///< of its schedules, to know what blocks cost
constexpr std::size_t kShareElsewhere = 4;    ///< of the effort, a fourth

/// Searches the plans of one case.
class CaseSearch {
 public:
  CaseSearch(const CaseInputs& inputs, const LayersOf& layers_of, const SearchOptions& options)
      : inputs_(inputs), layers_of_(layers_of), options_(options) {
    const Request& config = *inputs.config;
    if (config.simulate && chosen_by(config) != SelectBy::Estimate)
      options_.times = [&](const Problem& problem, std::span<const Priced> plans) {
        std::vector<Nanoseconds> times;
        for (const SimulatedStep& step : simulated_steps(inputs_, problem, plans, options_.threads))
          times.push_back(step_time(step.trace));
        return times;
      };
  }

  /// Where cuts lie is the config's wish, or nothing is to be compared.
  SettledSearch alone() const {
    return search(possible_cases(*inputs_.config, *inputs_.layers, layers_of_), options_);
  }

  /// Cuts between blocks, unless others make the step shorter by more than 1 %.
  SettledSearch between_blocks_or_anywhere() const {
    const std::vector<SettledCase> cases = cases_between_blocks();
    if (cases.empty()) return alone();
    SettledSearch between = search(cases, part_of(options_, 0, kBetween));
    CutPlaces places{.blocks = time_of(between.best, between.pool.answer()),
                     .simulated = !!options_.times};
    if (places.blocks) {
      places.anywhere = time_elsewhere(between);
      if (!places.anywhere ||
          static_cast<double>(places.anywhere->count()) >
              kWorthLeavingBlocks * static_cast<double>(places.blocks->count())) {
        between.pool.set_cut_places(places);
        return between;
      }
    }
    SettledSearch anywhere =
        search(possible_cases(at_layers(*inputs_.config), *inputs_.layers, layers_of_),
               part_of(options_, kElsewhere, 1));
    places.anywhere = time_of(anywhere.best, anywhere.pool.answer());
    places.between_blocks =
        places.blocks && (!places.anywhere || *places.anywhere >= *places.blocks);
    SettledSearch& chosen = places.between_blocks ? between : anywhere;
    chosen.pool.set_cut_places(places);
    return std::move(chosen);
  }

 private:
  // Shares of the progress; mostly there is no third part.
  static constexpr double kBetween = 0.8, kElsewhere = 0.85;

  /// The least of its plans, as plans are compared.
  std::optional<Nanoseconds> time_of(const SettledCase& settled, const Answer& answer) const {
    if (answer.plans.empty()) return std::nullopt;
    if (!options_.times) return answer.plans.front().estimate;
    return least_time(problem_of(settled, *inputs_.cluster), answer, options_);
  }
  static Request at_layers(Request config) {
    config.plan.cuts_at = PlanSettings::CutsAt::Layers;
    return config;
  }
  /// None if the case cannot have such cuts.
  std::vector<SettledCase> cases_between_blocks() const {
    Request config = *inputs_.config;
    config.plan.cuts_at = PlanSettings::CutsAt::Blocks;
    const Layers* const layers = layers_of_ ? layers_of_(config) : nullptr;
    if (layers == nullptr) return {};
    try {
      return possible_cases(config, *layers, layers_of_);
    } catch (const ConfigError&) {  // no schedule has so few stages
      return {};
    }
  }
  /// A short search of the best schedules, with cuts anywhere.
  std::optional<Nanoseconds> time_elsewhere(const SettledSearch& between) const {
    Request config = at_layers(between.best.config);
    const Layers* const layers = layers_of_(config);
    if (layers == nullptr) return std::nullopt;
    Problem problem = problem_of({config, layers}, *inputs_.cluster);
    problem.schedules.clear();
    for (const Priced& plan : between.pool.answer().all)
      if (problem.schedules.size() < kTriedElsewhere) problem.schedules.push_back(plan.spec);
    SearchOptions options = part_of(options_, kBetween, kElsewhere);
    options.iterations = std::max<std::size_t>(1, options_.effort() / kShareElsewhere);
    options.certificate = false, options.after_step = {};
    return time_of({config, layers}, search_as_set(config, problem, options));
  }
  SettledSearch search(const std::vector<SettledCase>& cases, const SearchOptions& options) const {
    std::vector<Problem> problems;
    for (const SettledCase& settled : cases)
      problems.push_back(problem_of(settled, *inputs_.cluster));
    return search_settled(cases, problems, options,
                          [&](const Problem& problem, const SearchOptions& of_search) {
                            return search_as_set(*inputs_.config, problem, of_search);
                          });
  }

  const CaseInputs& inputs_;
  const LayersOf& layers_of_;
  SearchOptions options_;
};

}  // namespace

SettledSearch search_case(const CaseInputs& inputs, const LayersOf& layers_of,
                          const SearchOptions& options) {
  const CaseSearch search(inputs, layers_of, options);
  return cuts_are_open(*inputs.config) ? search.between_blocks_or_anywhere() : search.alone();
}

}  // namespace pfeife
