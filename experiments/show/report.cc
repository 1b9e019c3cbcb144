#include "experiments/show/report.h"

#include <algorithm>
#include <map>
#include <memory>

#include "experiments/measure/compared.h"
#include "experiments/pfeife.h"
#include "experiments/plans/evaluated_case.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/files/open_file.h"
#include "planner/ir/result/case_files.h"
#include "plots/report/report.h"

namespace pfeife {
namespace {

constexpr std::uintmax_t kMostTraceBytes = std::uintmax_t{8} << 20;

/// What all cases have in common, or "" if they differ.
template <class Text>
std::string common(const Experiment& experiment, const Text& text) {
  const std::string first = text(experiment.cases.front());
  const auto same = [&](const CaseConfig& config) { return text(config) == first; };
  return std::all_of(experiment.cases.begin(), experiment.cases.end(), same) ? first : "";
}

/// The words for a file that all cases have in common: one name may stand for files of several
/// folders.
template <class Text>
std::string common_file(const Experiment& experiment, const std::string& key,
                        const std::filesystem::path& (*file)(const CaseConfig&),
                        const Text& words) {
  const std::string first =
      file_name(experiment.cases.front(), key, file(experiment.cases.front()));
  for (const CaseConfig& config : experiment.cases)
    if (file_name(config, key, file(config)) != first) return "";
  return common(experiment, words);
}

std::string model_words(const CaseConfig& config) {
  return std::filesystem::path(file_name(config, "model", config.model.file)).filename().string();
}
/// The cluster file and what is replaced in it, calibration apart.
std::string cluster_words(const CaseConfig& config) {
  const std::filesystem::path named = file_name(config, "cluster", config.cluster);
  std::string text =
      config.cluster_measured ? "this machine's processors, as measured" : named.stem().string();
  for (const auto& [path, value] : config.cluster_set)
    text += (&path == &config.cluster_set.front().first ? " with " : " and ") + path +
            (value.kind == YamlValue::Kind::Scalar ? " " + value.text : " replaced");
  return text;
}
std::string common_model(const Experiment& experiment) {
  return common_file(
      experiment, "model",
      [](const CaseConfig& config) -> const std::filesystem::path& { return config.model.file; },
      model_words);
}
std::string common_cluster(const Experiment& experiment) {
  return common_file(
      experiment, "cluster",
      [](const CaseConfig& config) -> const std::filesystem::path& { return config.cluster; },
      cluster_words);
}
std::string precision_text(const CaseConfig& config) {
  return to_string(config.training.precision);
}
/// "" if nothing is calibrated.
std::string calibrated_as(const CaseConfig& config) {
  const std::string text = calibration_text(config);
  return text.empty() ? "" : "calibrated: " + text;
}
std::string optimizer_of(const CaseConfig& config) {
  if (config.training.mode == Mode::Forward) return "forward only";
  return to_string(config.training.optimizer);
}

/// Replicas of the pipeline, if all cases have as many; those of a mesh are part of its layers.
std::string replicas_of(const CaseConfig& config) {
  if (config.model.format == ModelFormat::Mesh) return " of all replicas together";
  if (config.replicas.count == 1) return "";
  return " of " + std::to_string(config.replicas.count) + " replicas together";
}

std::string samples_of(const Experiment& experiment, const std::vector<CaseRecord>& cases) {
  std::int64_t size = 0;
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans) {
      if (size != 0 && size != plan.row.microbatch_size) return "";
      size = plan.row.microbatch_size;
    }
  return std::to_string(size) + (size == 1 ? " sample" : " samples") + " a microbatch" +
         common(experiment, replicas_of);
}

/// The resolved configs of all cases as one text: a key whose value differs is followed by what
/// else it is.
std::string merged_config(const Experiment& experiment) {
  std::vector<std::string> keys;
  std::map<std::string, std::vector<std::string>> values;
  for (const CaseConfig& config : experiment.cases)
    for (const auto& [key, value] : resolved(config)) {
      std::vector<std::string>& known = values[key];
      if (known.empty()) keys.push_back(key);
      if (std::ranges::find(known, value) == known.end()) known.push_back(value);
    }
  std::string text;
  for (const std::string& key : keys)
    for (const std::string& value : values[key])
      text += (value == values[key].front() ? "" : "# or  ") + key + ": " + value + "\n";
  return text;
}

/// The traces of the cases, while there is room.
void add_traces(ReportInput& input, const std::filesystem::path& folder) {
  std::uintmax_t room = kMostTraceBytes;
  input.traces.resize(input.cases.size());
  for (std::size_t c = 0; c < input.cases.size(); ++c) {
    const std::filesystem::path file = folder / input.cases[c].name / case_file::kTraces;
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(file, error);
    if (error || size > room) continue;
    room -= size;
    input.traces[c] = read_file(file);
  }
}

}  // namespace

std::string experiment_summary(const Experiment& experiment, const std::vector<CaseRecord>& cases) {
  const std::string model = common_model(experiment), cluster = common_cluster(experiment);
  std::string text;
  for (const std::string& part :
       {model, cluster, common(experiment, precision_text), common(experiment, optimizer_of),
        samples_of(experiment, cases), common(experiment, calibrated_as)})
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string experiment_report(const Experiment& experiment, const std::vector<CaseRecord>& cases,
                              Inputs& inputs, const std::filesystem::path& folder) {
  ReportInput input;
  input.title = experiment.name;
  const std::pair<const char*, std::string> facts[] = {
      {"Model", common_model(experiment)},
      {"Cluster", common_cluster(experiment)},
      {"Precision", common(experiment, precision_text)},
      {"Optimizer", common(experiment, optimizer_of)},
      {"Microbatch", samples_of(experiment, cases)},
      {"Calibration",
       common(experiment, [](const CaseConfig& config) { return calibration_text(config); })},
      {"Program", "pfeife " PFEIFE_VERSION}};
  for (const auto& [name, value] : facts)
    if (!value.empty()) input.facts.emplace_back(name, value);
  input.cases = cases;
  add_traces(input, folder);
  for (const CaseConfig& config : experiment.cases)
    if (std::ranges::find(input.clusters, cluster_words(config),
                          &std::pair<std::string, Cluster>::first) == input.clusters.end())
      input.clusters.emplace_back(cluster_words(config), inputs.as_calibrated(config));
  input.config = merged_config(experiment);
  return report_html(input);
}

std::string plan_page(const std::filesystem::path& plan,
                      std::span<const std::filesystem::path> traces) {
  if (!is_folder(plan) && plan.filename() != "plan.yaml")
    throw ConfigError({plan.string()}, "is no plan; give plan.yaml, or its folder");
  const Planned loaded = load_plan(is_folder(plan) ? plan : plan.parent_path());
  if (traces.empty()) return report(loaded);
  EvaluatedCase measured = *loaded.evaluated;
  Evaluation& shown = measured.planned.at(measured.chosen);
  Comparison run = compare_with_traces(plan, traces, shown.simulated);
  // Predictions are without the optimizer, too, if the run has none.
  shown.estimated = std::move(run.estimated);
  shown.simulated = std::move(run.simulated);
  shown.measurement = std::move(run.measurement);
  Planned beside = loaded;
  beside.evaluated = std::make_shared<const EvaluatedCase>(std::move(measured));
  return report(beside);
}

}  // namespace pfeife
