// Reading one case of an experiment, section by section. Internal to planner/io: what
// experiment_case.cc, case_name.cc, experiment_inputs.cc and experiment_plan.cc offer to each other
// and to experiment_cases.cc.
#pragma once

#include <filesystem>
#include <optional>
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
/// `step_below`, if it is there.
std::optional<Nanoseconds> read_step_below(const YamlNode& root);

/// Applies "key.path=value" each, as given to --set (experiment_cases.cc).
void set_keys(YamlDocument& document, const std::vector<std::string>& settings);

// Names (case_name.cc).

/// A value as it stands in a case's name: "1+2" of [1, 2], "cv-0.02+seed-1" of {cv: 0.02, seed: 1},
/// the stem of a path; "none" of nothing.
std::string name_part(const YamlValue& value);
/// A value as YAML in one line.
std::string one_line(const YamlValue& value);
std::string quoted(const std::string& text);
/// `name` made unlike that of others that are not `of`.
std::string with_digest(const std::string& name, const std::string& of);

// Sections. Errors: ConfigError.

/// A file that a config in `folder` names.
std::filesystem::path input_file(const YamlNode& node, const std::filesystem::path& folder);
/// The same of the case's key, which is noted with what the file is called.
std::filesystem::path input_file(const YamlNode& node, const std::filesystem::path& folder,
                                 const std::string& key, CaseConfig& config);
/// `model`, `skips`, `profile` and `operators` of a config.
void read_model(const YamlNode& root, const std::filesystem::path& folder, CaseConfig& config);
/// `cluster`: a file, {file: ..., set: {key.path: value}}, or `measure`.
void read_cluster_input(const YamlNode& node, const std::filesystem::path& folder,
                        CaseConfig& config);
/// The files of `measurement.traces`: of a folder those that end in .json or .json.gz, by name.
void read_traces(const YamlNode& node, const std::filesystem::path& folder, CaseConfig& config);
/// "fp32", ...
const std::vector<std::pair<std::string, Precision>>& precisions();
/// Names of schedule families, each once.
std::vector<std::string> family_names(const YamlNode& node,
                                      const std::vector<std::string>& families);
/// Cut candidates, increasing.
std::vector<std::int32_t> cut_list(const YamlNode& node);
/// `if_needed`: may be said, too.
Recompute recompute_setting(const YamlNode& node, bool if_needed);
/// The baselines that `node` names: families, or maps of a family and how it is used.
std::vector<BaselineSettings> baseline_settings(const YamlNode& node,
                                                const std::vector<std::string>& families);
/// One of them as a config writes it.
std::string baseline_text(const BaselineSettings& baseline);
/// `calibration`, once the cluster is known.
void read_calibration(const YamlNode& node, const ExperimentRules& rules, CaseConfig& config);
/// `calibration` and `plan_with` as a config writes them; "" = nothing is calibrated.
std::string calibration_yaml(const Request& request);
/// `plan`, `baselines`, `simulation`, `engines` and `select_by`: what is asked of a pipeline,
/// whatever it is of.
void read_pipeline_keys(const YamlNode& root, const std::filesystem::path& folder,
                        const ExperimentRules& rules, CaseConfig& config);
/// `plan`.
void read_plan_settings(const YamlNode& node, const std::filesystem::path& folder,
                        const ExperimentRules& rules, CaseConfig& config);

/// The places of all values below `node`, by the paths of their keys; of an item of a list by its
/// text, too: "engines.measure".
void add_places(const YamlNode& node, std::map<std::string, SourceLocation>& places);

}  // namespace pfeife
