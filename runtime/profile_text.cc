// ProfileReport for people.
#include <cstdio>
#include <sstream>

#include "runtime/profiler.h"

namespace pfeife {
namespace {

std::string row(const char* name, const MeasuredSum& sum) {
  char line[160];
  const double whole = milliseconds(sum.whole), nodes = milliseconds(sum.nodes);
  std::snprintf(line, sizeof line, "%-22s %12.4f %9.4f %14.4f %+9.2f\n", name, whole,
                milliseconds(sum.whole_spread), nodes, whole > 0 ? (nodes / whole - 1) * 100 : 0.0);
  return line;
}

double percent(Nanoseconds a, Nanoseconds b) {
  return b.count() == 0 ? 0
                        : (static_cast<double>(a.count()) / static_cast<double>(b.count()) - 1) *
                              100;
}

}  // namespace

std::string to_string(const ProfileReport& report, const Graph& graph) {
  const Profile& profile = report.profile;
  std::ostringstream out;
  out << graph.name << " on " << profile.device_kind << ", "
      << to_string(profile.training.precision) << ", " << profile.training.microbatch_size << " samples a microbatch: measured "
      << profile.origin << "\n\n";
  out << "of a microbatch            whole, ms    spread  sum of nodes     off, %\n";
  out << row("F", report.forward) << row("I", report.backward_input)
      << row("W", report.backward_weight) << row("optimizer (a step)", report.optimizer);
  char line[200];
  const Nanoseconds halves = report.backward_input.whole + report.backward_weight.whole;
  std::snprintf(line, sizeof line,
                "\nB %.4f ms; I + W %.4f ms, %+.2f %%; F before I %+.2f %%\n",
                milliseconds(report.backward), milliseconds(halves),
                percent(halves, report.backward),
                percent(report.split_forward, report.forward.whole));
  out << line;
  out << "saved from F to B " << to_string(report.saved) << ", from I to W "
      << to_string(report.weight_saved) << "; executor "
      << to_string(profile.executor_overhead) << " an action\n";
  return out.str();
}

}  // namespace pfeife
