// Study: published runs of training on meshes, predicted. Writes predictions.csv and
// published_runs.svg into a folder, and the table to standard output.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "experiments/studies/published_runs/recent_runs.h"
#include "experiments/studies/published_runs/study.h"
#include "planner/io/files/atomic_file.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/error.h"
#include "planner/mesh/mesh_price.h"
#include "plots/figure/axis.h"

namespace pfeife::published {
namespace {

struct Series {
  std::string name;
  std::vector<Pair> pairs;  ///< seconds
};

using namespace plots;

constexpr double kWidth = 640, kHeight = 420, kLeft = 64, kRight = 424, kTop = 12, kBottom = 372;

struct Scale {
  double low = 1e9, high = 0;
  double share(double value) const { return std::log(value / low) / std::log(high / low); }
  double x(double value) const { return kLeft + (kRight - kLeft) * share(value); }
  double y(double value) const { return kBottom - (kBottom - kTop) * share(value); }
};

Scale scale_of(std::span<const Series> series) {
  Scale scale;
  for (const Series& shown : series)
    for (const Pair& pair : shown.pairs)
      for (const double value : {pair.measured, pair.predicted})
        scale.low = std::min(scale.low, value), scale.high = std::max(scale.high, value);
  return {scale.low / 1.15, scale.high * 1.15};
}

void draw_axes(Svg& svg, const Scale& scale) {
  std::vector<PredictedTick> ticks;
  for (const double tick : log_ticks(scale.low, scale.high))
    ticks.push_back({scale.share(tick), hundredths(std::llround(tick * 100))});
  draw_predicted_axes(svg, {kLeft, kRight, kTop, kBottom, "s", "estimated"}, ticks);
}

void draw_mark(Svg& svg, double x, double y, Color color) {
  svg.raw("<path d=\"M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z\" transform=\"translate(" + coordinate(x) +
          " " + coordinate(y) + ")\" fill=\"none\" stroke=\"" + hex(color) +
          "\" stroke-width=\"1.4\"/>\n");
}

/// An SVG with logarithmic axes and the line of no error.
std::string scatter(std::span<const Series> series) {
  const Scale scale = scale_of(series);
  Svg svg;
  draw_axes(svg, scale);
  svg.line(kLeft, kBottom, kRight, kTop, kMuted, " stroke-width=\"1.2\" stroke-dasharray=\"4 3\"");
  double y = kTop + 14;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Color color = kSeries[i % kSeries.size()];
    for (const Pair& pair : series[i].pairs)
      draw_mark(svg, scale.x(pair.measured), scale.y(pair.predicted), color);
    draw_mark(svg, kRight + 24, y - 4, color);
    svg.text(kRight + 34, y, series[i].name, {.size = 10.5});
    y += 18;
  }
  svg.line(kRight + 16, y - 4, kRight + 32, y - 4, kMuted,
           " stroke-width=\"1.2\" stroke-dasharray=\"4 3\"");
  svg.text(kRight + 38, y, "no error", {.size = 10.5});
  return svg.document(kWidth, kHeight, "Estimated over measured step times of published runs");
}

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

/// Estimated, of the run as it is or with all recomputed.
MeshPrice price_of(const PublishedRun& run, const Network& network, bool all_recomputed) {
  MeshRun asked = run.run;
  if (all_recomputed) asked.recomputation = Recompute::Full;
  try {
    return price_mesh(asked, network);
  } catch (const ConfigError& error) {
    throw ConfigError({}, run.source + ", " + run.name + ": " + error.what());
  }
}

/// Steps of a source, and the peaks that were measured.
struct SourcePairs {
  std::vector<Pair> steps, peaks;
};

/// Adds a line of predictions.csv for each run.
SourcePairs pairs_of(const Source& source, std::string& csv) {
  SourcePairs pairs;
  for (const PublishedRun& run : source.runs) {
    const MeshPrice price = price_of(run, source.network, false);
    double predicted = seconds(price.plan.estimate);
    if (run.half_recomputed)
      predicted = (predicted + seconds(price_of(run, source.network, true).plan.estimate)) / 2;
    pairs.steps.push_back({predicted, run.measured});
    Bytes peak;
    for (const Bytes bytes : price.plan.peak_memory) peak = std::max(peak, bytes);
    if (run.peak)
      pairs.peaks.push_back(
          {static_cast<double>(peak.value) / static_cast<double>(kGiB.value), *run.peak});
    const MeshShares& first = price.shares.front();
    csv += "\"" + source.name + "\",\"" + run.name + "\"," + source.device + "," +
           std::to_string(run.run.architecture.experts) + "," + fixed(run.measured, 4) + "," +
           fixed(predicted, 4) + "," + percent(pairs.steps.back().error()) + "," + gib(peak, 2) +
           "," + (run.peak ? fixed(*run.peak, 2) : "") + "," + fixed(seconds(first.compute), 4) +
           "," + fixed(seconds(first.collectives), 4) + "," + fixed(seconds(first.reduction), 4) +
           "," + fixed(seconds(first.exposed), 4) + "," + fixed(seconds(first.optimizer), 4) + "\n";
  }
  return pairs;
}

/// The runs that hide the exchange of tokens: under the schedule of the tables above, which hides
/// nothing, and as pairs on two streams, where collectives take a share of the device or none.
std::string hidden_experts(const std::vector<Source>& sources) {
  struct Pricing {
    const char* name;
    bool pairs;
    double overlap_factor;
  };
  constexpr double kDeepSeek = 132.0 / 112;  // 20 of 132 multiprocessors (arXiv 2412.19437)
  std::string table;
  for (const auto& [name, in_pairs, factor] :
       {Pricing{"experts' exchanges beside compute, priced one after another", false, 1},
        Pricing{"the same in pairs", true, 1},
        Pricing{"the same in pairs, overlap_factor 1.18", true, kDeepSeek}}) {
    std::vector<Pair> pairs;
    for (const Source& source : sources)
      for (PublishedRun run : source.runs) {
        if (!run.hides_experts) continue;
        if (in_pairs) run.run.schedule = "combined_1f1b";
        run.run.overlap_streams = in_pairs, run.run.overlap_factor = factor;
        const double predicted = seconds(price_of(run, source.network, false).plan.estimate);
        pairs.push_back({predicted, run.measured});
      }
    table += line(name, score(pairs), "");
  }
  return table;
}

void study(const std::filesystem::path& root, const std::filesystem::path& out) {
  std::string csv =
      "source,run,device,experts,measured_s,predicted_s,error_percent,peak_gib,"
      "measured_peak_gib,compute_s,"
      "collectives_s,"
      "reduction_s,exposed_s,optimizer_s\n";
  const std::string head =
      "| source | runs | mean error % | median | largest | bias | Kendall's tau | Calculon, mean / "
      "largest |\n"
      "|---|---|---|---|---|---|---|---|\n";
  std::string table = head;
  std::vector<Series> drawn;
  for (const Source& source : sources_of(root)) {
    const std::vector<Pair> pairs = pairs_of(source, csv).steps;
    table += line(source.title, score(pairs), calculon(source.name));
    if (source.name == "vtrain") table += calibrated(pairs);
    drawn.push_back({source.title, pairs});
  }
  table += "\n" + head;
  const std::vector<Source> recent =
      read_recent_sources(root / "experiments/studies/published_runs/data", root / "configs");
  for (const Source& source : recent) {
    const SourcePairs pairs = pairs_of(source, csv);
    table += line(source.title, score(pairs.steps), "");
    if (source.name.starts_with("SimuMax"))
      table += line(source.title + ", peak memory", score(pairs.peaks), "");
  }
  table += "\n" + head + hidden_experts(recent);
  write_file(out / "predictions.csv", csv);
  write_file(out / "published_runs.svg", scatter(drawn));
  std::fputs(table.c_str(), stdout);
}

}  // namespace
}  // namespace pfeife::published

int main(int argc, char** argv) {
  return pfeife::published::run_study("study_published_runs", argc, argv, pfeife::published::study);
}
