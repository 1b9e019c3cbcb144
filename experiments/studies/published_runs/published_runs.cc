// Study: published runs of training on meshes, predicted. Writes predictions.csv and
// published_runs.svg into a folder, and the table to standard output.
#include <cmath>
#include <cstdio>

#include "experiments/studies/published_runs/scatter.h"
#include "experiments/studies/published_runs/score.h"
#include "experiments/studies/published_runs/study.h"
#include "planner/io/files/atomic_file.h"
#include "planner/ir/basics/decimals.h"
#include "planner/mesh/mesh_price.h"

namespace pfeife::published {
namespace {

std::string percent(double fraction) { return fixed(100 * fraction, 1); }

std::string line(const std::string& name, const Score& of, const std::string& calculon) {
  return "| " + name + " | " + std::to_string(of.runs) + " | " + percent(of.mean) + " | " +
         percent(of.median) + " | " + percent(of.largest) + " | " + percent(of.bias) + " | " +
         fixed(of.tau, 2) + " | " + calculon + " |\n";
}

/// Mean / largest error of Calculon (github.com/calculon-ai/calculon) with its a100_80g file.
std::string calculon(const std::string& source) {
  if (source == "korthikanti") return "3.65 / 8.9";
  if (source == "narayanan") return "10.3 / 17.8";
  return source == "vtrain" ? "14.1 / 69" : "";
}

/// Every third row gives the factor, the others are scored.
std::string calibrated(const std::vector<Pair>& pairs) {
  std::vector<Pair> given, scored;
  for (std::size_t i = 0; i < pairs.size(); ++i) (i % 3 == 0 ? given : scored).push_back(pairs[i]);
  const double factor = calibration(given);
  for (Pair& pair : scored) pair.predicted *= factor;
  return line("vTrain, others, times " + fixed(factor, 3) + " by rows 0, 3, ... 57", score(scored),
              "");
}

void study(const std::vector<Source>& sources, const std::filesystem::path& out) {
  std::string csv =
      "source,run,measured_s,predicted_s,error_percent,peak_gib,reduction_s,exposed_s,optimizer_"
      "s\n";
  std::string table =
      "| source | runs | mean error % | median | largest | bias | Kendall's tau | Calculon, mean / "
      "largest |\n"
      "|---|---|---|---|---|---|---|---|\n";
  std::vector<Series> drawn;
  for (const Source& source : sources) {
    std::vector<Pair> pairs;
    for (const PublishedRun& run : source.runs) {
      const MeshPrice price = price_mesh(run.run, source.network);
      pairs.push_back({seconds(price.plan.estimate), run.measured});
      Bytes peak;
      for (const Bytes bytes : price.plan.peak_memory) peak = std::max(peak, bytes);
      csv += source.name + ",\"" + run.name + "\"," + fixed(run.measured, 4) + "," +
             fixed(pairs.back().predicted, 4) + "," + percent(pairs.back().error()) + "," +
             gib(peak, 2) + "," + fixed(seconds(price.shares.front().reduction), 4) + "," +
             fixed(seconds(price.shares.front().exposed), 4) + "," +
             fixed(seconds(price.shares.front().optimizer), 4) + "\n";
    }
    table += line(source.title, score(pairs), calculon(source.name));
    if (source.name == "vtrain") table += calibrated(pairs);
    drawn.push_back({source.title, pairs});
  }
  write_file(out / "predictions.csv", csv);
  write_file(out / "published_runs.svg", scatter(drawn));
  std::fputs(table.c_str(), stdout);
}

}  // namespace
}  // namespace pfeife::published

int main(int argc, char** argv) {
  return pfeife::published::run_study("study_published_runs", argc, argv, pfeife::published::study);
}
