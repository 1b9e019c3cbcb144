// Study: is the planner's mesh ever slower than a published one, and does that one fit its memory?
// Writes meshes.csv, a line a run, and the table to standard output.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <thread>

#include "experiments/studies/published_runs/runs.h"
#include "experiments/studies/published_runs/study.h"
#include "planner/io/files/atomic_file.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/trace/trace.h"
#include "planner/mesh/mesh_search.h"
#include "sim/simulator.h"

namespace pfeife::published {
namespace {

struct MeshOfRun {
  MeshRun run;
  Nanoseconds estimated{0};
  std::optional<Nanoseconds> simulated;  ///< on links that are shared; nothing without SimGrid
  Bytes peak{0};                         ///< largest over ranks

  /// The step as the best engine at hand has it.
  Nanoseconds step() const { return simulated.value_or(estimated); }
};

struct Match {
  MeshOfRun published, planned;
  bool fits = false;    ///< the published one, in its devices' memory
  bool slower = false;  ///< the planned one
};

MeshOfRun mesh_of(const MeshRun& run, const Network& network) {
  const MeshPrice price = price_mesh(run, network);
  MeshOfRun of{run, price.plan.estimate, std::nullopt, Bytes{0}};
  for (const Bytes bytes : price.plan.peak_memory) of.peak = std::max(of.peak, bytes);
  if (!simulator_available()) return of;
  const DependencyGraph graph =
      dependencies(price.plan.lowered, stage_graph(price.plan.costs), price.placement,
                   {.queues = Queues::Pair, .links = Links::Shared});
  const auto ran =
      simulate(graph, price.plan.costs, price.placement, pipeline_cluster(run, network));
  if (const auto* trace = std::get_if<Trace>(&ran)) of.simulated = step_time(*trace);
  return of;
}

/// What the planner is asked: the published run with its mesh, microbatch size, recomputation,
/// stages a rank and ZeRO left open. Where the run has no ZeRO, 0 and 1; else its own. Context
/// parallelism is open where attention is fused.
MeshQuestion question_of(const MeshRun& published) {
  MeshQuestion question;
  question.run = published;
  question.run.sequence_parallel = true;
  question.devices = published.mesh.devices();
  if (published.mesh.size(Axis::Context) == 1) question.cp = {1};
  question.ep = {1};
  if (published.zero > 0)
    question.zero = {published.zero};
  else
    question.zero = {0, 1};
  if (std::ranges::find(question.stages_per_rank, published.stages_per_rank) ==
      question.stages_per_rank.end())
    question.stages_per_rank.push_back(published.stages_per_rank);
  return question;
}

/// Errors: ConfigError if no mesh fits.
Match match(const MeshRun& published, const Network& network, std::size_t threads) {
  const MeshAnswer answer = find_mesh(question_of(published), network, {.threads = threads});
  if (!answer.found()) throw ConfigError({}, "no mesh fits");
  Match match{mesh_of(published, network), mesh_of(answer.priced.front().run, network)};
  match.fits = match.published.peak <= memory_limit(network);
  match.slower = match.planned.step() > match.published.step();
  return match;
}

std::string columns(const MeshOfRun& of) {
  return "\"" + to_string(of.run.mesh) + "\"," + std::to_string(of.run.microbatch_size) + "," +
         std::to_string(of.run.stages_per_rank) + "," + to_string(of.run.recomputation) + "," +
         std::to_string(of.run.zero) + "," + fixed(seconds(of.estimated), 4) + "," +
         (of.simulated ? fixed(seconds(*of.simulated), 4) : "") + "," + gib(of.peak, 1);
}

std::string header(const std::string& who) {
  std::string text;
  for (const char* name : {"mesh", "microbatch", "stages_per_rank", "recompute", "zero",
                           "estimated_s", "simulated_s", "peak_gib"})
    text += "," + who + "_" + name;
  return text;
}

void study(const std::filesystem::path& root, const std::filesystem::path& out) {
  std::string csv = "source,run" + header("published") + header("planned") + "\n";
  std::string table =
      "| source | runs | planner slower | published over memory | time of the planner's mesh, mean "
      "| longest | shortest |\n|---|---|---|---|---|---|---|\n";
  const std::size_t threads = std::max(1u, std::thread::hardware_concurrency());
  for (const Source& source : sources_of(root)) {
    std::size_t slower = 0, over = 0;
    double logs = 0, most = 0, least = 1e9;
    for (const PublishedRun& run : source.runs) {
      std::fprintf(stderr, "\r%-12s %-60.60s", source.name.c_str(), run.name.c_str());
      const Match found = match(run.run, source.network, threads);
      csv += source.name + ",\"" + run.name + "\"," + columns(found.published) + "," +
             columns(found.planned) + "\n";
      const double ratio = seconds(found.planned.step()) / seconds(found.published.step());
      slower += found.slower, over += !found.fits;
      logs += std::log(ratio), most = std::max(most, ratio), least = std::min(least, ratio);
      if (found.slower || !found.fits)
        std::fprintf(stderr, "\r%s, %s: %s\n", source.name.c_str(), run.name.c_str(),
                     found.slower ? "the planner's mesh is slower" : "does not fit");
    }
    const auto runs = static_cast<double>(source.runs.size());
    table += "| " + source.title + " | " + std::to_string(source.runs.size()) + " | " +
             std::to_string(slower) + " | " + std::to_string(over) + " | " +
             fixed(std::exp(logs / runs), 2) + " | " + fixed(most, 2) + " | " + fixed(least, 2) +
             " |\n";
  }
  std::fprintf(stderr, "\r%-73s\r", "");
  write_file(out / "meshes.csv", csv);
  std::fputs(table.c_str(), stdout);
}

}  // namespace
}  // namespace pfeife::published

int main(int argc, char** argv) {
  return pfeife::published::run_study("study_published_meshes", argc, argv,
                                      pfeife::published::study);
}
