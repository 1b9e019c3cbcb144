// Reading one case of an experiment, section by section. Internal to planner/io: what
// experiment_case.cc, case_name.cc, experiment_inputs.cc and experiment_plan.cc offer to each other
// and to experiment_cases.cc.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "planner/io/experiment/experiment_config.h"
#include "planner/io/files/yaml_document.h"
#include "planner/io/files/yaml_node.h"

namespace pfeife {

/// The keys at the top of an experiment.
const std::vector<std::string>& experiment_keys();

/// A case but for its devices, microbatches and name. `folder` = the config's. Errors: ConfigError.
CaseConfig read_case(const YamlNode& root, const std::filesystem::path& folder,
                     const ExperimentRules& rules);

/// Applies "key.path=value" each, as given to --set (experiment_cases.cc).
void set_keys(YamlDocument& document, const std::vector<std::string>& settings);

// Names (case_name.cc).

/// A value as it stands in a case's name: "1+2" of [1, 2], "cv-0.02+seed-1" of {cv: 0.02, seed: 1},
/// the stem of a path; "none" of nothing.
std::string name_part(const YamlValue& value);
/// A value as YAML in one line.
std::string one_line(const YamlValue& value);
std::string quoted(const std::string& text);
/// The files of `traces`: of a folder those that end in .json or .json.gz, by name.
std::vector<InputFile> trace_inputs(const YamlNode& node, const std::filesystem::path& folder);
/// `name` made unlike that of others that are not `of`.
std::string with_digest(const std::string& name, const std::string& of);

// Sections. Errors: ConfigError.

/// A file that a config in `folder` names.
InputFile input_file(const YamlNode& node, const std::filesystem::path& folder);
/// The same, or `measure`: made on this machine.
InputFile measured_or_file(const YamlNode& node, const std::filesystem::path& folder);
/// The same, or {file: ..., set: {key.path: value}}.
InputFile cluster_input(const YamlNode& node, const std::filesystem::path& folder);
/// `model` and `skips` of a config.
ModelInput model_input(const YamlNode& root, const std::filesystem::path& folder);
/// Names of schedule families, each once.
std::vector<std::string> family_names(const YamlNode& node,
                                      const std::vector<std::string>& families);
/// Cut candidates, increasing.
std::vector<std::int32_t> cut_list(const YamlNode& node);
/// `if_needed`: may be said, too.
Recompute recompute_setting(const YamlNode& node, bool if_needed);
/// Of recompute_except_last beside `recompute: none`.
inline constexpr const char* kNothingRecomputed =
    "nothing is recomputed; leave it out, or set recompute";
/// The baselines that `node` names: families, or maps of a family and how it is used.
std::vector<BaselineSettings> baseline_settings(const YamlNode& node,
                                                const std::vector<std::string>& families);
/// One of them as a config writes it.
std::string baseline_text(const BaselineSettings& baseline);
/// `calibration`, once model, profile, cluster and precision are known.
void read_calibrations(const YamlNode& node, const ExperimentRules& rules, CaseConfig& config);
/// `plan_with`, once all but the size of the case is known.
void read_plan_with(const YamlNode& node, bool select_by_given, CaseConfig& config);
/// Both as a config writes them; "" = nothing is calibrated.
std::string calibrations_yaml(const CaseConfig& config);
/// `plan`.
PlanSettings plan_settings(const YamlNode& node, const std::filesystem::path& folder,
                           const ExperimentRules& rules);

}  // namespace pfeife
