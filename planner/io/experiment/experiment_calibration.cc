// `calibration` and `plan_with`: what makes published figures those of a system that was measured.

#include "planner/io/experiment/experiment_case.h"
#include "planner/io/model/training_yaml.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

/// Factors beyond are slips of a unit.
constexpr double kLeastFactor = 0.01, kMostFactor = 100;

}  // namespace

FieldList<Calibration> calibration_fields(const std::vector<std::string>& kinds) {
  Kind<std::string> kind_name = word(words_of(kinds));
  kind_name.value = free_text().value;
  kind_name.values = "a device kind of the cluster";
  return {field("device_kind", &Calibration::device_kind, kind_name,
                "what the entry holds for; of a list of entries the first that fits a device kind "
                "counts for it")
              .by_default("all"),
          field("precision", &Calibration::precision, word(precisions()),
                "what the entry holds for, too")
              .by_default("all"),
          field("compute", &Calibration::compute, real(kLeastFactor, kMostFactor),
                "every time made from published figures is multiplied by this. Of archives without "
                "a measured profile")
              .by_default("1"),
          field("stage_overhead", &Calibration::stage_overhead, duration(),
                "time added to each forward and each backward (or backward-input) of a stage, in "
                "place of the device kind's")
              .by_default("the device kind's"),
          field("origin", &Calibration::origin, free_text(),
                "where the figures come from, in your words; results repeat it")
              .by_default("none")};
}

void read_calibration(const YamlNode& node, const ExperimentRules& rules, CaseConfig& config) {
  if (config.cluster_measured)
    node.fail("a measured cluster has times of its own; leave the calibration out");
  const std::vector<std::string> kinds =
      rules.device_kinds ? rules.device_kinds(config) : std::vector<std::string>{};
  const FieldList<Calibration> fields = calibration_fields(kinds);
  for (const YamlNode& item : node.items_or_self()) {
    if (!item.is_map())
      item.fail(
          "expected a map such as {compute: 1.03, stage_overhead: 3 ms}, or a list of such maps");
    fields.read(item, config.calibration.emplace_back());
  }
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
  for (const Calibration& calibration : request.calibration) {
    if (calibration.precision && *calibration.precision != request.training.precision) continue;
    std::string words;
    const auto add = [&](const std::string& more) { words += (words.empty() ? "" : ", ") + more; };
    if (calibration.compute) add("compute x " + shortest(*calibration.compute));
    if (calibration.stage_overhead)
      add(shortest(milliseconds(*calibration.stage_overhead)) + " ms a stage execution");
    if (!calibration.device_kind.empty()) words = calibration.device_kind + ": " + words;
    if (!calibration.origin.empty()) words += " (" + calibration.origin + ")";
    text += (text.empty() ? "" : "; ") + words;
  }
  if (text.empty()) text = "not for this precision";
  return text + (request.plan_published ? "; planned with published figures" : "");
}

}  // namespace pfeife
