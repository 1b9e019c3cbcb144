// The planner against its goals, and beside reference mode on the same problems in the same run:
// time to plan on one core, the plan's estimate, how far the proof is from it.
//
//   benchmark_search_goals [NAME...]   the cases whose names contain one of the words; without any,
//                                      those that are not marked as long
//   benchmark_search_goals --caps [NAME...]   instead, the smallest memory that has a plan
//   benchmark_search_goals --threads [NAME...]   instead, the search and the judge of its
//                                      certificate on one thread and on all: time by the clock
//
// Times are of the processor, so that others on the machine count less. Exit code 0 in any case:
// a table, not a test.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "planner/schedule_tool/certify.h"
#include "planner/schedules/families.h"
#include "planner/search/reference/reference.h"
#include "tests/benchmarks/planner_comparison/comparison.h"

namespace pfeife {
namespace {

constexpr std::size_t kDevices = 8;  // of the cluster that the cases are on

struct Case {
  const char* name;
  InstanceSpec instance;
  std::vector<std::size_t> stages_per_rank;
  std::int64_t cap_mib;  ///< memory of every rank; 0 = what the devices have
  std::size_t effort;    ///< of the search
  double seconds, gap;   ///< the goal: a plan, and a proof that it is within `gap` per cent
  bool is_long = false;  ///< only if asked for: the search, or reference mode beside it
};

// Caps: 10 % above the smallest memory for which a plan was found (--caps).
const std::vector<Case>& cases() {
  static const InstanceSpec vit{"vit_g14_40", "a100_sxm4_80gb_x8", 8, 16, 0};
  static const InstanceSpec unet{"sdxl_unet", "a100_sxm4_80gb_x8", 8, 16, 0};
  static const InstanceSpec unet64{"sdxl_unet", "a100_sxm4_80gb_x8", 64, 64, 0};
  static const std::vector<Case> all{
      {"vit_v1", vit, {1}, 0, 150, 0.1, 0},
      {"vit_v12", vit, {1, 2}, 0, 1230, 1, 1},
      {"vit_v123_1s", vit, {1, 2, 3}, 0, 200, 1, 3},
      {"vit_v123_10s", vit, {1, 2, 3}, 0, 8000, 10, 2},
      {"unet_v1", unet, {1}, 0, 100, 1, 0},
      {"unet_v123_5s", unet, {1, 2, 3}, 0, 500, 5, 3},
      {"unet_v123_30s", unet, {1, 2, 3}, 0, 8000, 30, 2, true},
      {"vit_tight_v1", vit, {1}, 5137, 300, 10, 5},
      {"vit_tight_v12", vit, {1, 2}, 5137, 500, 10, 5},
      {"vit_tight_v123", vit, {1, 2, 3}, 5137, 500, 10, 5},
      {"unet_tight_v1", unet, {1}, 18511, 300, 10, 5},
      {"unet_tight_v12", unet, {1, 2}, 18511, 3400, 10, 5},
      {"unet_tight_v123", unet, {1, 2, 3}, 18511, 5800, 10, 5},
      {"unet64_v12", unet64, {1, 2}, 0, 300, 5, 17, true},
  };
  return all;
}

std::vector<ScheduleSpec> certified_schedules(const Case& c) {
  std::vector<std::string> names;
  for (const Family& family : families())
    if (family.certified) names.push_back(family.name);
  return search_set(c.instance.ranks, c.instance.microbatches, c.stages_per_rank, names);
}

struct Timed {
  Answer outcome;
  double seconds = 0;
};
template <class Work>
Timed timed(const Work& work) {
  const std::clock_t begin = std::clock();
  Timed result{work(), 0};
  result.seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return result;
}
double estimate_ms(const Answer& outcome) {
  return static_cast<double>(outcome.plans[0].estimate.count()) * 1e-6;
}

/// More ranks than the cluster has: as many of its first device, all joined by the path between
/// its first two.
InstanceReader::Instance read(InstanceReader& reader, const Case& c) {
  InstanceSpec spec = c.instance;
  spec.ranks = std::min(spec.ranks, kDevices);
  InstanceReader::Instance instance = reader.read(spec);
  if (c.instance.ranks > kDevices) {
    Cluster larger = *instance.cluster;
    const Path path = larger.path(DeviceId{0}, DeviceId{1});
    larger.kind_of_device.assign(c.instance.ranks, larger.kind_of_device[0]);
    larger.paths.assign(c.instance.ranks * c.instance.ranks, path);
    instance.cluster = std::make_shared<const Cluster>(std::move(larger));
    for (std::size_t r = kDevices; r < c.instance.ranks; ++r)
      instance.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
    instance.memory_limit.assign(c.instance.ranks, instance.memory_limit[0]);
  }
  if (c.cap_mib > 0)
    for (Bytes& limit : instance.memory_limit) limit = Bytes{c.cap_mib << 20};
  return instance;
}

void show(const Case& c, InstanceReader& reader) {
  const InstanceReader::Instance instance = read(reader, c);
  const Problem problem = instance.problem(certified_schedules(c));
  const Timed ours = timed([&] { return search(problem, {.iterations = c.effort}); });
  std::printf("%-14s %6.1f s %4.1f %% | %7.2f s ", c.name, c.seconds, c.gap, ours.seconds);
  if (ours.outcome.plans.empty()) {
    const bool proven = ours.outcome.infeasible && ours.outcome.infeasible->proven;
    std::printf("%29s ", proven ? "nothing fits (proven)" : "no plan, no proof");
  } else {
    const double plan = estimate_ms(ours.outcome);
    const double bound = static_cast<double>(ours.outcome.bound->time.count()) * 1e-6;
    const double gap = 100 * (plan / bound - 1);
    std::printf("%9.2f ms %6.2f %%  %-7s ", plan, gap,
                gap > c.gap                ? "no gap"
                : ours.seconds > c.seconds ? "no time"
                                           : "yes");
  }
  std::fflush(stdout);  // on 64 ranks reference mode takes minutes
  const Problem theirs =
      instance.problem(reference_set(c.instance.ranks, c.instance.microbatches, c.stages_per_rank));
  const Timed reference = timed([&] { return reference_search(theirs); });
  if (reference.outcome.plans.empty())
    std::printf("| %7.2f s      no plan\n", reference.seconds);
  else
    std::printf("| %7.2f s %9.2f ms\n", reference.seconds, estimate_ms(reference.outcome));
  std::fflush(stdout);
}

/// The smallest memory, to 0.2 %, for which a plan is found, and the largest that surely has none.
void show_cap(const Case& of, InstanceReader& reader) {
  Case c = of;
  c.cap_mib = 0;
  InstanceReader::Instance instance = read(reader, c);
  const auto found = [&](std::int64_t mib, bool& proven) {
    for (Bytes& limit : instance.memory_limit) limit = Bytes{mib << 20};
    const Answer outcome = search(instance.problem(certified_schedules(c)), {.iterations = 10});
    proven = outcome.infeasible && outcome.infeasible->proven;
    return !outcome.plans.empty();
  };
  std::int64_t low = 0, high = instance.memory_limit[0].value >> 20, none = 0;
  while (high - low > high / 500 + 1) {
    const std::int64_t middle = (low + high) / 2;
    bool proven = false;
    (found(middle, proven) ? high : low) = middle;
    if (proven) none = std::max(none, middle);
  }
  std::printf("%-14s a plan at %ld MiB, surely none at %ld MiB\n", c.name, static_cast<long>(high),
              static_cast<long>(none));
}

/// Seconds by the clock.
template <class Work>
double elapsed(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// How many times faster all threads are than one.
void show_threads(const Case& c, InstanceReader& reader) {
  const InstanceReader::Instance instance = read(reader, c);
  const Problem problem = instance.problem(certified_schedules(c));
  const std::size_t all = std::thread::hardware_concurrency();
  std::printf("%-14s |", c.name);
  Answer outcome;
  const auto ratio = [&](const auto& work) {
    const double one = elapsed([&] { work(std::size_t{1}); });
    const double many = elapsed([&] { work(all); });
    std::printf(" %7.2f s %7.2f s  x %4.2f |", one, many, one / many);
    std::fflush(stdout);
  };
  ratio([&](std::size_t threads) {
    outcome = search(problem, {.iterations = c.effort, .threads = threads, .certificate = true});
  });
  if (outcome.certificate)
    ratio([&](std::size_t threads) { tool::certify(*outcome.certificate, threads); });
  std::printf("\n");
}

bool asked_for(const Case& c, int count, char** words, int first) {
  if (first == count) return !c.is_long;
  for (int w = first; w < count; ++w)
    if (std::strstr(c.name, words[w]) != nullptr) return true;
  return false;
}

}  // namespace
}  // namespace pfeife

int main(int count, char** words) {
  using namespace pfeife;
  const bool caps = count > 1 && std::strcmp(words[1], "--caps") == 0;
  const bool threads = count > 1 && std::strcmp(words[1], "--threads") == 0;
  InstanceReader reader(PFEIFE_SOURCE_DIR "/configs");
  if (threads)
    std::printf("time by the clock | search: 1 thread, %u, ratio  | judge: 1 thread, %u, ratio\n",
                std::thread::hardware_concurrency(), std::thread::hardware_concurrency());
  else if (!caps)
    std::printf(
        "one core, processor time        | planner: time, estimate, gap, goal reached   | "
        "reference mode\n");
  for (const Case& c : cases())
    if (asked_for(c, count, words, caps || threads ? 2 : 1))
      (caps ? show_cap : threads ? show_threads : show)(c, reader);
}
