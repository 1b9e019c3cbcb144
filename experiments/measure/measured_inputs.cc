#include "experiments/measure/measured_inputs.h"

#include <iostream>
#include <set>
#include <thread>

#include "experiments/inputs/source_digest.h"
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
  const std::string size =
      config.microbatch_size ? std::to_string(*config.microbatch_size) : "exported";
  const std::string what = to_string(config.precision) + "," + to_string(config.optimizer) + "," +
                           size + "," + std::to_string(config.devices);
  return folder_name(config.model.file.path.stem().string() + "," + what) + "-" +
         short_digest(machine_and_program() + "\n" + sha256_file(config.model.file.path) + "\n" +
                      what) +
         ".yaml";
}

std::vector<std::string> profile_arguments(const CaseConfig& config) {
  std::vector<std::string> arguments{
      "profile",     config.model.file.path.string(),   "--device",    "cpu",
      "--precision", to_string(config.precision),       "--optimizer", to_string(config.optimizer),
      "--beside",    std::to_string(config.devices - 1)};
  if (config.microbatch_size)
    arguments.insert(arguments.end(),
                     {"--microbatch-size", std::to_string(*config.microbatch_size)});
  return arguments;
}

/// Beside the profile.
std::filesystem::path samples_file(const CaseConfig& config) {
  return std::filesystem::path(config.profile->path).replace_extension("samples");
}

bool is_there(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error);
}

/// Runs pfeife-run for a file that is not there, or is not to be taken as it is.
void make(const std::filesystem::path& file, std::vector<std::string> arguments, bool again,
          const std::string& what, bool quiet) {
  if (!again && is_there(file)) return;
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
    if (config.profile && config.profile->measured)
      config.profile->path = folder / "measured" / profile_name(config);
    if (config.cluster.measured)
      config.cluster.path =
          folder / "measured" / ("cluster-" + short_digest(machine_and_program()) + ".yaml");
  }
}

void make_measured_inputs(const Experiment& experiment, Inputs& inputs, bool again, bool quiet) {
  std::set<std::filesystem::path> made;
  const unsigned processors = std::max(2U, std::thread::hardware_concurrency());
  for (const CaseConfig& config : experiment.cases) {
    if (config.cluster.measured && made.insert(config.cluster.path).second)
      make(config.cluster.path, {"profile", "--links", "--devices", std::to_string(processors)},
           again, "links between processes", quiet);
    if (config.profile && config.profile->measured && made.insert(config.profile->path).second)
      make(config.profile->path, profile_arguments(config), again,
           "the operators of " + config.model.file.written + " in " + to_string(config.precision),
           quiet);
    if (const std::size_t devices = inputs.cluster(config.cluster).devices();
        config.cluster.measured && config.devices > devices)
      throw ConfigError(config.devices_where, "this machine has " + std::to_string(devices) +
                                                  " devices, asked for " +
                                                  std::to_string(config.devices));
  }
}

void profile_share(const CaseConfig& config, int repetitions) {
  std::vector<std::string> arguments = profile_arguments(config);
  arguments.insert(arguments.end(), {"--repetitions", std::to_string(repetitions), "--samples",
                                     samples_file(config).string()});
  const std::filesystem::path& file = config.profile->path;
  arguments.insert(arguments.end(), {"--out", file.string()});
  run_child(find_pfeife_run(), arguments, std::filesystem::path(file).replace_extension("log"));
}

void forget_shares(const CaseConfig& config) {
  std::error_code ignored;
  std::filesystem::remove(config.profile->path, ignored);
  std::filesystem::remove(samples_file(config), ignored);
}

void use_profiled_settings(Experiment& experiment) {
  for (CaseConfig& config : experiment.cases) use_profiled_settings(config);
}

void use_profiled_settings(CaseConfig& config) {
  if (!config.measure || !config.profile || !config.profile->measured ||
      !is_there(config.profile->path))
    return;
  SimulationSettings& simulation = config.simulation;
  const ProfiledRuntime found = read_profiled_runtime(config.profile->path);
  if (!simulation.jitter && found.variation)
    simulation.jitter = JitterSettings{.cv = found.variation->cv, .drift = found.variation->drift};
  if (!simulation.launch_overhead_given) simulation.launch_overhead = found.executor_overhead;
}

}  // namespace pfeife
