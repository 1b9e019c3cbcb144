// The case as text: the YAML that says everything that decides its result.
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "planner/io/experiment/experiment_case.h"

namespace pfeife {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out = "[";
  for (std::size_t i = 0; i < words.size(); ++i) out += (i > 0 ? ", " : "") + words[i];
  return out + "]";
}

template <class T, class Text>
std::string list(const std::vector<T>& values, const Text& text) {
  std::vector<std::string> words;
  for (const T& value : values) words.push_back(text(value));
  return joined(words);
}

/// The shortest text that reads back as the same number.
const auto number = [](auto value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return std::string(text.data(), end);
};

std::string cuts_text(const PlanSettings& plan) {
  switch (plan.cuts) {
    case PlanSettings::Cuts::Search:
      return "search";
    case PlanSettings::Cuts::EachLayer:
      return "each_layer";
    case PlanSettings::Cuts::Given:
      return list(plan.given_cuts, number);
  }
  return "";
}

std::string cluster_text(const CaseConfig& config) {
  const std::string file = quoted(file_name(config, "cluster", config.cluster));
  if (config.cluster_set.empty()) return file;
  const auto entry = [](const auto& key_and_value) {
    return quoted(key_and_value.first) + ": " + one_line(key_and_value.second);
  };
  const std::string set = list(config.cluster_set, entry);
  return "{file: " + file + ", set: {" + set.substr(1, set.size() - 2) + "}}";
}

std::string plan_text(const Request& request) {
  const PlanSettings& plan = request.plan;
  const std::string reserve =
      plan.reserve ? ", reserve: " + number(plan.reserve->value) + " B" : "";
  const std::string devices =
      plan.search_devices ? ", devices: search"
      : plan.devices.empty()
          ? ""
          : ", devices: " + list(plan.devices, [](DeviceId d) { return to_string(d); });
  if (plan.file) return "{file: " + quoted(given_file_name(request)) + reserve + "}";
  if (plan.schedule)
    return "{schedule: " + quoted(given_file_name(request)) + ", cuts: " + cuts_text(plan) +
           reserve + devices + "}";
  if (plan.reference)
    return "{stages_per_rank: " + list(plan.stages_per_rank, number) + ", search: reference" +
           reserve + devices + "}";
  return "{families: " + joined(plan.families) +
         ", stages_per_rank: " + list(plan.stages_per_rank, number) +
         ", search: planner, iterations: " +
         (plan.iterations == 0 ? "default" : number(plan.iterations)) +
         ", cuts: " + cuts_text(plan) + ", recompute: " + to_string(plan.recompute) +
         (plan.recompute_except_last ? ", recompute_except_last: true" : "") +
         (plan.receives == Receives::AtNeed ? "" : ", receives: as_ready") +
         (plan.order == "captured" ? "" : ", order: " + plan.order) +
         (plan.for_torch   ? ", for: torch"
          : plan.at_blocks ? ", cuts_at: blocks"
                           : "") +
         reserve + devices + "}";
}

std::string simulation_text(const SimulationSettings& simulation) {
  std::string text = "{queues: " + to_string(simulation.queues) +
                     ", links: " + to_string(simulation.links) +
                     ", launch_overhead: " + number(simulation.launch_overhead.count()) + " ns";
  if (const auto& jitter = simulation.jitter)
    text += ", jitter: {cv: " + number(jitter->cv) +
            (jitter->drift > 0 ? ", drift: " + number(jitter->drift) : "") +
            ", repetitions: " + number(jitter->repetitions) + ", seed: " + number(jitter->seed) +
            "}";
  return text + "}";
}

}  // namespace

std::string resolved_text(const CaseConfig& config) {
  const ModelFiles& model = config.model;
  std::string text = "version: 1\n";
  text += "model: {file: " + quoted(file_name(config, "model", model.file)) +
          ", format: " + to_string(model.format) +
          (model.time_unit.count() > 0 ? ", time_unit: " + number(model.time_unit.count()) + " ns"
                                       : "") +
          "}\n";
  if (model.skips) text += "skips: " + quoted(file_name(config, "skips", *model.skips)) + "\n";
  if (model.profile)
    text += "profile: " + quoted(file_name(config, "profile", *model.profile)) + "\n";
  if (!model.operators.empty()) {
    const auto entry = [](const OperatorCost& cost) {
      return quoted(cost.op) + ": {flops: " + quoted(cost.flops) +
             ", bytes: " + quoted(cost.bytes) + "}";
    };
    const std::string entries = list(model.operators, entry);
    text += "operators: {" + entries.substr(1, entries.size() - 2) + "}\n";
  }
  if (const Replicas& of = config.replicas; of != Replicas{})
    text += "parallel: {dp: " + number(of.count) + ", zero: " + number(of.zero) +
            ", overlap_reductions: " + (of.overlap_reductions ? "true" : "false") + "}\n";
  text += "cluster: " + cluster_text(config) + "\n";
  text += calibration_yaml(config);
  const StepSettings& training = config.training;
  text += "training: {precision: " + to_string(training.precision) +
          ", optimizer: " + to_string(training.optimizer);
  if (training.clip_norm > 0) text += ", clip_norm: " + number(training.clip_norm);
  if (training.microbatch_size) text += ", microbatch_size: " + number(*training.microbatch_size);
  if (training.global_batch) text += ", global_batch: " + number(*training.global_batch);
  text += "}\ncases: {devices: [" + number(config.devices) + "]";
  if (!config.microbatch_size_open())
    text += ", microbatches: [" + number(config.microbatches) + "]";
  text += "}\n";
  text += "plan: " + plan_text(config) + "\n";
  text += "baselines: " + list(config.baselines, baseline_text) + "\n";
  text += "simulation: " + simulation_text(config.simulation) + "\n";
  text += std::string("engines: [estimate") + (config.simulate ? ", simulate" : "") +
          (config.measure ? ", measure" : "") + "]\n";
  if (const MeasurementSettings& runs = config.measurement; config.measure)
    text += "measurement: {steps: " + number(runs.steps) + ", rounds: " + number(runs.rounds) +
            ", interval: " + number(runs.interval) + "}\n";
  std::vector<std::string> traces;
  for (const std::filesystem::path& trace : config.measurement.traces)
    traces.push_back(quoted(
        file_name(config, "measurement.traces[" + std::to_string(traces.size()) + "]", trace)));
  if (!traces.empty()) text += "measurement: {traces: " + joined(traces) + "}\n";
  return text + "select_by: " + to_string(chosen_by(config)) + "\n";
}

}  // namespace pfeife
