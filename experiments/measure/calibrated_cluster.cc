#include "experiments/measure/calibrated_cluster.h"

#include <fmt/format.h>

#include "planner/io/cluster/cluster_reader.h"

namespace pfeife {

std::string calibrated_cluster(const std::filesystem::path& file, const std::string& kind,
                               const std::map<std::string, CalibratedCurve>& curves,
                               const std::map<std::string, CalibratedLink>& links) {
  Replaced replaced;
  std::vector<YamlValue> notes;
  for (const std::string& line : read_cluster(file).notes) notes.push_back(yaml_string(line));
  const auto replace = [&](std::string key, std::vector<YamlValue> points, std::string note) {
    replaced.emplace_back(std::move(key), yaml_sequence(std::move(points)));
    notes.push_back(yaml_string(std::move(note)));
  };
  for (const auto& [precision, found] : curves) {
    std::vector<YamlValue> points;
    for (const EfficiencyCurve::Point& point : found.curve.points)
      points.push_back(
          yaml_sequence({yaml_scalar(fmt::format("{:.9f} GFLOP", point.work.value / 1e9)),
                         yaml_scalar(fmt::format("{:.6f}", point.fraction))}));
    replace("device_kinds." + kind + ".gemm_efficiency." + precision, std::move(points),
            fmt::format("gemm_efficiency of {}: from {} products of {} steps of a traced run, "
                        "{:+.1f} % on {} steps held out",
                        precision, found.products, found.steps, 100 * found.after, found.held_out));
  }
  for (const auto& [link, found] : links) {
    std::vector<YamlValue> points;
    for (const BandwidthCurve::Point& point : found.curve.points)
      points.push_back(
          yaml_sequence({yaml_amount(point.size),
                         yaml_scalar(fmt::format("{:.6f} GB/s", point.rate.value / 1e9))}));
    replace("links." + link + ".bandwidth", std::move(points),
            fmt::format("bandwidth of {}: from {} messages of a traced run, {} held out", link,
                        found.messages, found.held_out));
  }
  replaced.emplace_back("notes", yaml_sequence(std::move(notes)));
  const std::string text = cluster_text(file, replaced);
  parse_cluster(text, file.string());
  return text;
}

}  // namespace pfeife
