#include "experiments/plans/case_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "experiments/plans/case_problem.h"
#include "planner/ir/request/check.h"
#include "planner/search/price/search_memory.h"

namespace pfeife {
namespace {

constexpr Bytes kNoted{std::int64_t{2} << 30};
/// The simulator's objects for one task: an estimate for SimGrid 3.32.
constexpr Bytes kOfSimulatedTask{4000};

/// The number in a file of one line; nothing where it is "max", or not there.
std::optional<std::int64_t> number_in(const char* file) {
  std::int64_t number = 0;
  std::ifstream in(file);
  if (in >> number) return number;
  return std::nullopt;
}

/// kB of a line of /proc/meminfo.
std::optional<std::int64_t> meminfo(const std::string& name) {
  std::ifstream in("/proc/meminfo");
  std::string word;
  std::int64_t number = 0;
  while (in >> word)
    if (word == name + ":" && in >> number) return number * 1024;
  return std::nullopt;
}

}  // namespace

Bytes memory_needed(const CaseInputs& inputs, std::size_t threads) {
  const Request& config = *inputs.config;
  if (!config.plan.searched()) return Bytes{0};
  // The simulator adds as many as the search keeps (simulated_choice.h).
  const auto plans = static_cast<std::int64_t>(
      (config.simulate ? 2 : 1) * config.plan.rule().compared + config.baselines.size());
  const auto at_once = static_cast<std::int64_t>(threads);
  Bytes most{0};
  for (const std::vector<ScheduleSpec>& schedules : searched_schedules(config, *inputs.layers)) {
    const ScheduleSpec& largest = *std::ranges::max_element(schedules, {}, &ScheduleSpec::stages);
    const Bytes plan = plan_memory(largest), graph = graph_memory(largest);
    const Bytes planning =
        search_memory(*inputs.layers, schedules) + at_once * judging_memory(largest);
    Bytes evaluated = plans * plan + graph;
    if (config.simulate) {
      const Bytes engine = static_cast<std::int64_t>(tasks_of(largest)) * kOfSimulatedTask;
      evaluated = plans * (2 * plan + graph) + std::min(at_once, plans) * engine;
    }
    most = std::max({most, planning, evaluated});
  }
  return most;
}

Bytes memory_available() {
  std::int64_t most = meminfo("MemAvailable").value_or(std::numeric_limits<std::int64_t>::max());
  const auto limit = number_in("/sys/fs/cgroup/memory.max");
  const auto used = number_in("/sys/fs/cgroup/memory.current");
  if (limit && used) most = std::min(most, std::max<std::int64_t>(0, *limit - *used));
  rlimit own{};
  if (getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur != RLIM_INFINITY)
    most = std::min(most, static_cast<std::int64_t>(own.rlim_cur));
  return Bytes{most};
}

void check_memory(const Request& config, Bytes needed, Bytes available) {
  if (needed <= available) return;
  throw RefusedWish("microbatches",
                    "case " + config.name + " takes about " + to_string(needed) +
                        " of this machine's memory, and " + to_string(available) +
                        " are available; take fewer microbatches (a longer step only repeats "
                        "itself), fewer plan.families or plan.stages_per_rank, or engines: "
                        "estimate");
}

std::string memory_note(const Request& config, Bytes needed, Bytes available) {
  if (needed < kNoted) return "";
  return "case " + config.name + " takes about " + to_string(needed) +
         " of this machine's memory (available: " + to_string(available) +
         "); fewer microbatches, plan.families or plan.stages_per_rank take less";
}

}  // namespace pfeife
