// `calibration` and `plan_with`: what makes published figures those of a system that was measured.
#include <algorithm>

#include "planner/io/experiment/experiment_case.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

const std::vector<std::pair<std::string, Precision>> kPrecisions{{"fp32", Precision::Fp32},
                                                                 {"tf32", Precision::Tf32},
                                                                 {"bf16_amp", Precision::Bf16Amp},
                                                                 {"fp16_amp", Precision::Fp16Amp}};

/// Factors beyond are slips of a unit.
constexpr double kLeastFactor = 0.01, kMostFactor = 100;

Calibration read_calibration(const YamlNode& node, const CaseConfig& config,
                             const std::vector<std::string>& kinds) {
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
    read.precision = precision->as_one_of<Precision>(kPrecisions);
  if (const auto origin = node.find("origin")) read.origin = origin->as_string();
  if (const auto compute = node.find("compute")) {
    read.compute = compute->as_double(kLeastFactor, kMostFactor);
    if (config.model.format != ModelFormat::Pt2 || config.profile)
      compute->fail("this multiplies times made from published figures, and " +
                    (config.profile ? std::string("the times of a profile")
                                    : "those of a " + to_string(config.model.format) + " model") +
                    " are not; leave compute out");
  }
  if (const auto overhead = node.find("stage_overhead"))
    read.stage_overhead = overhead->as_duration();
  if (!read.compute && !read.stage_overhead)
    node.fail("it changes nothing; give compute: 1.03, stage_overhead: 3 ms, or both");
  return read;
}

/// The keys of the cluster's file that a calibration of `kind` replaces.
void replace(const Calibration& calibration, const std::string& kind, const SourceLocation& where,
             InputFile& cluster) {
  const auto set = [&](const char* key, const std::string& value) {
    cluster.replaced.emplace_back("device_kinds." + kind + "." + key, yaml_scalar(value, where));
  };
  if (calibration.compute) set("compute_factor", shortest(*calibration.compute));
  if (calibration.stage_overhead)
    set("stage_overhead", std::to_string(calibration.stage_overhead->count()) + " ns");
}

}  // namespace

void read_calibrations(const YamlNode& node, const ExperimentRules& rules, CaseConfig& config) {
  if (config.cluster.measured)
    node.fail("a measured cluster has times of its own; leave the calibration out");
  const std::vector<std::string> kinds =
      rules.device_kinds ? rules.device_kinds(config.cluster) : std::vector<std::string>{};
  config.published_cluster = config.cluster;
  for (const YamlNode& item : node.items_or_self())
    config.calibrations.push_back(read_calibration(item, config, kinds));
  for (const std::string& kind : kinds) {
    const auto fits = [&](const Calibration& one) {
      return (one.device_kind.empty() || one.device_kind == kind) &&
             (!one.precision || *one.precision == config.precision);
    };
    const auto first = std::ranges::find_if(config.calibrations, fits);
    if (first != config.calibrations.end()) replace(*first, kind, node.where(), config.cluster);
  }
}

void read_plan_with(const YamlNode& node, bool select_by_given, CaseConfig& config) {
  config.plan_published = node.as_one_of<bool>({{"published", true}, {"calibrated", false}});
  if (!config.published_cluster)
    node.fail("nothing is calibrated; add a calibration, or leave plan_with out");
  if (!config.plan_published) return;
  if (config.plan.source != PlanSettings::Source::Search)
    node.fail("a given plan is not made here; leave plan_with out");
  if (select_by_given && config.select_by != SelectBy::Estimate)
    node.fail("a plan made with published figures is chosen by its estimate; leave select_by out");
  config.select_by = SelectBy::Estimate;
}

std::string calibration_text(const CaseConfig& config) {
  if (config.calibrations.empty()) return "";
  std::string text;
  for (const Calibration& one : config.calibrations) {
    if (one.precision && *one.precision != config.precision) continue;
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
  return text + (config.plan_published ? "; planned with published figures" : "");
}

std::string calibrations_yaml(const CaseConfig& config) {
  if (config.calibrations.empty()) return "";
  std::string text;
  for (const Calibration& one : config.calibrations) {
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
         "]\nplan_with: " + (config.plan_published ? "published" : "calibrated") + "\n";
}

}  // namespace pfeife
