#include "experiments/plans/choices.h"

#include <algorithm>
#include <set>

#include "experiments/plans/search_share.h"
#include "planner/cost/layers/linear_order.h"
#include "planner/ir/request/check.h"
#include "planner/search/choices/device_search.h"

namespace pfeife {
namespace {

/// Microbatches a step at most where their size is open: more only lengthen the search, as the
/// bubble is next to nothing by then.
std::size_t most_microbatches(std::size_t devices) {
  return std::max<std::size_t>(64, 16 * devices);
}

std::string devices_text(const std::vector<DeviceId>& devices) {
  std::string text;
  for (const DeviceId device : devices) text += (text.empty() ? "" : " ") + to_string(device);
  return text;
}

/// "12 microbatches of 16, devices 0 1 3 2": what was open in `config`.
std::string choice_text(const Request& open, const Request& settled) {
  std::string text;
  if (open.microbatch_size_open())
    text = std::to_string(settled.microbatches) +
           (settled.microbatches == 1 ? " microbatch of " : " microbatches of ") +
           std::to_string(*settled.training.microbatch_size);
  const auto add = [&](const std::string& words) { text += (text.empty() ? "" : ", ") + words; };
  if (open.plan.order == "search") add(settled.plan.order + " order");
  if (open.plan.search_devices) add("devices " + devices_text(settled.plan.devices));
  return text;
}

Alternative alternative(const BestAlternative& found, std::size_t problem, std::string choice) {
  const AlternativeOutcome& outcome = found.all[problem];
  Alternative result;
  result.choice = std::move(choice);
  if (outcome.plan) {
    result.schedule = name_of(*outcome.plan);
    result.estimate = outcome.plan->estimate;
    result.peak_memory = std::ranges::max(outcome.plan->peak_memory);
  }
  if (outcome.bound() != kNothingFits) result.bound = outcome.bound();
  result.reason = why_not(found, problem);
  return result;
}

std::vector<SettledCase> settled_sizes(const Request& config, const Layers& layers,
                                       const LayersOf& layers_of,
                                       const WhyImpossible& why_impossible) {
  if (!config.microbatch_size_open()) return {{config, &layers}};
  std::vector<SettledCase> cases;
  std::string reason = "the model has none of its microbatch sizes";
  const std::int64_t batch = pipeline_batch(config);
  for (std::int64_t size = 1; size <= batch; ++size) {
    const auto count = static_cast<std::size_t>(batch / size);
    if (batch % size != 0 || count > most_microbatches(config.devices)) continue;
    Request settled = config;
    settled.training.microbatch_size = size, settled.microbatches = count;
    if (const std::string why = why_impossible(settled); !why.empty()) {
      reason = why;
    } else if (const Layers* of_size = layers_of(settled)) {
      cases.push_back({std::move(settled), of_size});
    }
  }
  if (cases.empty())
    throw RefusedWish("training.global_batch",
                      "no microbatch size can be chosen for a global "
                      "batch of " +
                          std::to_string(batch) + ": " + reason);
  return cases;
}

/// Layers that differ in their order by name alone.
bool same_layers(const Layers& a, Layers b) {
  b.order = a.order, b.node_order = a.node_order;
  return a == b;
}

}  // namespace

std::vector<SettledCase> settled_cases(const Request& config, const Layers& layers,
                                       const LayersOf& layers_of,
                                       const WhyImpossible& why_impossible) {
  std::vector<SettledCase> cases = settled_sizes(config, layers, layers_of, why_impossible);
  if (config.plan.order != "search") return cases;
  std::vector<SettledCase> ordered;
  for (SettledCase& sized_case : cases) {
    const std::size_t first = ordered.size();
    for (const std::string& order : linear_orders()) {
      sized_case.config.plan.order = order;
      const Layers* in_order = layers_of(sized_case.config);
      const auto known = [&](const SettledCase& other) {
        return same_layers(*other.layers, *in_order);
      };
      if (in_order != nullptr &&
          std::none_of(ordered.begin() + static_cast<std::ptrdiff_t>(first), ordered.end(), known))
        ordered.push_back({sized_case.config, in_order});
    }
  }
  return ordered;
}

SettledSearch search_settled(const std::vector<SettledCase>& cases,
                             const std::vector<Problem>& problems, SearchOptions options,
                             const Searcher& searcher) {
  const Request& first = cases.front().config;
  if (options.times)
    options.semantics = {.queues = first.simulation.queues, .links = first.simulation.links};
  const bool devices_open = first.plan.search_devices;
  SearchShare share(devices_open ? most_device_work(problems.size(), options)
                                 : most_work(problems.size(), options));
  const Searcher sharing = [&](const Problem& problem, const SearchOptions& of_search) {
    return share(problem, of_search, searcher);
  };
  BestDevices devices;
  if (devices_open) {
    devices = search_devices(problems, options, sharing);
  } else {
    devices.found = search_alternatives(problems, options, sharing);
    for (std::size_t i = 0; i < problems.size(); ++i) {
      devices.problems.push_back(problems[i]);
      devices.origin.push_back(i);
    }
  }
  BestAlternative& found = devices.found;
  const auto settled = [&](std::size_t problem) {
    SettledCase settled_case = cases[devices.origin[problem]];
    if (devices_open) settled_case.config.plan.devices = devices.problems[problem].device_of_rank;
    return settled_case;
  };
  // What differs between the cases was open.
  Request open = first;
  std::set<std::int64_t> sizes;
  std::set<std::string> orders;
  for (const SettledCase& settled_case : cases) {
    sizes.insert(settled_case.config.training.microbatch_size.value_or(0));
    orders.insert(settled_case.config.plan.order);
  }
  if (sizes.size() > 1) open.training.microbatch_size.reset();
  if (orders.size() > 1) open.plan.order = "search";
  std::vector<Alternative> alternatives;
  if (found.all.size() > 1) {
    for (std::size_t i = 0; i < found.all.size(); ++i)
      alternatives.push_back(alternative(found, i, choice_text(open, settled(i).config)));
    std::ranges::stable_sort(alternatives, {}, [](const Alternative& a) {
      return std::tuple(a.reason.why != Why::Chosen, !a.estimate, a.estimate, a.bound);
    });
  }
  SettledSearch result{settled(found.best),
                       Pool(std::move(found.outcome), problems.front().memory_limit)};
  Pool& pool = result.pool;
  pool.set_alternatives(std::move(alternatives));
  if (!pool.answer().bound) return result;
  Uncertified besides = pool.answer().uncertified;
  besides.microbatch_sizes = std::move(sizes), besides.layer_orders = std::move(orders);
  besides.device_orders = devices_open;
  besides.without_recomputation =
      std::ranges::any_of(found.all, [&](const AlternativeOutcome& outcome) {
        return outcome.recompute == Recompute::None && pool.answer().recompute != Recompute::None;
      });
  pool.set_uncertified(std::move(besides));
  return result;
}

}  // namespace pfeife
