#include "experiments/report.h"

#include <algorithm>
#include <map>

#include "planner/io/files/atomic_file.h"
#include "plots/report.h"

namespace pfeife {
namespace {

constexpr std::size_t kMostFigureBytes = std::size_t{24} << 20;

/// What all cases have in common, or "" if they differ.
template <class Text>
std::string common(const Experiment& experiment, const Text& text) {
  const std::string first = text(experiment.cases.front());
  const auto same = [&](const CaseConfig& config) { return text(config) == first; };
  return std::all_of(experiment.cases.begin(), experiment.cases.end(), same) ? first : "";
}

std::string model_of(const CaseConfig& config) { return config.model.file.written; }
std::string cluster_of(const CaseConfig& config) {
  std::string text =
      config.cluster.measured ? "this machine's processors, as measured" : config.cluster.written;
  for (const auto& [path, value] : config.cluster.replaced)
    text += (&path == &config.cluster.replaced.front().first ? " with " : " and ") + path +
            (value.kind == YamlValue::Kind::Scalar ? " " + value.text : " replaced");
  return text;
}
std::string precision_of(const CaseConfig& config) { return to_string(config.precision); }
std::string optimizer_of(const CaseConfig& config) { return to_string(config.optimizer); }

std::string samples_of(const std::vector<CaseRecord>& cases) {
  std::int64_t size = 0;
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans) {
      if (size != 0 && size != plan.row.microbatch_size) return "";
      size = plan.row.microbatch_size;
    }
  return std::to_string(size) + (size == 1 ? " sample" : " samples") + " a microbatch";
}

/// The resolved configs of all cases as one text: a line that differs is followed by what else it
/// is.
std::string merged_config(const std::vector<CaseRecord>& cases) {
  std::vector<std::string> keys;
  std::map<std::string, std::vector<std::string>> lines;
  for (const CaseRecord& record : cases)
    for (std::size_t begin = 0, end; begin < record.resolved.size(); begin = end + 1) {
      end = std::min(record.resolved.find('\n', begin), record.resolved.size());
      const std::string line = record.resolved.substr(begin, end - begin);
      const std::string key = line.substr(0, line.find(':'));
      std::vector<std::string>& known = lines[key];
      if (known.empty()) keys.push_back(key);
      if (std::find(known.begin(), known.end(), line) == known.end()) known.push_back(line);
    }
  std::string text;
  for (const std::string& key : keys)
    for (const std::string& line : lines[key])
      text += (line == lines[key].front() ? "" : "# or  ") + line + "\n";
  return text;
}

ReportPlan report_plan(const PlanRecord& record, const std::filesystem::path& folder,
                       std::size_t& room) {
  ReportPlan plan{record, {}};
  plan.row.search_s = 0;  // so that equal inputs give an equal page; results.csv has it
  if (!record.row.estimate) return plan;
  const std::filesystem::path file = folder / record.row.plan / "timeline.svg";
  if (std::filesystem::file_size(file) > room) return plan;
  plan.figures.push_back({"Timeline", read_file(file)});
  room -= plan.figures.back().svg.size();
  return plan;
}

ReportCase report_case(const CaseRecord& record, const std::filesystem::path& folder,
                       std::size_t& room) {
  ReportCase result;
  result.name = record.name;
  for (const PlanRecord& plan : record.plans)
    result.plans.push_back(report_plan(plan, folder, room));
  result.lost = record.lost;
  result.history = record.history;
  result.choices = record.choices;
  result.front = record.front;
  result.alternatives = record.alternatives;
  result.tried = record.tried;
  result.bound_covers = record.bound_covers;
  result.notes = record.notes;
  return result;
}

}  // namespace

std::string experiment_summary(const Experiment& experiment, const std::vector<CaseRecord>& cases) {
  const std::string model = common(experiment, model_of), cluster = common(experiment, cluster_of);
  std::string text = model;
  if (!cluster.empty()) text += (text.empty() ? "on " : " on ") + cluster;
  for (const std::string& part :
       {common(experiment, precision_of), common(experiment, optimizer_of), samples_of(cases)})
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string experiment_report(const Experiment& experiment, const std::vector<CaseRecord>& cases,
                              Inputs& inputs, const std::filesystem::path& folder) {
  ReportInput input;
  input.title = experiment.name;
  const std::pair<const char*, std::string> facts[] = {
      {"Model", common(experiment, model_of)},
      {"Cluster", common(experiment, cluster_of)},
      {"Precision", common(experiment, precision_of)},
      {"Optimizer", common(experiment, optimizer_of)},
      {"Microbatch", samples_of(cases)},
      {"Program", "pfeife " PFEIFE_VERSION}};
  for (const auto& [name, value] : facts)
    if (!value.empty()) input.facts.emplace_back(name, value);
  std::size_t room = kMostFigureBytes;
  for (const CaseRecord& record : cases)
    input.cases.push_back(report_case(record, folder / record.name, room));
  const auto lacks_figures = [](const ReportCase& c) {
    return std::any_of(c.plans.begin(), c.plans.end(), [](const ReportPlan& plan) {
      return plan.row.estimate && plan.figures.empty();
    });
  };
  if (std::any_of(input.cases.begin(), input.cases.end(), lacks_figures))
    input.notes.push_back(
        "Some timelines would make this page too long; they are timeline.svg in each plan's "
        "folder.");
  for (const CaseConfig& config : experiment.cases)
    if (std::ranges::find(input.clusters, cluster_of(config),
                          &std::pair<std::string, Cluster>::first) == input.clusters.end())
      input.clusters.emplace_back(cluster_of(config), inputs.cluster(config.cluster));
  input.config = merged_config(cases);
  return report_html(input);
}

}  // namespace pfeife
