#include "sim/simulator.h"

#include <algorithm>
#include <cstring>

#include "planner/ir/basics/error.h"
#include "sim/engine.h"
#include "sim/process_pool.h"
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

/// Makes the runs from `first` to before `last` of a job, in this process.
void make_runs(
    const SimulationJob& job, std::size_t first, std::size_t last,
    const std::function<void(std::size_t run, std::vector<std::int64_t> ends)>& on_ends) {
  const Workload work = workload_of(job);
  std::vector<JitterSource> jitter;
  for (std::size_t run = first; run < last; ++run)
    jitter.push_back(run == 0 ? JitterSource({}, 0) : JitterSource(job.jitter, run - 1));
  load_engine()(
      {.workload = work,
       .cluster = *job.cluster,
       .ranks = job.graph->ranks,
       .runs = last - first,
       .busy =
           [&](std::size_t run, std::size_t task) {
             return jitter[run].vary(work.items[task].busy, task, job.graph->tasks[task].kind);
           },
       .on_ends = [&](std::size_t run,
                      std::vector<std::int64_t> ends) { on_ends(first + run, std::move(ends)); }});
}

void check(const SimulationJob& job) {
  PFEIFE_CHECK(job.graph && job.costs && job.placement && job.cluster, job.name, ": incomplete");
  PFEIFE_CHECK(job.placement->ranks() >= job.graph->ranks, job.name, ": a rank without a device");
  for (const DeviceId device : job.placement->device_of_rank)
    PFEIFE_CHECK(device.index() < job.cluster->devices(), job.name, ": device ", device.value,
                 " is not in the cluster");
}

std::string to_bytes(const std::vector<std::int64_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::int64_t)};
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

/// In the process of a piece: every end of run 0 if the trace is wanted or some task never ran;
/// else the last end; then the last end of each further run.
std::string run_piece(const SimulationJob& job, const Piece& piece) {
  std::vector<std::int64_t> answer;
  make_runs(job, piece.first, piece.last,
            [&](std::size_t run, const std::vector<std::int64_t>& ends) {
              const bool stuck = std::find(ends.begin(), ends.end(), -1) != ends.end();
              if (stuck || (run == 0 && job.trace)) {
                answer.push_back(static_cast<std::int64_t>(ends.size()));
                answer.insert(answer.end(), ends.begin(), ends.end());
              } else {
                answer.insert(answer.end(), {1, last_end(ends)});
              }
            });
  return to_bytes(answer);
}

/// In the caller: files what a piece has sent.
void file_results(const SimulationJob& job, const Piece& piece,
                  const std::vector<std::int64_t>& answer, SimulationResult& result) {
  std::size_t at = 0;
  for (std::size_t run = piece.first; run < piece.last; ++run) {
    const auto count = static_cast<std::size_t>(answer.at(at));
    const std::vector<std::int64_t> ends(
        answer.begin() + static_cast<std::ptrdiff_t>(at + 1),
        answer.begin() + static_cast<std::ptrdiff_t>(at + 1 + count));
    at += 1 + count;
    if (auto blocked = deadlock(ends)) {
      result.deadlock = std::move(blocked);
    } else if (run > 0) {
      result.repetitions[run - 1] = Nanoseconds{last_end(ends)};
    } else {
      result.step_time = Nanoseconds{last_end(ends)};
      if (job.trace) result.trace = trace_of(*job.graph, ends, job.launch_overhead);
    }
  }
}

}  // namespace

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
  std::vector<std::int64_t> ends;
  PoolWork work;
  work.pieces = 1;
  work.run = [&](std::size_t) {
    std::string last;
    make_runs(job, wanted / kBlock * kBlock, wanted + 1,
              [&](std::size_t, const std::vector<std::int64_t>& found) { last = to_bytes(found); });
    return last;
  };
  work.name = [&](std::size_t) { return name_of(job); };
  work.on_result = [&](std::size_t, std::string_view bytes) { ends = from_bytes(bytes); };
  load_engine();  // once, before the processes
  run_in_processes(work);
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
  PoolWork work;
  work.pieces = pieces.size();
  work.workers = pool.workers;
  work.run = [&](std::size_t p) { return run_piece(jobs[pieces[p].job], pieces[p]); };
  work.name = [&](std::size_t p) { return name_of(jobs[pieces[p].job]); };
  work.on_result = [&](std::size_t p, std::string_view bytes) {
    const Piece& piece = pieces[p];
    file_results(jobs[piece.job], piece, from_bytes(bytes), results[piece.job]);
    done += piece.last - piece.first;
    if (pool.progress) pool.progress(done, total);
  };
  load_engine();  // once, before the processes
  run_in_processes(work);
  for (SimulationResult& result : results)
    if (result.deadlock) result.repetitions.clear();
  return results;
}

}  // namespace pfeife
