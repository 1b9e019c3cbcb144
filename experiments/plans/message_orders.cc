#include "experiments/plans/message_orders.h"

#include <algorithm>
#include <deque>

#include "planner/cost/estimate/memory.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/message_order.h"
#include "sim/simulator.h"

namespace pfeife {
namespace {

constexpr std::size_t kRounds = 4;  ///< each begins with the simulation of the best order so far

bool messages_wait(const Trace& simulated) {
  return std::ranges::any_of(simulated.events, [](const Event& event) {
    return event.kind == TaskKind::Transfer && event.start > event.posted;
  });
}

/// A plan's schedule with its messages in some order.
struct Order {
  Schedule schedule;
  MessageRule rule = MessageRule::FirstReady;
  DependencyGraph graph;
  Trace simulated;
};

/// [task] of a trace.
std::vector<Nanoseconds> lengths_of(const Trace& trace) {
  std::vector<Nanoseconds> lengths;
  for (const Event& event : trace.events) lengths.push_back(event.end - event.start);
  return lengths;
}

class MessageOrders {
 public:
  MessageOrders(const Evaluation& plan, std::size_t workers)
      : plan_(plan),
        settings_(plan.inputs.config->simulation),
        stages_(stage_graph(plan.costs)),
        workers_(workers) {}

  /// The fastest that was tried and fits, if it is faster than the plan as it is.
  std::optional<Order> fastest() const {
    std::optional<Order> best;
    std::vector<Schedule> known{plan_.plan.schedule};
    std::deque<Order> tried;
    add(plan_.plan.schedule, lengths_of(plan_.estimated), known, tried);
    add(plan_.plan.schedule, lengths_of(*plan_.simulated), known, tried);
    for (std::size_t round = 0; round < kRounds && !tried.empty(); ++round) {
      simulate(tried);
      const auto first = std::ranges::min_element(
          tried, {}, [](const Order& order) { return step_time(order.simulated); });
      const Trace& before = best ? best->simulated : *plan_.simulated;
      if (step_time(first->simulated) >= step_time(before)) break;
      best = std::move(*first);
      tried.clear();
      add(best->schedule, lengths_of(best->simulated), known, tried);
    }
    return best;
  }

 private:
  /// What the rules make of it, if it is new and fits.
  void add(const Schedule& schedule, const std::vector<Nanoseconds>& lengths,
           std::vector<Schedule>& known, std::deque<Order>& tried) const {
    for (const MessageRule rule : kMessageRules) {
      Schedule ordered = with_message_order(schedule, stages_, plan_.plan.placement, lengths,
                                            settings_.queues, rule);
      if (std::ranges::find(known, ordered) != known.end()) continue;
      known.push_back(ordered);
      if (!fits(peak_memory(ordered, plan_.costs, plan_.plan.placement), plan_.need.limit))
        continue;
      DependencyGraph graph = dependencies(ordered, stages_, plan_.plan.placement,
                                           {settings_.queues, settings_.links, false});
      tried.push_back({std::move(ordered), rule, std::move(graph), {}});
    }
  }

  void simulate(std::deque<Order>& tried) const {
    std::vector<SimulationJob> jobs;
    for (const Order& order : tried)
      jobs.push_back({.name = plan_.inputs.config->name + ", an order of messages",
                      .graph = &order.graph,
                      .costs = &plan_.costs,
                      .placement = &plan_.plan.placement,
                      .cluster = plan_.inputs.cluster,
                      .launch_overhead = settings_.launch_overhead,
                      .jitter = {},
                      .trace = true});
    std::vector<SimulationResult> results =
        simulate_all(jobs, {.workers = workers_, .progress = {}});
    for (std::size_t i = 0; i < results.size(); ++i) {
      PFEIFE_CHECK(!results[i].deadlock, jobs[i].name, " that cannot run");
      tried[i].simulated = std::move(*results[i].trace);
    }
  }

  const Evaluation& plan_;
  const SimulationSettings& settings_;
  StageGraph stages_;
  std::size_t workers_;
};

/// The plan in that order, with all that follows from it.
Evaluation in_order(const Evaluation& plan, Order order, std::size_t workers) {
  Plan ordered = plan.plan;
  ordered.schedule = std::move(order.schedule);
  Evaluation evaluation =
      estimated_plan(plan.inputs, plan.origin, plan.name, std::move(ordered), true);
  evaluation.plan.found = plan.plan.found;
  evaluation.plan.found["messages"] = to_string(order.rule);
  Evaluation* const simulated = &evaluation;
  simulate_plans(std::span(&simulated, 1), workers);
  return evaluation;
}

bool is_tried(const Evaluation& plan) {
  return plan.origin == Origin::Search && plan.possible() && plan.fits() && plan.simulated &&
         plan.inputs.config->simulation.queues != Queues::None && messages_wait(*plan.simulated);
}

}  // namespace

void order_messages(std::span<EvaluatedCase> cases, std::size_t workers) {
  for (EvaluatedCase& evaluated : cases)
    for (Evaluation& plan : evaluated.planned) {
      if (!is_tried(plan)) continue;
      std::optional<Order> order = MessageOrders(plan, workers).fastest();
      if (!order) continue;
      Evaluation ordered = in_order(plan, std::move(*order), workers);
      if (!ordered.fits()) continue;
      const auto late = p95(plan);
      if (chosen_by(*evaluated.config) == SelectBy::P95 && late && *p95(ordered) >= *late) continue;
      plan = std::move(ordered);
    }
}

}  // namespace pfeife
