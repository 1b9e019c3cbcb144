#include "sim/simulator.h"

#include <algorithm>
#include <cstring>

#include "planner/ir/basics/error.h"
#include "sim/engine.h"
#include "sim/server/server.h"
#include "sim/workload.h"

namespace pfeife {
namespace {

// The runs of a job are numbered: 0 without jitter, k + 1 repetition k. A process makes up to
// kBlock of them, always from the first of their block, so that every result has the same history
// whoever asks for it (see engine.h).
constexpr std::size_t kBlock = 16;

std::size_t runs(const SimulationJob& job) {
  return 1 + (job.jitter.varies() ? job.repetitions : 0);
}

/// The runs of one process: from `first`, which starts a block, to before `last`.
struct Piece {
  std::size_t job = 0;
  std::size_t first = 0, last = 0;
};

void check(const SimulationJob& job) {
  PFEIFE_CHECK(job.graph && job.costs && job.placement && job.cluster, job.name, ": incomplete");
  PFEIFE_CHECK(job.placement->ranks() >= job.graph->ranks, job.name, ": a rank without a device");
  for (const DeviceId device : job.placement->device_of_rank)
    PFEIFE_CHECK(device.index() < job.cluster->devices(), job.name, ": device ", device.value,
                 " is not in the cluster");
}

std::vector<std::int64_t> from_bytes(std::string_view bytes) {
  std::vector<std::int64_t> values(bytes.size() / sizeof(std::int64_t));
  if (!values.empty())
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(std::int64_t));
  return values;
}

std::optional<Deadlock> deadlock(const std::vector<std::int64_t>& ends) {
  Deadlock found;
  for (std::size_t t = 0; t < ends.size(); ++t)
    if (ends[t] < 0) found.blocked.emplace_back(static_cast<std::int64_t>(t));
  if (found.blocked.empty()) return std::nullopt;
  return found;
}

std::int64_t last_end(const std::vector<std::int64_t>& ends) {
  return ends.empty() ? 0 : *std::max_element(ends.begin(), ends.end());
}

std::string name_of(const SimulationJob& job) {
  return job.name.empty() ? "simulation" : "simulation of " + job.name;
}

/// The request for the runs of a piece.
std::string request(const SimulationJob& job, const Piece& piece,
                    std::optional<std::uint64_t> whole) {
  EngineWork work{.jitter = job.jitter, .first = piece.first, .last = piece.last, .whole = whole};
  try {
    work.workload = workload_of(job);
  } catch (const InternalError& error) {
    throw RuntimeFault(name_of(job) + " failed: " + error.what());
  }
  return to_bytes(work);
}

void check_available() {
  if (!simulator_available())
    throw RuntimeFault(
        "this program was built without the simulator: install SimGrid 3.32 (Debian: "
        "libsimgrid-dev) and build again");
}

/// What a piece has answered, run by run (server_program.cc): on_run(run, ends or the last end).
void read_answer(std::string_view bytes, const Piece& piece, const auto& on_run) {
  const std::vector<std::int64_t> answer = from_bytes(bytes);
  std::size_t at = 0;
  for (std::size_t run = piece.first; run < piece.last; ++run) {
    const auto count = static_cast<std::size_t>(answer.at(at));
    PFEIFE_CHECK(count < answer.size() - at, "an answer that is cut short");
    on_run(run, std::vector(answer.begin() + static_cast<std::ptrdiff_t>(at + 1),
                            answer.begin() + static_cast<std::ptrdiff_t>(at + 1 + count)));
    at += 1 + count;
  }
}

/// Files what a piece has answered.
void file_results(const SimulationJob& job, const Piece& piece, std::string_view bytes,
                  SimulationResult& result) {
  read_answer(bytes, piece, [&](std::size_t run, const std::vector<std::int64_t>& ends) {
    if (auto blocked = deadlock(ends)) {
      result.deadlock = std::move(blocked);
    } else if (run > 0) {
      result.repetitions[run - 1] = Nanoseconds{last_end(ends)};
    } else {
      result.step_time = Nanoseconds{last_end(ends)};
      if (job.trace) result.trace = trace_of(*job.graph, ends, job.launch_overhead);
    }
  });
}

}  // namespace

bool simulator_available() { return PFEIFE_WITH_SIMGRID != 0; }

std::variant<Trace, Deadlock> simulate(const DependencyGraph& graph, const StageCosts& costs,
                                       const Placement& placement, const Cluster& cluster,
                                       const SimulationOptions& options) {
  const SimulationJob job{.graph = &graph,
                          .costs = &costs,
                          .placement = &placement,
                          .cluster = &cluster,
                          .launch_overhead = options.launch_overhead,
                          .jitter = options.jitter};
  check(job);
  const std::size_t wanted = options.jitter.varies() ? options.repetition + 1 : 0;
  const Piece piece{0, wanted / kBlock * kBlock, wanted + 1};
  std::vector<std::int64_t> ends;
  check_available();
  run_by_server({.pieces = 1,
                 .request = [&](std::size_t) { return request(job, piece, wanted); },
                 .name = [&](std::size_t) { return name_of(job); },
                 .on_result =
                     [&](std::size_t, std::string_view bytes) {
                       read_answer(bytes, piece, [&](std::size_t, auto found) {
                         ends = std::move(found);  // those of the last run stay
                       });
                     }});
  if (auto blocked = deadlock(ends)) return *std::move(blocked);
  return trace_of(graph, ends, options.launch_overhead);
}

Nanoseconds SimulationResult::quantile(double p) const {
  return repetitions.empty() ? step_time : pfeife::quantile(repetitions, p);
}

std::vector<SimulationResult> simulate_all(std::span<const SimulationJob> jobs,
                                           const SimulationPool& pool) {
  std::vector<SimulationResult> results(jobs.size());
  std::vector<Piece> pieces;
  std::size_t total = 0, done = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    check(jobs[j]);
    const std::size_t count = runs(jobs[j]);
    for (std::size_t first = 0; first < count; first += kBlock)
      pieces.push_back({j, first, std::min(first + kBlock, count)});
    results[j].repetitions.resize(count - 1);
    total += count;
  }
  check_available();
  run_by_server({.pieces = pieces.size(),
                 .workers = pool.workers,
                 .request =
                     [&](std::size_t p) {
                       const SimulationJob& job = jobs[pieces[p].job];
                       return request(job, pieces[p],
                                      job.trace ? std::optional<std::uint64_t>(0) : std::nullopt);
                     },
                 .name = [&](std::size_t p) { return name_of(jobs[pieces[p].job]); },
                 .on_result =
                     [&](std::size_t p, std::string_view bytes) {
                       const Piece& piece = pieces[p];
                       file_results(jobs[piece.job], piece, bytes, results[piece.job]);
                       done += piece.last - piece.first;
                       if (pool.progress) pool.progress(done, total);
                     }});
  for (SimulationResult& result : results)
    if (result.deadlock) result.repetitions.clear();
  return results;
}

}  // namespace pfeife
