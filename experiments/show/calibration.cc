#include <fmt/format.h>

#include "experiments/show/texts.h"
#include "planner/ir/basics/grid.h"
#include "planner/ir/trace/accuracy.h"
#include "plots/screen/columns.h"

namespace pfeife {
namespace {

GridCell error_of(Nanoseconds predicted, Nanoseconds measured) {
  return {fmt::format("{:+.1f} %",
                      100 * relative_error(milliseconds(predicted), milliseconds(measured)))};
}

std::string profile_table(const CalibratedProfile& profile) {
  const auto row = [](const char* what, Nanoseconds measured, Nanoseconds before,
                      Nanoseconds after) {
    return GridRow{{{what},
                    {milliseconds_text(measured)},
                    {milliseconds_text(before)},
                    error_of(before, measured),
                    {milliseconds_text(after)},
                    error_of(after, measured)}};
  };
  return fmt::format(
             "profile: from {} steps, judged by {} others; estimated, without contention\n\n",
             profile.steps, profile.held_out) +
         grid_text({{"steps held out", false},
                    {"measured ms"},
                    {"before ms"},
                    {"error"},
                    {"calibrated ms"},
                    {"error"}},
                   {row("step", profile.step, profile.step_before, profile.step_after),
                    row("compute of all ranks", profile.compute, profile.compute_before,
                        profile.compute_after)},
                   false);
}

std::string curves_table(const Calibrated& calibrated) {
  std::vector<GridRow> rows;
  for (const auto& [precision, found] : calibrated.curves)
    rows.push_back({{{calibrated.kind + ", " + precision},
                     {std::to_string(found.products)},
                     {std::to_string(found.curve.points.size())},
                     {std::to_string(found.held_out)},
                     {fmt::format("{:+.1f} %", 100 * found.before)},
                     {fmt::format("{:+.1f} %", 100 * found.after)}}});
  return "matrix products, time of all on the steps held out\n\n" +
         grid_text({{"gemm_efficiency", false},
                    {"products"},
                    {"points"},
                    {"held-out steps"},
                    {"before"},
                    {"calibrated"}},
                   rows, false);
}

std::string links_table(const Calibrated& calibrated, std::size_t width) {
  std::vector<GridRow> rows;
  for (const auto& [name, link] : calibrated.links)
    rows.push_back({{{name},
                     {std::to_string(link.messages)},
                     {std::to_string(link.curve.points.size())},
                     {std::to_string(link.held_out)},
                     {fmt::format("{:+.1f} %", 100 * link.before)},
                     {fmt::format("{:+.1f} %", 100 * link.after)},
                     {link.latency ? to_string(*link.latency) : "stays"}}});
  std::string text =
      "messages that were alone and waited for, median error on the steps held out\n\n" +
      grid_text({{"link", false},
                 {"messages"},
                 {"points"},
                 {"held out"},
                 {"before"},
                 {"calibrated"},
                 {"latency"}},
                rows, false);
  for (const auto& [name, link] : calibrated.links)
    if (!link.latency)
      text += wrapped("The latency of " + name + " stays: " + link.latency_stays + ".", width);
  return text;
}

}  // namespace

std::string calibration_text(const Calibrated& calibrated, std::size_t width) {
  std::string text;
  if (calibrated.profile) text += profile_table(*calibrated.profile);
  if (!calibrated.curves.empty())
    text += (text.empty() ? "" : "\n") + curves_table(calibrated);
  else
    text += "\n" + wrapped(
                       "No efficiency curves: the traces have no shapes of matrix products "
                       "(record_shapes=True), or none in two steps.",
                       width);
  if (!calibrated.links.empty())
    text += "\n" + links_table(calibrated, width);
  else
    text += "\n" + wrapped(
                       "No links: no message was alone on its way while its receiver waited for "
                       "it, or none in two steps.",
                       width);
  return text;
}

}  // namespace pfeife
