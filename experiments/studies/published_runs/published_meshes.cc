// Study: is the planner's mesh ever slower than a published one, and does that one fit its memory?
// Writes meshes.csv, a line a run, and the table to standard output.
#include <cmath>
#include <cstdio>
#include <thread>

#include "experiments/studies/published_runs/against_planner.h"
#include "experiments/studies/published_runs/study.h"
#include "planner/io/files/atomic_file.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife::published {
namespace {

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
