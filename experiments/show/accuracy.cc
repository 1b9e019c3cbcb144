#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/machine/machine.h"
#include "experiments/show/texts.h"
#include "planner/ir/basics/grid.h"
#include "planner/ir/result/measured_pairs.h"
#include "plots/screen/columns.h"

namespace pfeife {
namespace {

bool was_measured(const PlanRecord& plan) { return plan.row.measure && plan.measured; }

bool is_disturbed(const PlanRecord& plan) { return plan.measured->others >= kTooBusy; }

/// What the mark of a disturbed row means; "" if there is none.
std::string disturbance(const std::vector<CaseRecord>& cases, std::size_t width) {
  double most = 0;
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans)
      if (was_measured(plan)) most = std::max(most, plan.measured->others);
  const std::string warning = busy_warning(most);
  if (warning.empty()) return "";
  return wrapped("! DISTURBED: " + warning +
                     ", at most; the measured times are too long, and the errors are no errors of "
                     "the prediction. Measure again on an idle machine (--force)",
                 width, "", "  ");
}

constexpr std::size_t kIntervals = 4, kSpreads = 5, kEstimates = 6, kAnew = 8;  // columns
constexpr std::size_t kRoomForAll = 100;

std::string half_width_of(const MeasuredRun& run) {
  const auto found = median_interval(run);
  if (!found) return "";
  return fmt::format("{:.1f} %{}", 100 * found->half_width(), misses_goal(run) ? " ?" : "");
}

/// "a faster than b: 3.1 +- 0.8 %", of plans that follow each other in the measured order, or of
/// all. "" without rounds.
std::string pairs_of(const CaseRecord& record, std::size_t width, bool all) {
  const std::vector<MeasuredPair> pairs = measured_pairs(record);
  std::string text;
  std::size_t apart = 0, right = 0;
  std::set<std::size_t> shown;
  for (const MeasuredPair& pair : pairs) {
    apart += pair.apart() ? 1 : 0;
    right += pair.apart() && pair.predicted ? 1 : 0;
    if (!shown.insert(pair.faster).second && !all) continue;
    const std::string by = fmt::format("{:.1f} +- {:.1f} %", 100 * pair.longer.median,
                                       50 * (pair.longer.high - pair.longer.low));
    const std::string faster = plan_name(record.plans[pair.faster]),
                      slower = plan_name(record.plans[pair.slower]);
    text += wrapped(pair.apart() ? faster + " is faster than " + slower + ": " + by
                                 : faster + " and " + slower + " are not told apart: " + by,
                    width, "  ", "      ");
  }
  if (apart > 0)
    text += wrapped(fmt::format("{} of {} pairs are told apart, {} of these in the predicted order",
                                apart, pairs.size(), right),
                    width, "  ", "      ");
  return text;
}

/// Medians that are not known as well as they were to be; "" if all are.
std::string missed_goals(const std::vector<CaseRecord>& cases, std::size_t width) {
  std::size_t rounds = 0;
  double goal = 0;
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans)
      if (was_measured(plan) && misses_goal(*plan.measured)) {
        rounds = std::max(rounds, plan.measured->rounds.size());
        goal = plan.measured->interval_goal;
      }
  if (rounds == 0) return "";
  return wrapped(fmt::format("? the median is not known to {:.1f} % after {} rounds: raise "
                             "measurement.rounds, or measure on a quieter machine",
                             100 * goal, rounds),
                 width, "", "  ");
}

/// What the column of that name says; "" if it says nothing.
std::string meaning_of_anew(const std::vector<CaseRecord>& cases, std::size_t width) {
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans)
      if (was_measured(plan) && plan.measured->anew)
        return wrapped(
            "anew: estimated with a profile that was taken in the same rounds, in which "
            "the machine may not have been what it was before",
            width, "", "  ");
  return "";
}

std::string signed_percent(double fraction) { return fmt::format("{:+.1f} %", 100 * fraction); }

std::string error_of(const std::optional<Nanoseconds>& predicted, const PlanRecord& plan) {
  if (!predicted) return "";
  return signed_percent(relative_error(milliseconds(*predicted), milliseconds(*plan.row.measure)));
}

double peak_error(const PlanRecord& plan, std::size_t rank) {
  return relative_error(static_cast<double>(plan.need.allocated.at(rank).value),
                        static_cast<double>(plan.measured->peak_memory[rank].value));
}

