#include "runtime/device/machine.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <limits>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

std::string today() {
  const std::time_t time = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&time));
  return text;
}

}  // namespace

std::string where(at::Device device) {
  if (!device.is_cpu()) return stream_all(card_name(device), ", host ", processor());
  const int threads = at::get_num_threads();
  return stream_all(processor(), ", ", threads, threads == 1 ? " thread" : " threads");
}

std::string where_and_when(at::Device device) { return today() + ", " + where(device); }

std::string busy_warning() {
  double load = 0;
  const double cores = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  if (getloadavg(&load, 1) != 1 || load < 0.5 * cores) return "";
  return stream_all("warning: the machine is busy (load ", load, " on ", cores,
                    " cores); times will be those of a busy machine\n");
}

Bytes machine_memory() {
  std::int64_t bytes = std::int64_t{sysconf(_SC_PAGESIZE)} * sysconf(_SC_PHYS_PAGES);
  std::ifstream limit("/sys/fs/cgroup/memory.max");  // "max" where there is none
  if (std::int64_t of_group = 0; limit >> of_group && of_group > 0)
    bytes = std::min(bytes, of_group);
  return {bytes};
}

Bytes most_process_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return {std::atoll(line.c_str() + 6) * 1024};
  return {0};
}

void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most it takes
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

}  // namespace pfeife
