#include "experiments/show/accuracy.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/machine/machine.h"
#include "experiments/show/table.h"

namespace pfeife {
namespace {

bool was_measured(const PlanRecord& plan) { return plan.row.measure && plan.measured; }

std::string name_of(const PlanRecord& plan, const CaseRecord& record) {
  return (&plan == &record.plans.front() ? "planned: " : "") + schedule_name(plan.row);
}

bool is_disturbed(const PlanRecord& plan) { return plan.measured->others >= kTooBusy; }

/// What the mark of a disturbed row means; "" if there is none.
std::string disturbance(const std::vector<CaseRecord>& cases) {
  double most = 0;
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans)
      if (was_measured(plan)) most = std::max(most, plan.measured->others);
  const std::string warning = busy_warning(most);
  if (warning.empty()) return "";
  return "\n! DISTURBED: " + warning +
         ", at most; the measured times are too long, and the errors are no errors of\n  the "
         "prediction. Measure again on an idle machine (--force)\n";
}

std::string signed_percent(double fraction) { return fmt::format("{:+.1f}", 100 * fraction); }

std::string error_of(const std::optional<Nanoseconds>& predicted, const PlanRecord& plan) {
  if (!predicted) return "-";
  return signed_percent(relative_error(milliseconds(*predicted), milliseconds(*plan.row.measure)));
}

/// "12.34/12.30 +0.3" of each rank.
std::string peaks_of(const PlanRecord& plan) {
  constexpr double kMiBytes = 1024.0 * 1024;
  std::string text;
  for (std::size_t r = 0; r < plan.measured->peak_memory.size(); ++r) {
    const auto predicted = static_cast<double>(plan.peak_memory.at(r).value),
               measured = static_cast<double>(plan.measured->peak_memory[r].value);
    text += fmt::format("  {:>16} {:>6}",
                        fmt::format("{:.2f}/{:.2f}", predicted / kMiBytes, measured / kMiBytes),
                        signed_percent(relative_error(predicted, measured)));
  }
  return text.empty() ? "  not counted" : text;
}

std::string actions_of(const PlanRecord& plan) {
  std::string text =
      fmt::format("  furthest from their prediction ({}), median of {} steps:\n",
                  plan.row.simulate ? "simulated" : "estimated", plan.measured->steps);
  for (const ActionError& error : plan.measured->furthest)
    text += fmt::format("    rank {:<3} {:<18} predicted {:>10} ms, measured {:>10} ms, {:>7} %\n",
                        error.rank.value, error.action, milliseconds_text(error.predicted),
                        milliseconds_text(error.measured),
                        signed_percent(relative_error(milliseconds(error.predicted),
                                                      milliseconds(error.measured))));
  return text;
}

}  // namespace

std::string accuracy_table(const std::vector<CaseRecord>& cases) {
  std::size_t width = 4;
  bool any = false;
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans)
      if (was_measured(plan)) any = true, width = std::max(width, name_of(plan, record).size());
  if (!any) return "";
  std::string text = fmt::format(
      "accuracy, error = predicted / measured - 1\n\n"
      "{0:<{1}}    step, ms   step, ms   step, ms      p5 to p95   error, %   error, %  peak "
      "memory "
      "of each rank, MiB\n"
      "{2:<{1}}   estimated  simulated   measured       measured  estimated  simulated  "
      "predicted/measured, error %\n",
      "", width + 2, "plan");
  for (const CaseRecord& record : cases) {
    text += "\n" + heading(record) + "\n";
    for (const PlanRecord& plan : record.plans) {
      if (!was_measured(plan)) continue;
      text += fmt::format(
          "{}{:<{}}  {:>10} {:>10} {:>10}  {:>13}  {:>9}  {:>9}{}\n",
          is_disturbed(plan) ? "! " : "  ", name_of(plan, record), width,
          milliseconds_text(plan.row.estimate), milliseconds_text(plan.row.simulate),
          milliseconds_text(plan.row.measure),
          milliseconds_text(plan.measured->p5) + "-" + milliseconds_text(plan.measured->p95),
          error_of(plan.row.estimate, plan), error_of(plan.row.simulate, plan), peaks_of(plan));
    }
    if (!record.plans.empty() && was_measured(record.plans.front()))
      text += actions_of(record.plans.front());
  }
  return text + disturbance(cases);
}

}  // namespace pfeife
