#include "experiments/measure/calibrated_cluster.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/files/yaml_document.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// The key of the latency of the ways over a link, if they have one of their own: their route's,
/// which holds for the whole way.
std::optional<std::string> latency_key(const std::filesystem::path& file, const std::string& link) {
  const YamlDocument document = YamlDocument::read(file);
  const auto routes = document.root().find("routes");
  std::optional<std::string> key;
  for (std::size_t r = 0; routes && r < routes->items().size(); ++r) {
    const YamlNode route = routes->items()[r];
    const std::vector<YamlNode> over = route.at("over").items_or_self();
    const auto is_link = [&](const YamlNode& node) { return node.as_string() == link; };
    if (std::ranges::none_of(over, is_link)) continue;
    if (key || (over.size() > 1 && !route.find("latency"))) return std::nullopt;  // which one?
    key = fmt::format("routes[{}].latency", r);
  }
  return key;
}

}  // namespace

bool has_own_latency(const std::filesystem::path& file, const std::string& link) {
  return latency_key(file, link).has_value();
}

std::string calibrated_cluster(const std::filesystem::path& file, const std::string& kind,
                               const std::map<std::string, CalibratedCurve>& curves,
                               const std::map<std::string, CalibratedLink>& links) {
  Replaced replaced;
  std::vector<YamlValue> notes;
  for (const std::string& line : read_cluster(file).notes) notes.push_back(yaml_string(line));
  const auto replace = [&](std::string key, YamlValue value, std::string note) {
    replaced.emplace_back(std::move(key), std::move(value));
    notes.push_back(yaml_string(std::move(note)));
  };
  for (const auto& [precision, found] : curves) {
    std::vector<YamlValue> points;
    for (const EfficiencyCurve::Point& point : found.curve.points)
      points.push_back(
          yaml_sequence({yaml_amount(point.work), yaml_scalar(shortest(point.fraction))}));
    replace("device_kinds." + kind + ".gemm_efficiency." + precision,
            yaml_sequence(std::move(points)),
            fmt::format("gemm_efficiency of {}: from {} products of {} steps of a traced run, "
                        "{:+.1f} % on {} steps held out",
                        precision, found.products, found.steps, 100 * found.after, found.held_out));
  }
  for (const auto& [link, found] : links) {
    std::vector<YamlValue> points;
    for (const BandwidthCurve::Point& point : found.curve.points)
      points.push_back(yaml_sequence({yaml_amount(point.size), yaml_amount(point.rate)}));
    replace("links." + link + ".bandwidth", yaml_sequence(std::move(points)),
            fmt::format("bandwidth of {}: from {} messages of a traced run, {} held out", link,
                        found.messages, found.held_out));
    if (!found.latency) continue;
    const auto key = latency_key(file, link);
    PFEIFE_CHECK(key, link, " has no latency of its own");
    replace(*key, yaml_amount(*found.latency),
            fmt::format("latency of {}: of the same messages, {} sizes", link,
                        found.curve.points.size()));
  }
  replaced.emplace_back("notes", yaml_sequence(std::move(notes)));
  const std::string text = cluster_text(file, replaced);
  parse_cluster(text, file.string());
  return text;
}

}  // namespace pfeife
