#include "runtime/profile/cluster_text.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace pfeife {
namespace {

std::string number(double value, const char* unit) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g%s", value, unit);
  return text;
}

void write_kind(std::ostream& out, const DeviceKind& kind) {
  out << "  " << kind.name << ":\n"
      << (kind.type == DeviceType::Cpu ? "    type: cpu\n" : "")
      << "    memory: " << kind.memory.value / kMiB.value
      << " MiB   # the machine's, shared evenly\n"
      << "    memory_bandwidth: " << number(kind.memory_bandwidth.value / 1e9, " GB/s")
      << "   # read and written by a copy of 64 MiB\n"
      << "    memory_efficiency: " << number(kind.memory_efficiency, "") << "\n    peak: {";
  std::string comma;
  for (const auto& [precision, peak] : kind.peak) {
    out << comma << precision << ": " << number(peak.value / 1e9, " GFLOP/s");
    comma = ", ";
  }
  out << "}   # the best of the products below\n    gemm_efficiency:\n";
  for (const auto& [precision, curve] : kind.gemm_efficiency) {
    out << "      " << precision << ": [";
    comma.clear();
    for (const auto& point : curve.points) {
      out << comma << "[" << number(point.work.value / 1e9, " GFLOP") << ", "
          << number(point.fraction, "") << "]";
      comma = ", ";
    }
    out << "]\n";
  }
  out << "    kernel_overhead: " << kind.kernel_overhead.count()
      << " ns   # an operator on one number, autograd included\n";
}

/// Without points that noise made as fast as a smaller one: larger messages do not take less time.
void write_bandwidth(std::ostream& out, const LinkMeasurement& link) {
  std::string comma;
  double longest = 0;  // after the latency, of the points written
  for (const LinkPoint& point : link.points) {
    const auto time = static_cast<double>((point.one_way - link.latency).count());
    if (!comma.empty() && time < 1.01 * longest) continue;
    longest = std::max(time, 1.0);
    out << comma << "[" << point.bytes.value / kKiB.value << " KiB, "
        << number(rate(point, point.one_way, link.latency).value / 1e9, " GB/s") << "]";
    comma = ", ";
  }
}

}  // namespace

std::string cluster_text(const std::string& name, const DeviceKind& kind, std::size_t devices,
                         const LinkMeasurement& link, const std::string& origin) {
  std::ostringstream out;
  out << "# Written by `pfeife-run profile --links`: measured " << origin << ".\n"
      << "version: 1\nname: " << name << "\nnotes: [\"measured " << origin << "\"]\n"
      << "device_kinds:\n";
  write_kind(out, kind);
  out << "devices: [{kind: " << kind.name << ", count: " << devices << "}]\nlinks:\n"
      << "  # message, ms alone, ms with another one going the other way:\n";
  for (const LinkPoint& point : link.points) {
    char line[100];
    std::snprintf(line, sizeof line, "  #   %6lld KiB  %9.4f  %9.4f\n",
                  static_cast<long long>(point.bytes.value / kKiB.value),
                  milliseconds(point.one_way), milliseconds(point.both));
    out << line;
  }
  out << "  - {name: socket, between: [";
  for (std::size_t a = 0; a < devices; ++a)
    for (std::size_t b = a + 1; b < devices; ++b)
      out << (a + b > 1 ? ", " : "") << "[" << a << ", " << b << "]";
  out << "],\n     bandwidth: [";
  write_bandwidth(out, link);
  out << "],\n     latency: " << link.latency.count()
      << " ns, duplex: " << (link.half_duplex() ? "half" : "full") << "}\n"
      << "routes:\n  - {over: socket}\n";
  return out.str();
}

}  // namespace pfeife
