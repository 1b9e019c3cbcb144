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

std::string cluster_text(const InputFile& cluster) {
  if (cluster.replaced.empty()) return quoted(cluster.written);
  const auto entry = [](const auto& key_and_value) {
    return quoted(key_and_value.first) + ": " + one_line(key_and_value.second);
  };
  const std::string set = list(cluster.replaced, entry);
  return "{file: " + quoted(cluster.written) + ", set: {" + set.substr(1, set.size() - 2) + "}}";
}

std::string plan_text(const PlanSettings& plan) {
  const std::string reserve =
      plan.reserve ? ", reserve: " + number(plan.reserve->value) + " B" : "";
  const std::string devices =
      plan.search_devices ? ", devices: search"
      : plan.devices.empty()
          ? ""
          : ", devices: " + list(plan.devices, [](DeviceId d) { return to_string(d); });
  switch (plan.source) {
    case PlanSettings::Source::PlanFile:
      return "{file: " + quoted(plan.file->written) + reserve + "}";
    case PlanSettings::Source::ScheduleFile:
      return "{schedule: " + quoted(plan.file->written) + ", cuts: " + cuts_text(plan) + reserve +
             devices + "}";
    case PlanSettings::Source::Search:
      break;
  }
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

std::string to_string(SelectBy select_by) {
  switch (select_by) {
    case SelectBy::Estimate:
      return "estimate";
    case SelectBy::Simulate:
      return "simulate";
    case SelectBy::P95:
      return "p95";
  }
  return "";
}

std::string resolved_text(const CaseConfig& config) {
  std::string text = "version: 1\n";
  text += "model: {file: " + quoted(config.model.file.written) +
          ", format: " + to_string(config.model.format) +
          (config.model.time_unit.count() > 0
               ? ", time_unit: " + number(config.model.time_unit.count()) + " ns"
               : "") +
          "}\n";
  if (config.model.skips) text += "skips: " + quoted(config.model.skips->written) + "\n";
  if (config.profile) text += "profile: " + quoted(config.profile->written) + "\n";
  if (!config.operators.empty()) {
    const auto entry = [](const OperatorCost& cost) {
      return quoted(cost.op) + ": {flops: " + quoted(cost.flops) +
             ", bytes: " + quoted(cost.bytes) + "}";
    };
    const std::string entries = list(config.operators, entry);
    text += "operators: {" + entries.substr(1, entries.size() - 2) + "}\n";
  }
  if (const Replicas& of = config.replicas; of != Replicas{})
    text += "parallel: {dp: " + number(of.count) + ", zero: " + number(of.zero) +
            ", overlap_reductions: " + (of.overlap_reductions ? "true" : "false") + "}\n";
  text += "cluster: " + cluster_text(config.published_cluster.value_or(config.cluster)) + "\n";
  text += calibrations_yaml(config);
  text += "training: {precision: " + to_string(config.precision) +
          ", optimizer: " + to_string(config.optimizer);
  if (config.clip_norm > 0) text += ", clip_norm: " + number(config.clip_norm);
  if (config.microbatch_size) text += ", microbatch_size: " + number(*config.microbatch_size);
  if (config.global_batch)
    text += ", global_batch: " + number(*config.global_batch * config.replicas.count);
  text += "}\ncases: {devices: [" + number(config.devices) + "]";
  if (!config.microbatch_size_open())
    text += ", microbatches: [" + number(config.microbatches) + "]";
  text += "}\n";
  text += "plan: " + plan_text(config.plan) + "\n";
  text += "baselines: " + list(config.baselines, baseline_text) + "\n";
  text += "simulation: " + simulation_text(config.simulation) + "\n";
  text += std::string("engines: [estimate") + (config.simulate ? ", simulate" : "") +
          (config.measure ? ", measure" : "") + "]\n";
  if (const MeasurementSettings& runs = config.measurement; config.measure)
    text += "measurement: {steps: " + number(runs.steps) + ", rounds: " + number(runs.rounds) +
            ", interval: " + number(runs.interval) + "}\n";
  if (const std::vector<InputFile>& traces = config.measurement.traces; !traces.empty())
    text += "measurement: {traces: " +
            list(traces, [](const InputFile& file) { return quoted(file.written); }) + "}\n";
  return text + "select_by: " + to_string(config.select_by) + "\n";
}

}  // namespace pfeife
