#include "experiments/measure/measured_inputs.h"

#include <iostream>
#include <set>
#include <thread>

#include "experiments/inputs/inputs.h"
#include "experiments/machine/child.h"
#include "experiments/machine/machine.h"
#include "experiments/measure/measure.h"
#include "planner/io/files/digest.h"
#include "planner/io/model/profile_file.h"

namespace pfeife {
namespace {

std::string short_digest(const std::string& text) { return sha256(text).substr(0, 8); }

std::string machine_and_program() { return machine_line() + "\n" + runtime_sources(); }

/// "gpt_cpu,fp32,adam,4,2-1a2b3c4d.yaml": microbatches of 4 samples, as one of 2 ranks.
std::string profile_name(const CaseConfig& config) {
  const std::string size = config.training.microbatch_size
                               ? std::to_string(*config.training.microbatch_size)
                               : "exported";
  const std::string what = to_string(config.training.precision) + "," +
                           to_string(config.training.optimizer) + "," + size + "," +
                           std::to_string(config.devices);
  return folder_name(config.model.file.stem().string() + "," + what) + "-" +
         short_digest(machine_and_program() + "\n" + sha256_file(config.model.file) + "\n" + what) +
         ".yaml";
}

std::vector<std::string> profile_arguments(const CaseConfig& config) {
  std::vector<std::string> arguments{"profile",     config.model.file.string(),
                                     "--device",    "cpu",
                                     "--precision", to_string(config.training.precision),
                                     "--optimizer", to_string(config.training.optimizer),
                                     "--beside",    std::to_string(config.devices - 1)};
  if (config.training.microbatch_size)
    arguments.insert(arguments.end(),
                     {"--microbatch-size", std::to_string(*config.training.microbatch_size)});
  return arguments;
}

/// Beside the profile.
std::filesystem::path samples_file(const CaseConfig& config) {
  return std::filesystem::path(*config.model.profile).replace_extension("samples");
}

bool is_file(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error);
}

/// Runs pfeife-run for a file that is not there, or is not to be taken as it is.
void make(const std::filesystem::path& file, std::vector<std::string> arguments, bool again,
          const std::string& what, bool quiet) {
  if (!again && is_file(file)) return;
  if (!quiet)
    std::cerr << "pfeife-exp: measuring " << what << " on this machine, into " << file.string()
              << "\n";
  arguments.insert(arguments.end(), {"--out", file.string()});
  std::filesystem::path log = file;
  try {
    const OtherPrograms others;
    run_child(find_pfeife_run(), arguments, log.replace_extension("log"));
    if (const std::string warning = busy_warning(others.processors()); !warning.empty())
      std::cerr << "pfeife-exp: warning: " << warning << " while " << what
                << " were measured: their times are too long. Measure again on an idle machine "
                   "(--force)\n";
  } catch (const RuntimeFault& fault) {
    throw RuntimeFault("measuring " + what + " failed: " + fault.what());
  }
}

}  // namespace

void place_measured_inputs(Experiment& experiment, const std::filesystem::path& folder) {
  for (CaseConfig& config : experiment.cases) {
    if (config.profile_measured) *config.model.profile = folder / "measured" / profile_name(config);
    if (config.cluster_measured)
      config.cluster =
          folder / "measured" / ("cluster-" + short_digest(machine_and_program()) + ".yaml");
  }
}

void make_measured_inputs(const Experiment& experiment, Inputs& inputs, bool again, bool quiet) {
  std::set<std::filesystem::path> measured_files;
  const unsigned processors = std::max(2U, std::thread::hardware_concurrency());
  for (const CaseConfig& config : experiment.cases) {
    if (config.cluster_measured && measured_files.insert(config.cluster).second)
      make(config.cluster, {"profile", "--links", "--devices", std::to_string(processors)}, again,
           "links between processes", quiet);
    if (config.profile_measured && measured_files.insert(*config.model.profile).second)
      make(*config.model.profile, profile_arguments(config), again,
           "the operators of " + file_name(config, "model", config.model.file) + " in " +
               to_string(config.training.precision),
           quiet);
    if (const std::size_t devices = inputs.as_published(config).devices();
        config.cluster_measured && config.devices > devices)
      throw ConfigError(config.place("devices"), "this machine has " + std::to_string(devices) +
                                                     " devices, asked for " +
                                                     std::to_string(config.devices));
  }
}

void profile_share(const CaseConfig& config, int repetitions) {
  std::vector<std::string> arguments = profile_arguments(config);
  arguments.insert(arguments.end(), {"--repetitions", std::to_string(repetitions), "--samples",
                                     samples_file(config).string()});
  const std::filesystem::path& file = *config.model.profile;
  arguments.insert(arguments.end(), {"--out", file.string()});
  run_child(find_pfeife_run(), arguments, std::filesystem::path(file).replace_extension("log"));
}

void forget_shares(const CaseConfig& config) {
  std::error_code ignored;
  std::filesystem::remove(*config.model.profile, ignored);
  std::filesystem::remove(samples_file(config), ignored);
}

void use_profiled_settings(Experiment& experiment) {
  for (CaseConfig& config : experiment.cases) use_profiled_settings(config);
}

void use_profiled_settings(CaseConfig& config) {
  if (!config.measure || !config.profile_measured || !is_file(*config.model.profile)) return;
  SimulationSettings& simulation = config.simulation;
  const ProfiledRuntime found = read_profiled_runtime(*config.model.profile);
  if (!simulation.jitter && found.variation)
    simulation.jitter = JitterSettings{.cv = found.variation->cv, .drift = found.variation->drift};
  if (!simulation.launch_overhead_given) simulation.launch_overhead = found.executor_overhead;
}

}  // namespace pfeife
