#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "experiments/show/texts.h"
#include "planner/ir/basics/grid.h"
#include "plots/screen/columns.h"

namespace pfeife {
namespace {

constexpr std::size_t kShownActions = 8;

std::string ms(Nanoseconds time) { return fmt::format("{:.3f} ms", milliseconds(time)); }
std::string signed_ms(Nanoseconds time) { return fmt::format("{:+.3f}", milliseconds(time)); }
/// "1B" of every microbatch.
std::string kind_text(const Cell& cell) {
  const auto* action = std::get_if<Action>(&cell);
  if (action == nullptr) return to_string(cell);
  return to_string(stage_action(action->op, action->stage));
}
const char* engine(const Comparison& comparison) {
  return comparison.simulated ? "simulated" : "estimated";
}

/// The rank on which the run lost most, or won most, to that.
std::size_t blamed_rank(const LostTime& lost, Loss loss) {
  const bool longer = lost.of(loss) >= Nanoseconds{0};
  std::size_t blamed = 0;
  const auto lost_on = [&](std::size_t r) {
    return lost.of_rank[r][static_cast<std::size_t>(loss)];
  };
  for (std::size_t r = 1; r < lost.of_rank.size(); ++r)
    if (longer ? lost_on(r) > lost_on(blamed) : lost_on(r) < lost_on(blamed)) blamed = r;
  return blamed;
}

/// "1B takes 3.2 instead of 2.1 ms": of the rank's kinds of actions the one that adds most time.
std::string slowest_action(const Comparison& comparison, std::size_t rank) {
  struct Sum {
    Nanoseconds predicted{0}, measured{0};
    std::int64_t count = 0;
  };
  std::map<std::string, Sum> kinds;
  const Trace& predicted = comparison.predicted();
  for (std::size_t t = 0; t < predicted.events.size(); ++t) {
    const Event& event = predicted.events[t];
    if (event.kind != TaskKind::Compute || event.rank.index() != rank) continue;
    Sum& sum = kinds[kind_text(event.cell)];
    sum.predicted += event.end - event.start;
    sum.measured += comparison.measurement.durations[t];
    ++sum.count;
  }
  const auto worst = std::ranges::max_element(
      kinds, {}, [](const auto& kind) { return kind.second.measured - kind.second.predicted; });
  if (worst == kinds.end() || worst->second.measured <= worst->second.predicted) return "";
  const Sum& sum = worst->second;
  return fmt::format(", where {} takes {} instead of {}", worst->first,
                     ms(sum.measured / sum.count), ms(sum.predicted / sum.count));
}

std::string loss_words(const Comparison& comparison, Loss loss) {
  const LostTime& lost = comparison.lost;
  std::string text = fmt::format("{} ms {}", signed_ms(lost.of(loss)), to_string(loss));
  const std::size_t rank = blamed_rank(lost, loss);
  if (lost.of_rank.size() > 1 && lost.of(loss) != Nanoseconds{0})
    text += fmt::format(", most of it of rank {}", rank);
  if (loss == Loss::Compute && lost.of(loss) > Nanoseconds{0})
    text += slowest_action(comparison, rank);
  return text;
}

std::string loss_table(const Comparison& comparison) {
  const LostTime& lost = comparison.lost;
  std::vector<GridColumn> columns{{"lost to, ns", false}};
  for (std::size_t r = 0; r < lost.of_rank.size(); ++r)
    columns.push_back({fmt::format("rank {}", r)});
  columns.push_back({"all"});
  std::vector<GridRow> rows;
  for (std::size_t l = 0; l < kLosses; ++l) {
    const auto loss = static_cast<Loss>(l);
    GridRow row{{{to_string(loss)}}};
    for (const auto& by_loss : lost.of_rank)
      row.cells.push_back({std::to_string(by_loss[l].count())});
    row.cells.push_back({std::to_string(lost.of(loss).count())});
    rows.push_back(std::move(row));
  }
  GridRow sum{{{"measured - " + std::string(engine(comparison))}}};
  for (const auto& by_loss : lost.of_rank) {
    Nanoseconds all{0};
    for (const Nanoseconds lost_time : by_loss) all += lost_time;
    sum.cells.push_back({std::to_string(all.count())});
  }
  sum.cells.push_back({std::to_string(lost.total().count())});
  rows.push_back(std::move(sum));
  return grid_text(columns, rows, false);
}

/// "12.3/10.1": measured, predicted.
std::string both(Nanoseconds measured, Nanoseconds predicted) {
  return fmt::format("{:.2f}/{:.2f}", milliseconds(measured), milliseconds(predicted));
}

std::string waits_table(const Comparison& comparison) {
  const std::vector<GridColumn> columns{{"rank"},      {"compute"}, {"gaps"},       {"optimizer"},
                                        {"transfers"}, {"queues"},  {"reductions"}, {"waits"}};
  std::vector<GridRow> rows;
  for (std::size_t r = 0; r < comparison.predicted().ranks; ++r) {
    const RankId rank{r};
    const Attribution m = attribution(comparison.measurement.trace, rank);
    const Attribution p = attribution(comparison.predicted(), rank);
    rows.push_back({{{std::to_string(r)},
                     {both(m.compute, p.compute)},
                     {both(m.launch, p.launch)},
                     {both(m.optimizer, p.optimizer)},
                     {both(m.exposed_transfer, p.exposed_transfer)},
                     {both(m.queue_wait, p.queue_wait)},
                     {both(m.reduction, p.reduction)},
                     {both(m.dependency_wait, p.dependency_wait)}}});
  }
  return fmt::format("where the step of each rank went, ms, measured/{}\n\n", engine(comparison)) +
         grid_text(columns, rows, false);
}

/// The record of the run, for the table that `measure` shows.
CaseRecord record_of(const Comparison& comparison) {
  PlanRecord plan;
  plan.row.family = comparison.plan.spec.family;
  plan.row.devices = comparison.plan.placement.ranks();
  plan.row.microbatches = comparison.plan.spec.microbatches;
  plan.row.stages_per_rank = comparison.plan.spec.stages_per_rank;
  plan.row.feasible = true;
  plan.row.estimate = step_time(comparison.estimated);
  if (comparison.simulated) plan.row.simulate = step_time(*comparison.simulated);
  const Measurement& measurement = comparison.measurement;
  plan.row.measure = measurement.quantile(0.5);
  plan.measured = MeasuredRun{
      .steps = measurement.steps.size(),
      .p5 = measurement.quantile(0.05),
      .p95 = measurement.quantile(0.95),
      .furthest = furthest_actions(comparison.predicted(), measurement.durations, kShownActions)};
  CaseRecord record{.name = "traces"};
  record.plans.push_back(std::move(plan));
  return record;
}

std::string clocks_text(const Comparison& comparison) {
  std::string text;
  for (std::size_t c = 1; c < comparison.run.clocks.size(); ++c) {
    const ClockOffset& clock = comparison.run.clocks[c];
    text += fmt::format("  {}: {:+.1f} us, +- {:.1f} us\n", comparison.files[c],
                        -1e-3 * static_cast<double>(clock.offset.count()),
                        1e-3 * static_cast<double>(clock.error.count()));
  }
  if (text.empty()) return "";
  return "\nclocks ahead of that of " + comparison.files[0] +
         (comparison.run.drifting ? " (they drift: each step by itself, the worst is shown)" : "") +
         "\n" + text;
}

}  // namespace

std::string why_slower(const Comparison& comparison) {
  const LostTime& lost = comparison.lost;
  std::array<Loss, kLosses> order{};
  for (std::size_t l = 0; l < kLosses; ++l) order[l] = static_cast<Loss>(l);
  const bool slower = lost.total() >= Nanoseconds{0};
  std::ranges::stable_sort(order, [&](Loss a, Loss b) {
    return slower ? lost.of(a) > lost.of(b) : lost.of(a) < lost.of(b);
  });
  return fmt::format(
      "The step took {} (median of {}), {:.1f} % {} than {} ({}): {}; {}.", ms(lost.measured),
      comparison.measurement.steps.size(),
      100 * std::abs(relative_error(milliseconds(lost.measured), milliseconds(lost.predicted))),
      slower ? "longer" : "shorter", engine(comparison), ms(lost.predicted),
      loss_words(comparison, order[0]), loss_words(comparison, order[1]));
}

std::string comparison_text(const Comparison& comparison, std::size_t width) {
  std::string text = wrapped(why_slower(comparison), width);
  if (!comparison.run.optimizer)
    text += wrapped("The traces have no optimizer steps; both sides are without them.", width);
  return text + "\n" + loss_table(comparison) + "\n" + waits_table(comparison) + "\n" +
         accuracy_table({record_of(comparison)}, width, true) + clocks_text(comparison);
}

}  // namespace pfeife