/// The largest, with its sign.
std::string worst_peak_error(const PlanRecord& plan) {
  if (plan.measured->peak_memory.empty()) return "";
  double worst = 0;
  for (std::size_t r = 0; r < plan.measured->peak_memory.size(); ++r)
    if (std::abs(peak_error(plan, r)) > std::abs(worst)) worst = peak_error(plan, r);
  return signed_percent(worst);
}

/// "rank 0 12.34 of 12.30 MiB": predicted and counted.
std::string peaks_of(const PlanRecord& plan, std::size_t width) {
  constexpr double kMiBytes = 1024.0 * 1024;
  std::string text = plan_name(plan) + ": peak memory predicted of counted, MiB:";
  for (std::size_t r = 0; r < plan.measured->peak_memory.size(); ++r)
    text += fmt::format(" {:.2f}/{:.2f} ({})",
                        static_cast<double>(plan.need.allocated.at(r).value) / kMiBytes,
                        static_cast<double>(plan.measured->peak_memory[r].value) / kMiBytes,
                        signed_percent(peak_error(plan, r)));
  return plan.measured->peak_memory.empty() ? "" : wrapped(text, width, "  ", "      ");
}

std::string actions_of(const PlanRecord& plan) {
  std::string text =
      fmt::format("  furthest from their prediction ({}), median of {} steps:\n",
                  plan.row.simulate ? "simulated" : "estimated", plan.measured->steps);
  for (const ActionError& error : plan.measured->furthest)
    text += fmt::format("    rank {:<3} {:<15} {:>9} ms, measured {:>9} ms, {:>9}\n",
                        error.rank.value, error.action, milliseconds_text(error.predicted),
                        milliseconds_text(error.measured),
                        signed_percent(relative_error(milliseconds(error.predicted),
                                                      milliseconds(error.measured))));
  return text;
}

}  // namespace

std::string accuracy_table(const std::vector<CaseRecord>& cases, std::size_t width, bool verbose) {
  std::vector<GridColumn> columns{{"D"},    {"N"},         {"plan", false, 24}, {"measured ms"},
                                  {"+-"},   {"p5 to p95"}, {"estimate"},        {"simulation"},
                                  {"anew"}, {"peak"}};
  const std::vector<Key> keys = keys_of(cases);
  std::vector<GridRow> rows;
  std::string pairs, details;
  for (std::size_t c = 0; c < cases.size(); ++c) {
    bool first = true;
    for (const PlanRecord* plan : plans_in_order(cases[c])) {
      if (!was_measured(*plan)) continue;
      rows.push_back(
          {{{first ? keys[0].values[c] : ""},
            {first ? keys[1].values[c] : ""},
            {plan_name(*plan) + (plan == &cases[c].plans.front() ? " *" : "") +
             (is_disturbed(*plan) ? " !" : "")},
            {milliseconds_text(plan->row.measure)},
            {half_width_of(*plan->measured)},
            {milliseconds_text(plan->measured->p5) + "-" + milliseconds_text(plan->measured->p95)},
            {error_of(plan->row.estimate, *plan)},
            {error_of(plan->row.simulate, *plan)},
            {error_of(plan->measured->anew, *plan)},
            {worst_peak_error(*plan)}}});
      if (first && verbose) details += "\n" + wrapped(heading(cases[c]), width);
      if (verbose) details += peaks_of(*plan, width) + actions_of(*plan);
      first = false;
    }
    if (const std::string found = pairs_of(cases[c], width, verbose); !found.empty())
      pairs += "\n" + wrapped(heading(cases[c]), width) + found;
  }
  if (rows.empty()) return "";
  const auto is_empty = [&](std::size_t column) {
    return std::ranges::all_of(rows,
                               [&](const GridRow& row) { return row.cells[column].text.empty(); });
  };
  // A narrow screen has no room for how steps spread and for how well their median is known, nor
  // for three predictions.
  std::set<std::size_t> left_out;
  if (width < kRoomForAll && !is_empty(kIntervals)) left_out.insert(kSpreads);
  if (width < kRoomForAll && !is_empty(kAnew)) left_out.insert(kEstimates);
  for (std::size_t c = columns.size(); c-- > 0;) {
    if (!is_empty(c) && !left_out.contains(c)) continue;
    columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(c));
    for (GridRow& row : rows) row.cells.erase(row.cells.begin() + static_cast<std::ptrdiff_t>(c));
  }
  return "errors, predicted / measured - 1\n\n" + grid_text(columns, rows, false) +
         meaning_of_anew(cases, width) + missed_goals(cases, width) + disturbance(cases, width) +
         pairs + details;
}

}  // namespace pfeife
