// `calibration` and `plan_with`: what makes published figures those of a system that was measured.
#include <algorithm>

#include "planner/io/experiment/experiment_case.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

/// Factors beyond are slips of a unit.
constexpr double kLeastFactor = 0.01, kMostFactor = 100;

Calibration read_entry(const YamlNode& node, const std::vector<std::string>& kinds) {
  if (!node.is_map())
    node.fail(
        "expected a map such as {compute: 1.03, stage_overhead: 3 ms}, or a list of such maps");
  node.check_keys({"device_kind", "precision", "compute", "stage_overhead", "origin"});
  Calibration read;
  if (const auto kind = node.find("device_kind")) {
    std::vector<std::pair<std::string, std::string>> words;
    for (const std::string& name : kinds) words.emplace_back(name, name);
    read.device_kind = kind->as_one_of<std::string>(words);
  }
  if (const auto precision = node.find("precision"))
    read.precision = precision->as_one_of<Precision>(precisions());
  if (const auto origin = node.find("origin")) read.origin = origin->as_string();
  if (const auto compute = node.find("compute"))
    read.compute = compute->as_double(kLeastFactor, kMostFactor);
  if (const auto overhead = node.find("stage_overhead"))
    read.stage_overhead = overhead->as_duration();
  return read;
}

}  // namespace

void read_calibration(const YamlNode& node, const ExperimentRules& rules, CaseConfig& config) {
  if (config.cluster_measured)
    node.fail("a measured cluster has times of its own; leave the calibration out");
  const std::vector<std::string> kinds =
      rules.device_kinds ? rules.device_kinds(config) : std::vector<std::string>{};
  for (const YamlNode& item : node.items_or_self())
    config.calibration.push_back(read_entry(item, kinds));
}

Replaced calibrated_keys(const CaseConfig& config, const std::vector<std::string>& kinds) {
  Replaced replaced;
  const SourceLocation where = config.place("calibration");
  for (const std::string& kind : kinds) {
    const Calibration* const calibration = calibration_of(config, kind);
    if (calibration == nullptr) continue;
    const auto set = [&](const char* key, const std::string& value) {
      replaced.emplace_back("device_kinds." + kind + "." + key, yaml_scalar(value, where));
    };
    if (calibration->compute) set("compute_factor", shortest(*calibration->compute));
    if (calibration->stage_overhead)
      set("stage_overhead", std::to_string(calibration->stage_overhead->count()) + " ns");
  }
  return replaced;
}

std::string calibration_text(const Request& request) {
  if (request.calibration.empty()) return "";
  std::string text;
  for (const Calibration& one : request.calibration) {
    if (one.precision && *one.precision != request.training.precision) continue;
    std::string words;
    const auto add = [&](const std::string& more) { words += (words.empty() ? "" : ", ") + more; };
    if (one.compute) add("compute x " + shortest(*one.compute));
    if (one.stage_overhead)
      add(shortest(milliseconds(*one.stage_overhead)) + " ms a stage execution");
    if (!one.device_kind.empty()) words = one.device_kind + ": " + words;
    if (!one.origin.empty()) words += " (" + one.origin + ")";
    text += (text.empty() ? "" : "; ") + words;
  }
  if (text.empty()) text = "not for this precision";
  return text + (request.plan_published ? "; planned with published figures" : "");
}

std::string calibration_yaml(const Request& request) {
  if (request.calibration.empty()) return "";
  std::string text;
  for (const Calibration& one : request.calibration) {
    std::string entry;
    const auto add = [&](const std::string& key, const std::string& value) {
      entry += (entry.empty() ? "" : ", ") + key + ": " + value;
    };
    if (!one.device_kind.empty()) add("device_kind", quoted(one.device_kind));
    if (one.precision) add("precision", to_string(*one.precision));
    if (one.compute) add("compute", shortest(*one.compute));
    if (one.stage_overhead)
      add("stage_overhead", std::to_string(one.stage_overhead->count()) + " ns");
    if (!one.origin.empty()) add("origin", quoted(one.origin));
    text += (text.empty() ? "" : ", ") + ("{" + entry + "}");
  }
  return "calibration: [" + text +
         "]\nplan_with: " + (request.plan_published ? "published" : "calibrated") + "\n";
}

}  // namespace pfeife
