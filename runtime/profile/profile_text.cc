// ProfileReport for people.
#include <cstdio>
#include <sstream>

#include "runtime/profile/profiler.h"

namespace pfeife {
namespace {

double percent(Nanoseconds a, Nanoseconds b) {
  const auto whole_time = static_cast<double>(b.count());
  return b.count() == 0 ? 0 : (static_cast<double>(a.count()) / whole_time - 1) * 100;
}

std::string whole(const char* name, const MeasuredSum& sum) {
  char line[120];
  std::snprintf(line, sizeof line, "%-26s %10.4f %9.4f %4zu of %4zu", name, milliseconds(sum.whole),
                milliseconds(sum.whole_spread), sum.interrupted, sum.samples);
  return line;
}

std::string with_nodes(const char* name, const MeasuredSum& sum) {
  char line[80];
  std::snprintf(line, sizeof line, " %10.4f %+8.2f\n", milliseconds(sum.nodes),
                percent(sum.nodes, sum.whole));
  return whole(name, sum) + line;
}

}  // namespace

std::string to_string(const ProfileReport& report, const Graph& graph) {
  const Profile& profile = report.profile;
  std::ostringstream out;
  out << graph.name << " on " << profile.device_kind << ", "
      << to_string(profile.training.precision) << ", " << profile.training.microbatch_size
      << " samples a microbatch\nmeasured " << profile.origin << "\n\n"
      << "ms                              whole    spread  interrupted   nodes    off, %\n"
      << with_nodes("F", report.forward) << with_nodes("I", report.backward_input)
      << with_nodes("W", report.backward_weight)
      << with_nodes("optimizer, once a step", report.optimizer) << whole("B", report.backward)
      << "\n"
      << whole("F of a stage with I and W", report.split_forward) << "\n\n";
  char line[160];
  std::snprintf(
      line, sizeof line, "I + W against B: %+.2f %%\n",
      percent(report.backward_input.whole + report.backward_weight.whole, report.backward.whole));
  out << line;
  if (const auto& variation = profile.variation) {
    std::snprintf(line, sizeof line, "vary by %.2f %% each, steps as a whole by %.2f %%\n",
                  100 * variation->cv, 100 * variation->drift);
    out << line;
  }
  out << "kept from F to B " << to_string(report.saved) << ", from I to W "
      << to_string(report.weight_saved) << "\nexecutor " << to_string(profile.executor_overhead)
      << " an action\n";
  if (const auto& more = profile.stage_overheads) {
    std::snprintf(line, sizeof line,
                  "a stage beyond its nodes, ms: %.4f an F, %.4f an I, %.4f a W\n",
                  milliseconds(more->forward), milliseconds(more->backward_input),
                  milliseconds(more->backward_weight));
    out << line;
  }
  if (const auto& times = report.messages) {
    std::snprintf(line, sizeof line,
                  "a message that is waited for, ms: %.4f until it is gone on with, %.4f of it in "
                  "handing over;\n",
                  milliseconds(times->arrival), milliseconds(times->sending));
    out << line;
    std::snprintf(line, sizeof line,
                  "  between idle processes %.4f; what follows takes %.4f, %.4f without the wait: "
                  "%.4f more\n",
                  milliseconds(times->echo), milliseconds(times->after_wait),
                  milliseconds(times->without_wait), milliseconds(times->overhead()));
    out << line;
  }
  return out.str();
}

}  // namespace pfeife
