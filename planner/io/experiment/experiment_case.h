// The lists of fields that an experiment is made of, a list a section. Internal to planner/io.
// Each is in the source of its section; a key is a row there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "planner/io/experiment/experiment_config.h"
#include "planner/io/files/fields.h"
#include "planner/io/files/yaml.h"

namespace pfeife {

/// What lists need to know of the config that they read. They borrow it: lists are built once for
/// all cases, and `config` is the case of the moment. They write without it.
struct ListContext {
  const std::filesystem::path* folder = nullptr;  ///< the config's
  const ExperimentRules* rules = nullptr;
  CaseConfig* config = nullptr;
};

/// The keys at the top of an experiment; `cases` and `step_below` are read elsewhere.
FieldList<Request> experiment_fields(const ListContext& context);
/// The same keys without a config, to look them up and to write.
const FieldList<Request>& experiment_keys();
/// The keys of `cases` that are no paths.
const FieldList<Request>& case_fields();
/// The keys that say what is asked of a pipeline, whatever it is of.
const std::vector<std::string>& pipeline_keys();

/// A case but for its devices, microbatches and name, by experiment_fields(context). Errors:
/// ConfigError.
CaseConfig read_case(const YamlNode& root, const FieldList<Request>& fields, ListContext& context);
/// `step_below`, if it is there.
std::optional<Nanoseconds> read_step_below(const YamlNode& root);

/// Applies "key.path=value" each, as given to --set (experiment_cases.cc).
void set_keys(YamlDocument& document, const std::vector<std::string>& settings);

// Names (case_name.cc).

/// A value as it stands in a case's name: "1+2" of [1, 2], "cv-0.02+seed-1" of {cv: 0.02, seed: 1},
/// the stem of a path; "none" of nothing.
std::string name_part(const YamlValue& value);
/// `name` made unlike that of others that are not `of`.
std::string with_digest(const std::string& name, const std::string& of);

// Sections. Errors: ConfigError.

/// A file's name; nothing of none.
YamlValue path_value(const std::filesystem::path& file);
/// A file that a config in `folder` names.
std::filesystem::path input_file(const YamlNode& node, const std::filesystem::path& folder);
/// The same of the case's key, which is noted with what the file is called.
std::filesystem::path input_file(const YamlNode& node, const std::filesystem::path& folder,
                                 const std::string& key, CaseConfig& config);
/// A file of the case's, by its key; empty if it is to be measured.
std::filesystem::path measured_or_file(const YamlNode& node, const ListContext& context,
                                       const std::string& key, bool& measured);
/// A model by its file alone.
void read_model_file(const YamlNode& node, const ListContext& context, ModelFiles& model);
/// A model by a map with its format.
FieldList<ModelFiles> model_fields(const ListContext& context);
/// `cluster`: a file, {file: ..., set: {key.path: value}}, or `measure`.
void read_cluster_input(const YamlNode& node, const ListContext& context);
/// The files of `measurement.traces`: of a folder those that end in .json or .json.gz, by name.
void read_traces(const YamlNode& node, const ListContext& context,
                 MeasurementSettings& measurement);
FieldList<StepSettings> training_fields(const ListContext& context);
/// The same without a config, to look keys up and to write.
const FieldList<StepSettings>& training_fields();
/// The documents of a CSV file with the columns microbatch and length, a row a document.
DocumentLengths read_lengths(const std::filesystem::path& file);
const FieldList<WhatIf>& what_if_fields();
const FieldList<SlowRank>& slow_rank_fields();
const FieldList<SimulationSettings>& simulation_fields();
std::vector<FieldRow> jitter_rows();
FieldList<MeasurementSettings> measurement_fields(const ListContext& context);
/// The baselines that `node` names: families, or maps of a family and how it is used.
std::vector<BaselineSettings> baseline_settings(const YamlNode& node,
                                                const FieldList<BaselineSettings>& fields);
FieldList<BaselineSettings> baseline_fields(const std::vector<std::string>& families);
/// One of them as a config writes it.
YamlValue baseline_value(const BaselineSettings& baseline);
/// `calibration`, once the cluster is known.
void read_calibration(const YamlNode& node, const ExperimentRules& rules, CaseConfig& config);
FieldList<Calibration> calibration_fields(const std::vector<std::string>& kinds);
FieldList<PlanSettings> plan_fields(const ListContext& context);
void read_plan_settings(const YamlNode& node, const FieldList<PlanSettings>& fields,
                        PlanSettings& plan);
YamlValue plan_value(const FieldList<PlanSettings>& fields, const PlanSettings& plan);

/// Cut candidates, increasing.
std::vector<std::int32_t> cut_list(const YamlNode& node);
/// `cuts`: a word, or the list of the cuts themselves.
template <class Settings>
Field<Settings> cuts_field(const Words<typename Settings::Cuts>& words, std::string about) {
  using Cuts = typename Settings::Cuts;
  Field<Settings> cuts = field("cuts", &Settings::cuts, word(words), std::move(about));
  cuts.values += ", or a list";
  cuts.takes_list = true;
  cuts.read = [read = cuts.read](const YamlNode& node, Settings& settings) {
    if (!node.is_sequence()) return read(node, settings);
    settings.cuts = Cuts::Given;
    settings.given_cuts = cut_list(node);
  };
  cuts.value = [value = cuts.value](const Settings& settings) {
    if (settings.cuts != Cuts::Given) return value(settings);
    return list_value(settings.given_cuts,
                      [](std::int32_t cut) { return yaml_scalar(std::to_string(cut)); });
  };
  return cuts;
}
/// `cuts_at`: between blocks only?
Kind<bool> cuts_at_words();

/// The places of all values below `node`, by the paths of their keys; of an item of a list by its
/// text, too: "engines.measure".
void add_places(const YamlNode& node, std::map<std::string, SourceLocation>& places);

}  // namespace pfeife
