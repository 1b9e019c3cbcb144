#include "experiments/machine/machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <thread>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool is_ours(int processor) {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_ISSET(processor, &allowed);
}

double busy_seconds_now() {
  std::ostringstream stat;
  stat << std::ifstream("/proc/stat").rdbuf();
  return busy_seconds(stat.str(), static_cast<double>(sysconf(_SC_CLK_TCK)), is_ours);
}

double own_seconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    getrusage(who, &used);
    for (const timeval& time : {used.ru_utime, used.ru_stime})
      sum += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  return sum;
}

}  // namespace

std::string machine_line() {
  std::string line = std::to_string(std::thread::hardware_concurrency()) + " x ";
  std::ifstream file("/proc/cpuinfo");
  for (std::string text; std::getline(file, text);)
    if (text.starts_with("model name")) return line + text.substr(text.find(':') + 2);
  return line + "unknown processor";
}

double busy_seconds(const std::string& stat, double ticks_per_second, bool (*counts)(int)) {
  double ticks = 0;
  std::istringstream lines(stat);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("cpu") || line.size() < 4 || line[3] == ' ') continue;
    std::istringstream words(line.substr(3));
    int processor = 0;
    double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0,
           stolen = 0;
    words >> processor >> user >> nice >> system >> idle >> waiting >> interrupts >> soft >> stolen;
    if (counts(processor)) ticks += user + nice + system + interrupts + soft + stolen;
  }
  return ticks / ticks_per_second;
}

OtherPrograms::OtherPrograms()
    : began_(seconds_now()), busy_(busy_seconds_now()), own_(own_seconds()) {}

double OtherPrograms::processors() const {
  const double passed = seconds_now() - began_;
  const double others = (busy_seconds_now() - busy_) - (own_seconds() - own_);
  return passed > 0 ? std::max(others / passed, 0.0) : 0;
}

std::string busy_warning(double processors) {
  if (processors < kTooBusy) return "";
  return stream_all("other programs kept ", std::fixed, std::setprecision(1), processors, " of ",
                    std::thread::hardware_concurrency(), " processors busy");
}

}  // namespace pfeife
